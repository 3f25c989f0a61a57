//! Where the stream, the disk and replays meet: one message each, whatever order they come in.
//!
//! What the stream says is provisional until the disk says it too; the disk is right about the content. What never got
//! there is dropped when the agent has ended and its file was read to the end.

use std::collections::{HashMap, HashSet};

use crate::defect::Defect;
use crate::item::MessageItem;

/// Something that came.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// A line of the transcript.
    Disk(MessageItem),
    /// A frame of the agent, the first time or again.
    Stream(MessageItem),
    /// The agent has ended, and all it wrote has come.
    Ended,
}

/// What clients are told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A message is new, or other than it was.
    Upsert(Box<MessageItem>),
    /// A message that will not be.
    Dropped(String),
}

/// The messages of one driven session, as far as they may come a second time.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    on_disk: HashSet<String>,
    provisional: HashMap<String, MessageItem>,
    /// The order they came in.
    order: Vec<String>,
}

impl Merge {
    /// Takes what came; returns what is new.
    pub(crate) fn merge(&mut self, arrival: Arrival) -> Vec<Told> {
        match arrival {
            Arrival::Disk(item) => self.disk(item),
            Arrival::Stream(item) => self.stream(item),
            Arrival::Ended => {
                let left = std::mem::take(&mut self.order);
                let dropped = left.into_iter().filter(|uuid| self.provisional.remove(uuid).is_some());
                dropped.map(Told::Dropped).collect()
            }
        }
    }

    fn disk(&mut self, item: MessageItem) -> Vec<Told> {
        let Some(uuid) = item.uuid.clone() else { return vec![upsert(item)] };
        let known = self.provisional.remove(&uuid);
        let is_new = self.on_disk.insert(uuid.clone());
        self.order.retain(|other| *other != uuid);
        match (is_new, known) {
            (true, Some(known)) if Defect::TrustTheStream.is_on() => {
                vec![upsert(MessageItem { provisional: false, ..known })]
            }
            (true, _) => vec![upsert(item)],
            // The same line again: nobody has to know.
            (false, _) => Vec::new(),
        }
    }

    fn stream(&mut self, item: MessageItem) -> Vec<Told> {
        // Without an id nobody could tell it from the line that will follow.
        let Some(uuid) = item.uuid.clone() else { return Vec::new() };
        if self.on_disk.contains(&uuid) {
            return Vec::new();
        }
        let item = MessageItem { provisional: true, ..item };
        match self.provisional.insert(uuid.clone(), item.clone()) {
            Some(known) if known.says_the_same(&item) => Vec::new(),
            Some(_) => vec![upsert(item)],
            None => {
                self.order.push(uuid);
                vec![upsert(item)]
            }
        }
    }

    /// Returns what only the stream knows so far, in the order it came.
    pub(crate) fn provisional(&self) -> impl Iterator<Item = &MessageItem> {
        self.order.iter().filter_map(|uuid| self.provisional.get(uuid))
    }
}

fn upsert(item: MessageItem) -> Told {
    Told::Upsert(Box::new(item))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn item(uuid: &str, text: &str, provisional: bool) -> MessageItem {
        MessageItem {
            uuid: Some(uuid.into()),
            parent_uuid: None,
            message_id: None,
            role: "assistant".into(),
            kind: "reply".into(),
            content: Some(RawValue::from_string(format!("{text:?}")).unwrap()),
            omitted: None,
            timestamp: None,
            model: None,
            agent_id: None,
            offset: (!provisional).then_some(0),
            provisional,
        }
    }

    /// What a client that does nothing but upsert and drop by id ends up with, and how often it was told.
    fn client(told: &[Told]) -> (BTreeMap<String, (String, bool)>, usize) {
        let mut state = BTreeMap::new();
        for told in told {
            match told {
                Told::Upsert(item) => {
                    let content = item.content.as_ref().unwrap().get().to_owned();
                    state.insert(item.uuid.clone().unwrap(), (content, item.provisional));
                }
                Told::Dropped(uuid) => drop(state.remove(uuid)),
            }
        }
        (state, told.len())
    }

    #[derive(Clone, Debug)]
    enum Step {
        Stream(u8, bool),
        Disk(u8),
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 256 } else { 4096 }))]
        #[test]
        fn whatever_the_order_the_end_is_what_the_disk_says(
            steps in prop::collection::vec(
                prop_oneof![(0..12_u8, any::<bool>()).prop_map(|(id, early)| Step::Stream(id, early)), (0..12_u8).prop_map(Step::Disk)],
                0..60,
            )
        ) {
            let mut merge = Merge::default();
            let mut told = Vec::new();
            let mut on_disk: BTreeMap<String, (String, bool)> = BTreeMap::new();
            for step in &steps {
                let arrival = match step {
                    Step::Stream(id, early) => {
                        let text = if *early { format!("early {id}") } else { format!("final {id}") };
                        Arrival::Stream(item(&id.to_string(), &text, true))
                    }
                    Step::Disk(id) => {
                        on_disk.insert(id.to_string(), (format!("\"final {id}\""), false));
                        Arrival::Disk(item(&id.to_string(), &format!("final {id}"), false))
                    }
                };
                told.extend(merge.merge(arrival));
                // At any time a client has all that is on disk, as it is there, and marks the rest.
                let (state, _) = client(&told);
                for (uuid, known) in &on_disk {
                    prop_assert_eq!(state.get(uuid), Some(known));
                }
                prop_assert!(state.iter().all(|(uuid, (_, provisional))| *provisional != on_disk.contains_key(uuid)));
            }
            let before = told.len();
            told.extend(merge.merge(Arrival::Ended));
            prop_assert_eq!(&client(&told).0, &on_disk);
            // Everything again changes nothing.
            for step in &steps {
                if let Step::Disk(id) = step {
                    let again = merge.merge(Arrival::Disk(item(&id.to_string(), &format!("final {id}"), false)));
                    prop_assert!(again.is_empty());
                    let again = merge.merge(Arrival::Stream(item(&id.to_string(), "late", true)));
                    prop_assert!(again.is_empty());
                }
            }
            prop_assert!(before <= steps.len());
        }
    }

    #[test]
    fn two_messages_that_say_the_same_are_two() {
        let mut merge = Merge::default();
        let told: Vec<Told> = ["a", "b"]
            .iter()
            .flat_map(|id| merge.merge(Arrival::Disk(item(id, "continue", false))))
            .collect();
        assert_eq!(client(&told).0.len(), 2);
    }
}
