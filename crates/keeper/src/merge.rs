//! Where the stream, the disk and replays meet: one message each, whatever order they come in.
//!
//! What the stream says is provisional until the disk says it too; the disk is right about the content. What never got
//! there is dropped when the agent has ended and its file was read to the end.

use std::collections::HashMap;

use crate::defect::Defect;
use crate::item::MessageItem;
use crate::recent::Recent;

/// Something that came.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// A line of the transcript.
    Disk(MessageItem<'static>),
    /// A frame of the agent, the first time or again.
    Stream(MessageItem<'static>),
    /// The agent has ended, and all it wrote has come.
    Ended,
}

/// What clients are told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A message is new, or other than it was.
    Upsert(Box<MessageItem<'static>>),
    /// A message that will not be.
    Dropped(String),
}

/// The messages of one driven session, as far as they may come a second time.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// What was on disk lately: a session may go on for ever, and what comes twice does so soon.
    on_disk: Recent,
    /// Where the last line began that came from the disk.
    reached: u64,
    provisional: HashMap<String, MessageItem<'static>>,
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

    fn disk(&mut self, item: MessageItem<'static>) -> Vec<Told> {
        self.reached = item.offset.unwrap_or(self.reached);
        let Some(uuid) = item.uuid.as_deref().map(str::to_owned) else { return vec![upsert(item)] };
        let known = self.provisional.remove(&uuid);
        let is_new = self.on_disk.add(&uuid);
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

    fn stream(&mut self, item: MessageItem<'static>) -> Vec<Told> {
        // Without an id nobody could tell it from the line that will follow.
        let Some(uuid) = item.uuid.as_deref().map(str::to_owned) else { return Vec::new() };
        if self.on_disk.has(&uuid) {
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

    /// Returns where the last line began that came from the disk: nothing before it is missing.
    pub(crate) fn reached(&self) -> u64 {
        self.reached
    }

    /// Returns what only the stream knows so far, in the order it came.
    pub(crate) fn provisional(&self) -> impl Iterator<Item = &MessageItem<'static>> {
        self.order.iter().filter_map(|uuid| self.provisional.get(uuid))
    }
}

fn upsert(item: MessageItem<'static>) -> Told {
    Told::Upsert(Box::new(item))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn item(uuid: &str, text: &str, provisional: bool) -> MessageItem<'static> {
        MessageItem {
            uuid: Some(uuid.to_owned().into()),
            parent_uuid: None,
            message_id: None,
            role: "assistant".into(),
            kind: "reply".into(),
            content: serde_json::from_value(text.into()).unwrap(),
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
                    state.insert(item.uuid.clone().unwrap().into_owned(), (content, item.provisional));
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

    /// A session that is followed for weeks: what is kept is what may come a second time.
    #[test]
    fn what_is_remembered_does_not_grow_with_what_was_delivered() {
        let mut merge = Merge::default();
        let id = |number: usize| format!("message {number}");
        let count = 5 * crate::recent::MOST;
        for number in 0..count {
            merge.merge(Arrival::Stream(item(&id(number), "early", true)));
            let line = MessageItem { offset: Some(number as u64), ..item(&id(number), "final", false) };
            assert_eq!(merge.merge(Arrival::Disk(line.clone())).len(), 1);
            // Again, and late, as it happens.
            assert!(merge.merge(Arrival::Disk(line)).is_empty());
            let late = number.saturating_sub(100);
            assert!(merge.merge(Arrival::Stream(item(&id(late), "late", true))).is_empty());
        }
        let remembered = (0..count).filter(|number| merge.on_disk.has(&id(*number))).count();
        assert_eq!((remembered, merge.provisional.len(), merge.order.len()), (crate::recent::MOST, 0, 0));
        assert_eq!(merge.reached(), count as u64 - 1);
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
