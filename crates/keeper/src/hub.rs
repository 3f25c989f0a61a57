//! Everything that happened, in order, for everybody who wants to know: one ring, encoded once.
//!
//! Nobody has a queue of their own. A client remembers how far it has come, so that one who never reads costs nothing;
//! when the ring has gone on without it, it is told to read anew.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use crate::defect::Defect;
use crate::frame::{Drafts, Frame};
use crate::metrics::Metrics;
use crate::topic::{Interest, Subject};
use crate::wire::Wire;

/// How many numbered events are kept, and how many bytes they may have.
const EVENTS: usize = 16_384;
const BYTES: usize = 32 << 20;
/// How many events are kept that are of the moment only.
const EPHEMERAL: usize = 2_048;

/// How many events that come at once are told at once.
const TOGETHER: u64 = 64;

/// Whether those who wait are to hear of an event now, or with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Now,
    Soon,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Hub {
    epoch: Arc<str>,
    ring: Mutex<Ring>,
    /// How many events there were, of both kinds.
    moved: watch::Sender<u64>,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct Ring {
    numbered: VecDeque<Event>,
    ephemeral: VecDeque<Event>,
    bytes: usize,
    seq: u64,
    index: u64,
    /// The newest numbered event that is no longer here.
    forgotten: u64,
    forgotten_seq: u64,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Its number among all events.
    pub(crate) index: u64,
    /// Its number among those that can be asked for again; 0 for others.
    pub(crate) seq: u64,
    pub(crate) subject: Subject,
    pub(crate) frame: Frame,
}

impl Event {
    fn told(&self) -> (Arc<str>, Frame) {
        (Arc::clone(self.subject.topic()), self.frame.clone())
    }
}

/// How far somebody has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) u64);

impl Hub {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        let epoch = uuid::Uuid::new_v4().simple().to_string();
        Self { epoch: epoch.into(), ring: Mutex::default(), moved: watch::Sender::new(0), metrics }
    }

    /// Returns the name of this keeper's life.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Returns the number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.ring().seq
    }

    /// Returns where somebody begins who only wants what comes.
    pub(crate) fn now(&self) -> (Cursor, u64) {
        let ring = self.ring();
        (Cursor(ring.index), ring.seq)
    }

    /// Returns where somebody goes on who has seen everything up to a number; `None` if that is no longer known.
    pub(crate) fn after(&self, epoch: &str, seq: u64) -> Option<Cursor> {
        let ring = self.ring();
        if epoch != &*self.epoch || seq > ring.seq || seq < ring.forgotten_seq {
            return None;
        }
        let at = ring.numbered.partition_point(|event| event.seq <= seq);
        // Just before the first one that is new.
        Some(Cursor(ring.numbered.get(at).map_or(ring.index, |event| event.index - 1)))
    }

    /// Returns the number of the last event up to a place.
    pub(crate) fn seq_at(&self, cursor: Cursor) -> u64 {
        let ring = self.ring();
        let at = ring.numbered.partition_point(|event| event.index <= cursor.0);
        at.checked_sub(1).and_then(|at| ring.numbered.get(at)).map_or(ring.forgotten_seq, |event| event.seq)
    }

    /// Tells when there is something new.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Publishes an event that can be asked for again.
    pub(crate) fn publish(&self, session: &str, kind: &'static str, data: impl Serialize) {
        let index = self.put(session, kind, data, true);
        self.moved.send_replace(index);
    }

    /// Publishes an event of the moment.
    pub(crate) fn whisper(&self, session: &str, kind: &'static str, data: impl Serialize) {
        let index = self.put(session, kind, data, false);
        self.moved.send_replace(index);
    }

    /// Publishes one of many events that come at once. Waking everybody for each of them would take longer than telling
    /// them; whoever publishes the last one with [`publish`](Self::publish) or [`Wake::Now`] wakes them for all.
    pub(crate) fn publish_with(&self, wake: Wake, session: &str, kind: &'static str, data: impl Serialize) {
        let index = self.put(session, kind, data, true);
        if wake == Wake::Now || index.is_multiple_of(TOGETHER) {
            self.moved.send_replace(index);
        }
    }

    /// Wakes everybody who waits.
    pub(crate) fn wake(&self) {
        let index = self.ring().index;
        self.moved.send_replace(index);
    }

    /// Returns the event's place.
    fn put(&self, session: &str, kind: &'static str, data: impl Serialize, is_numbered: bool) -> u64 {
        let subject = Subject::new(session, kind);
        let mut drafts = match is_numbered {
            true => self.drafts(&subject, kind),
            false => Drafts::new(&self.epoch, None, subject.topic(), kind),
        };
        drafts.add(data);
        self.put_all(&subject, drafts, is_numbered)
    }

    /// Begins with events that can be asked for again, and most likely come next.
    pub(crate) fn drafts(&self, subject: &Subject, kind: &str) -> Drafts {
        Drafts::new(&self.epoch, Some(self.seq() + 1), subject.topic(), kind)
    }

    /// Publishes events that can be asked for again and come at once, and wakes everybody once.
    pub(crate) fn publish_all(&self, subject: &Subject, drafts: Drafts) {
        let index = self.put_all(subject, drafts, true);
        self.moved.send_replace(index);
    }

    fn put_all(&self, subject: &Subject, drafts: Drafts, is_numbered: bool) -> u64 {
        let count = drafts.len() as u64;
        let mut ring = self.ring();
        let first = ring.seq + 1;
        for (frame, at) in drafts.number(is_numbered.then_some(first)).into_iter().zip(0..) {
            ring.index += 1;
            ring.seq += u64::from(is_numbered);
            let (index, seq) = (ring.index, if is_numbered { first + at } else { 0 });
            ring.push(Event { index, seq, subject: subject.clone(), frame });
        }
        let index = ring.index;
        drop(ring);
        self.metrics.events.add(count);
        index
    }

    /// Takes what there is for somebody, up to about so many bytes, and moves their cursor on; `None` if some are no
    /// longer here. Who got less has got all.
    pub(crate) fn take(&self, cursor: &mut Cursor, interest: &Interest, bytes: usize) -> Option<Wire> {
        let mut wire = Wire::default();
        self.take_each(cursor, interest, bytes, |event| wire.add(&event.frame))?;
        Some(wire)
    }

    /// Takes as [`take`](Self::take) does, each frame by itself, and says what it is about.
    pub(crate) fn take_told(
        &self,
        cursor: &mut Cursor,
        interest: &Interest,
        bytes: usize,
    ) -> Option<Vec<(Arc<str>, Frame)>> {
        let mut told = Vec::new();
        self.take_each(cursor, interest, bytes, |event| told.push(event.told()))?;
        Some(told)
    }

    fn take_each(
        &self,
        cursor: &mut Cursor,
        interest: &Interest,
        bytes: usize,
        mut pick: impl FnMut(&Event),
    ) -> Option<()> {
        let ring = self.ring();
        if ring.forgotten > cursor.0 && !Defect::SkipTheGap.is_on() {
            return None;
        }
        let mut taken = 0;
        for event in ring.since(cursor.0) {
            if taken >= bytes {
                break;
            }
            cursor.0 = event.index;
            if interest.wants(&event.subject) {
                taken += event.frame.len();
                pick(event);
            }
        }
        Some(())
    }

    /// Returns the numbered events of an interest between two places, and what each is about: what a new subscription
    /// has to catch up with. `None` if some are no longer here.
    pub(crate) fn between(
        &self,
        from: Cursor,
        to: Cursor,
        interest: &Interest,
    ) -> Option<Vec<(Arc<str>, Frame)>> {
        let ring = self.ring();
        if ring.forgotten > from.0 {
            return None;
        }
        let events = ring.since(from.0).take_while(|event| event.index <= to.0);
        let wanted = events.filter(|event| event.seq > 0 && interest.wants(&event.subject));
        Some(wanted.map(Event::told).collect())
    }

    /// Returns a frame that is no event: an answer to one client.
    pub(crate) fn word(&self, kind: &str, mut data: serde_json::Value) -> Frame {
        if let Some(members) = data.as_object_mut() {
            members.insert("v".into(), 1.into());
            members.insert("type".into(), kind.into());
            members.insert("epoch".into(), (*self.epoch).into());
            members.insert("ts".into(), Timestamp::now().to_string().into());
        }
        Frame::text(&data.to_string())
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, event: Event) {
        if event.seq == 0 {
            self.ephemeral.push_back(event);
            if self.ephemeral.len() > EPHEMERAL {
                self.ephemeral.pop_front();
            }
            return;
        }
        self.bytes += event.frame.len();
        self.numbered.push_back(event);
        while self.numbered.len() > EVENTS || self.bytes > BYTES && self.numbered.len() > 1 {
            if let Some(oldest) = self.numbered.pop_front() {
                self.bytes -= oldest.frame.len();
                (self.forgotten, self.forgotten_seq) = (oldest.index, oldest.seq);
            }
        }
    }

    /// Returns events of both kinds after a place, in order.
    fn since(&self, index: u64) -> impl Iterator<Item = &Event> {
        let from = |events: &VecDeque<Event>| events.partition_point(|event| event.index <= index);
        let mut numbered = self.numbered.range(from(&self.numbered)..).peekable();
        let mut ephemeral = self.ephemeral.range(from(&self.ephemeral)..).peekable();
        std::iter::from_fn(move || match (numbered.peek(), ephemeral.peek()) {
            (Some(one), Some(other)) if one.index < other.index => numbered.next(),
            (_, Some(_)) => ephemeral.next(),
            (_, None) => numbered.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        Hub::new(Arc::default())
    }

    fn seqs(hub: &Hub, cursor: &mut Cursor, interest: &Interest) -> Vec<Option<u64>> {
        let mut again = *cursor;
        let told = hub.take_told(cursor, interest, usize::MAX).expect("no gap");
        // What goes over the wire is the same, one frame after the other.
        let whole: Vec<u8> = told.iter().flat_map(|(_, frame)| frame.whole().to_vec()).collect();
        let wire = hub.take(&mut again, interest, usize::MAX).expect("no gap");
        assert_eq!((wire.bytes(), wire.frames(), again), (whole, told.len(), *cursor));
        let seq = |(_, frame): &(Arc<str>, Frame)| {
            serde_json::from_slice::<serde_json::Value>(frame.json()).unwrap()["seq"].as_u64()
        };
        told.iter().map(seq).collect()
    }

    #[test]
    fn each_event_is_taken_once_in_order_from_wherever_one_goes_on() {
        let hub = hub();
        for number in 1..=20 {
            match number % 3 {
                0 => hub.whisper("s", "message.delta", number),
                1 => {
                    let subject = Subject::new("s", "message.upsert");
                    let mut drafts = hub.drafts(&subject, "message.upsert");
                    // Something else may come before them.
                    if number % 2 == 0 {
                        hub.publish("s", "turn.started", number);
                    }
                    (0..3).for_each(|_| drafts.add(number));
                    hub.publish_all(&subject, drafts);
                }
                _ => hub.publish("s", "message.upsert", number),
            }
        }
        let interest = Interest::of(["session:s"]);
        for seen in 0..=hub.seq() {
            let mut cursor = hub.after(hub.epoch(), seen).unwrap();
            let taken = seqs(&hub, &mut cursor, &interest);
            let numbered: Vec<u64> = taken.into_iter().flatten().collect();
            assert_eq!(numbered, (seen + 1..=hub.seq()).collect::<Vec<_>>());
            assert_eq!(seqs(&hub, &mut cursor, &interest), []);
        }
        assert_eq!(hub.after("another life", 1), None);
        assert_eq!(hub.after(hub.epoch(), hub.seq() + 1), None);
    }

    #[test]
    fn whoever_is_too_slow_meets_a_gap_and_the_ring_stays_small() {
        let hub = hub();
        let (mut slow, seq) = hub.now();
        let large = "x".repeat(1 << 20);
        for _ in 0..100 {
            hub.publish("s", "message.upsert", &large);
        }
        assert!(hub.ring().bytes <= BYTES);
        assert!(hub.take(&mut slow, &Interest::of(["all"]), usize::MAX).is_none());
        assert_eq!(hub.after(hub.epoch(), seq), None);
    }

    #[test]
    fn deltas_are_forgotten_first_and_leave_no_gap() {
        let hub = hub();
        let (mut cursor, _) = hub.now();
        hub.publish("s", "turn.started", 0);
        for number in 0..2 * EPHEMERAL {
            hub.whisper("s", "message.delta", number);
        }
        hub.publish("s", "turn.completed", 0);
        let taken = seqs(&hub, &mut cursor, &Interest::of(["session:s"]));
        assert_eq!((taken.len(), taken[0], taken[taken.len() - 1]), (EPHEMERAL + 2, Some(1), Some(2)));
    }
}
