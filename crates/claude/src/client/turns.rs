//! Whose a message is.

mod about;
mod loose;
mod queue;
mod turn;

use std::collections::VecDeque;
use std::task::{Context, Poll};

use serde_json::Value;

use crate::error::Error;
use crate::message::ResultMessage;
use crate::transport::Ending;

use about::About;
use loose::Loose;
use queue::Queue;
use turn::{Listener, Turn};

pub(super) use loose::FollowerId;
pub(super) use queue::Item;
pub(super) use turn::TurnId;

/// The prompts that somebody waits for the answer of, and what was said so far.
///
/// A message belongs to the oldest prompt that was not answered yet. What comes between turns is *loose*, and so is what is
/// said in answer to a prompt whose answer goes to whoever follows, or to none that the host sent.
///
/// A CLI that names in its results the prompts they answer may be sent many prompts at once; it answers several of them
/// with one turn if it sees fit. Older ones do so, too, but do not say which: they get the next prompt only when the
/// last one was answered.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: VecDeque<Turn>,
    loose: Loose,
    /// How many turns there were.
    opened: u64,
    names_prompts: bool,
    is_at_work: bool,
    end: Option<Error>,
}

impl Turns {
    /// Returns how many bytes wait to be read.
    pub(super) fn waiting(&self) -> usize {
        self.loose.bytes() + self.open.iter().map(Turn::bytes).sum::<usize>()
    }

    /// Returns whether the CLI has said that it is still at work, be it in the background.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_at_work
    }

    /// Returns why it is over, if it is.
    pub(super) fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// Opens a turn for a prompt, and returns the prompt if it may be sent now.
    pub(super) fn open(&mut self, uuid: &str, prompt: Value) -> (TurnId, Option<Value>) {
        let id = TurnId(self.opened);
        self.opened += 1;
        let is_first = self.open.iter().all(|turn| turn.is_done);
        let said = if is_first { self.loose.give() } else { Queue::default() };
        let mut turn = Turn::new(id, uuid, Listener::Stream, said);
        if let Some(end) = &self.end {
            turn.finish(Some(Err(end.clone())));
        }
        let (now, held) =
            if is_first || self.names_prompts { (Some(prompt), None) } else { (None, Some(prompt)) };
        turn.held = held;
        self.open.push_back(turn);
        (id, now)
    }

    /// Takes note of a prompt whose answer goes to whoever follows. It is sent at once.
    pub(super) fn note(&mut self, uuid: &str) {
        if self.end.is_none() {
            let turn = Turn::new(TurnId(self.opened), uuid, Listener::Followers, Queue::default());
            self.opened += 1;
            self.open.push_back(turn);
        }
    }

    /// Takes a message in, and returns the prompts that may be sent now.
    pub(super) fn take_in(&mut self, item: Item) -> Vec<Value> {
        match About::of(&item) {
            About::Part => self.put(item),
            About::Result { prompts, is_nobodys } => {
                self.end_answered(&prompts, is_nobodys, item);
                return self.release().into_iter().collect();
            }
            About::Known { prompt, has_begun } => {
                self.names_prompts = true;
                let held = self.open.iter_mut().filter_map(|turn| turn.held.take()).collect();
                let mut known = self.open.iter_mut().filter(|turn| Some(&turn.uuid) == prompt.as_ref());
                match known.find(|turn| !turn.is_done) {
                    Some(turn) => {
                        (turn.is_known, turn.has_begun) = (true, turn.has_begun || has_begun);
                        if turn.listener == Listener::Followers { self.pass(item) } else { turn.put(item) }
                    }
                    None => self.put(item),
                }
                return held;
            }
            About::State { is_at_work, is_for_host } => {
                self.is_at_work = is_at_work;
                if !is_for_host {
                    self.put(item);
                }
                if !is_at_work {
                    self.end_known();
                    // Who follows may have waited for just that.
                    self.loose.wake_all();
                }
            }
        }
        Vec::new()
    }

    /// Ends the turns that a result answers. Each gets the result.
    fn end_answered(&mut self, prompts: &[String], is_nobodys: bool, result: Item) {
        let mut ended = Vec::new();
        let (mut is_first, mut is_next) = (true, !is_nobodys);
        for turn in self.open.iter_mut().filter(|turn| !turn.is_done) {
            let is_followed = turn.listener == Listener::Followers;
            // What names nobody, such as what an agent begins with by itself, answers none that still waits. Prompts whose
            // answers go to whoever follows may have been answered together.
            let is_its_turn = is_next && (is_followed || is_first && turn.is_being_answered());
            let ends = if prompts.is_empty() { is_its_turn } else { prompts.contains(&turn.uuid) };
            if ends {
                turn.finish(Some(result.clone()));
                ended.push(turn.listener);
            }
            (is_first, is_next) = (false, is_next && is_followed);
        }
        self.open.retain(|turn| !turn.is_over());
        match ended[..] {
            [] => self.put(result),
            _ if ended.contains(&Listener::Followers) => self.pass(result),
            _ => {}
        }
    }

    /// Ends the turns of prompts that the CLI has and will not answer any more: it has nothing left to do.
    fn end_known(&mut self) {
        self.open.iter_mut().filter(|turn| turn.is_known && !turn.is_done).for_each(|turn| turn.finish(None));
        self.open.retain(|turn| !turn.is_over());
    }

    /// Returns the next prompt that was held back, if there is nothing left for it to wait for.
    fn release(&mut self) -> Option<Value> {
        let is_free = self.open.iter().all(|turn| turn.is_done || turn.held.is_some());
        if is_free { self.open.iter_mut().find_map(|turn| turn.held.take()) } else { None }
    }

    fn put(&mut self, item: Item) {
        match self.open.iter_mut().find(|turn| !turn.is_done) {
            Some(turn) if turn.is_being_answered() => turn.put(item),
            _ => self.pass(item),
        }
    }

    /// Passes on what is of no stream's turn: to whoever follows. If nobody does, it goes to the next stream, so that it does
    /// not wait for ever and what is behind it with it.
    fn pass(&mut self, item: Item) {
        let next = self.open.iter_mut().find(|turn| !turn.is_done && turn.listener != Listener::Followers);
        match next {
            Some(turn) if !self.loose.is_followed() => turn.put(item),
            _ => self.loose.put(item),
        }
    }

    /// Drops what is loose, and what will be, if nobody takes it.
    pub(super) fn close(&mut self) {
        self.loose.close();
    }

    /// Ends a turn whose prompt was taken back, and returns the prompt that may be sent now.
    pub(super) fn cancel(&mut self, uuid: &str) -> Option<Value> {
        let turn = self.open.iter_mut().find(|turn| turn.uuid == uuid && !turn.is_done)?;
        turn.held = None;
        turn.finish(Some(Err(Error::Cancelled)));
        self.open.retain(|turn| !turn.is_over());
        self.release()
    }

    /// Returns whether a prompt was not sent yet.
    pub(super) fn is_held(&self, uuid: &str) -> bool {
        self.open.iter().any(|turn| turn.uuid == uuid && turn.held.is_some())
    }

    /// Takes the next message of a turn.
    pub(super) fn take(&mut self, id: TurnId, context: &mut Context<'_>) -> Poll<Option<Item>> {
        match self.open.iter_mut().find(|turn| turn.id == id) {
            Some(turn) => turn.take(context),
            None => Poll::Ready(None),
        }
    }

    /// Lets go of a turn. What is still to come of it goes to nobody.
    pub(super) fn leave(&mut self, id: TurnId) {
        let Some(at) = self.open.iter().position(|turn| turn.id == id) else { return };
        let turn = &mut self.open[at];
        turn.abandon();
        // A prompt that was never sent was never asked.
        if turn.is_done || turn.held.is_some() {
            self.open.remove(at);
        }
    }

    /// Adds somebody who takes what is loose.
    pub(super) fn follow(&mut self) -> FollowerId {
        self.loose.follow()
    }

    /// Lets somebody go who took what is loose.
    pub(super) fn unfollow(&mut self, id: FollowerId) {
        self.loose.leave(id);
    }

    /// Takes the next message that belongs to no turn.
    pub(super) fn take_loose(&mut self, id: FollowerId, context: &mut Context<'_>) -> Poll<Option<Item>> {
        self.loose.take(id, self.end.is_some(), context)
    }

    /// Returns what results said that nobody asked for: why the CLI could not even begin.
    pub(super) fn unasked_results(&self) -> Vec<ResultMessage> {
        self.loose.results()
    }

    /// Tells everybody that nothing more will come.
    pub(super) fn finish(&mut self, end: &Error) {
        for turn in self.open.iter_mut().filter(|turn| !turn.is_done) {
            turn.finish(Some(Err(end.clone())));
        }
        self.open.retain(|turn| turn.listener == Listener::Stream);
        if !matches!(end, Error::Ended { ending: Ending::Exited(0), .. }) {
            self.loose.put_last(Err(end.clone()));
        }
        self.is_at_work = false;
        self.end = Some(end.clone());
        self.loose.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    fn say(turns: &mut Turns, line: Value) -> Vec<Value> {
        turns.take_in(Frame::parse(line.to_string()))
    }

    /// Returns what is there of a turn, by the frames' marks, and whether it has ended.
    fn read(turns: &mut Turns, uuid: &str) -> (Vec<String>, bool) {
        let id = id(turns, uuid);
        let mut marks = Vec::new();
        loop {
            match turns.take(id, &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(item)) => marks.push(match item.map(|frame| frame.json().unwrap()) {
                    Ok(frame) => frame["mark"].as_str().unwrap_or("-").to_owned(),
                    Err(error) => error.to_string(),
                }),
                Poll::Ready(None) => return (marks, true),
                Poll::Pending => return (marks, false),
            }
        }
    }

    fn result(mark: &str, prompts: Value) -> Value {
        json!({ "type": "result", "subtype": "success", "mark": mark, "user_message_uuids": prompts })
    }

    fn open(turns: &mut Turns, uuid: &str) -> bool {
        turns.open(uuid, json!(uuid)).1.is_some()
    }

    fn id(turns: &Turns, uuid: &str) -> TurnId {
        turns.open.iter().find(|turn| turn.uuid == uuid).unwrap().id
    }

    #[test]
    fn prompts_that_were_answered_together_end_together() {
        let mut turns = Turns { names_prompts: true, ..Turns::default() };
        assert!(open(&mut turns, "a") && open(&mut turns, "b") && open(&mut turns, "c"));
        say(&mut turns, result("first", json!(["a"])));
        say(&mut turns, json!({ "type": "assistant", "mark": "x" }));
        say(&mut turns, result("second", json!(["b", "c"])));
        assert_eq!(read(&mut turns, "a"), (vec!["first".into()], true));
        assert_eq!(read(&mut turns, "b"), (vec!["x".into(), "second".into()], true));
        assert_eq!(read(&mut turns, "c"), (vec!["second".into()], true));
    }

    #[test]
    fn an_older_cli_gets_the_next_prompt_when_the_last_one_was_answered() {
        let mut turns = Turns::default();
        assert!(open(&mut turns, "a") && !open(&mut turns, "b") && !open(&mut turns, "c"));
        assert_eq!(say(&mut turns, result("first", Value::Null)), [json!("b")]);
        assert_eq!(read(&mut turns, "b"), (vec![], false));
        assert_eq!(say(&mut turns, result("second", Value::Null)), [json!("c")]);
        assert_eq!(read(&mut turns, "b"), (vec!["second".into()], true));
    }

    /// Everybody after a prompt that was sent and taken back waited for its answer.
    #[test]
    fn an_older_cli_gets_the_next_prompt_when_the_last_one_was_taken_back() {
        let mut turns = Turns::default();
        assert!(open(&mut turns, "a") && !open(&mut turns, "b") && !open(&mut turns, "c"));
        assert_eq!(turns.cancel("b"), None);
        assert_eq!(turns.cancel("a"), Some(json!("c")));
        assert_eq!(read(&mut turns, "a"), (vec![Error::Cancelled.to_string()], true));
        assert_eq!(read(&mut turns, "c"), (vec![], false));
    }

    #[test]
    fn a_turn_that_nobody_reads_and_that_is_taken_back_leaves_nothing_behind() {
        let mut turns = Turns { names_prompts: true, ..Turns::default() };
        open(&mut turns, "a");
        turns.leave(id(&turns, "a"));
        turns.cancel("a");
        assert!(turns.open.is_empty());
    }

    #[test]
    fn a_cli_that_names_prompts_gets_those_that_were_held() {
        let mut turns = Turns::default();
        assert!(open(&mut turns, "a") && !open(&mut turns, "b"));
        let known = json!({ "type": "command_lifecycle", "command_uuid": "a", "state": "queued" });
        assert_eq!(say(&mut turns, known), [json!("b")]);
        assert!(open(&mut turns, "c"));
    }

    #[test]
    fn a_turn_nobody_reads_takes_its_messages_with_it() {
        let mut turns = Turns { names_prompts: true, ..Turns::default() };
        open(&mut turns, "a");
        say(&mut turns, json!({ "type": "assistant", "mark": "lost" }));
        turns.leave(id(&turns, "a"));
        open(&mut turns, "b");
        say(&mut turns, json!({ "type": "assistant", "mark": "lost, too" }));
        say(&mut turns, result("of a", json!(["a"])));
        say(&mut turns, result("of b", json!(["b"])));
        assert_eq!(read(&mut turns, "b"), (vec!["of b".into()], true));
        assert_eq!(turns.waiting(), 0);
    }

    #[test]
    fn a_subagents_report_ends_nobodys_turn() {
        let mut turns = Turns::default();
        open(&mut turns, "a");
        let report = json!({ "type": "result", "mark": "report", "origin": { "kind": "task-notification" } });
        say(&mut turns, report);
        assert_eq!(read(&mut turns, "a"), (vec!["report".into()], false));
    }

    /// An agent that begins with a prompt of its own answered the host's with it.
    #[test]
    fn a_result_that_names_nobody_ends_no_turn_that_still_waits() {
        let mut turns = Turns::default();
        open(&mut turns, "a");
        let lifecycle = |state: &str| json!({ "type": "command_lifecycle", "command_uuid": "a", "state": state, "mark": state });
        say(&mut turns, lifecycle("queued"));
        say(&mut turns, result("of its own", Value::Null));
        assert_eq!(read(&mut turns, "a"), (vec!["queued".into(), "of its own".into()], false));
        say(&mut turns, lifecycle("started"));
        say(&mut turns, result("of a", Value::Null));
        assert_eq!(read(&mut turns, "a"), (vec!["started".into(), "of a".into()], true));
    }

    /// Returns what is loose by now.
    fn loose(turns: &mut Turns, id: FollowerId) -> Vec<String> {
        let next = || match turns.take_loose(id, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(item)) => Some(item.unwrap().json().unwrap()["mark"].as_str()?.to_owned()),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// What was said in answer to a prompt of the one kind went to the stream of the other.
    #[test]
    fn prompts_with_and_without_a_stream_do_not_get_each_others_answers() {
        for names in [true, false] {
            let mut turns = Turns { names_prompts: names, ..Turns::default() };
            let follower = turns.follow();
            turns.note("a");
            assert_eq!(open(&mut turns, "b"), names);
            say(&mut turns, json!({ "type": "assistant", "mark": "to a" }));
            let of = |prompt: &str| if names { json!([prompt]) } else { Value::Null };
            let released = say(&mut turns, result("of a", of("a")));
            assert_eq!(released.len(), usize::from(!names));
            say(&mut turns, json!({ "type": "assistant", "mark": "to b" }));
            say(&mut turns, result("of b", of("b")));
            assert_eq!(read(&mut turns, "b"), (vec!["to b".into(), "of b".into()], true));
            assert_eq!(loose(&mut turns, follower), ["to a", "of a"]);
        }
    }

    /// Were it to wait for a follower, the stream would never get its answer once too much waits.
    #[test]
    fn what_nobody_follows_comes_with_the_next_stream() {
        let mut turns = Turns { names_prompts: true, ..Turns::default() };
        turns.note("a");
        open(&mut turns, "b");
        say(&mut turns, json!({ "type": "assistant", "mark": "to a" }));
        say(&mut turns, result("of a", json!(["a"])));
        say(&mut turns, result("of b", json!(["b"])));
        assert_eq!(read(&mut turns, "b"), (vec!["to a".into(), "of a".into(), "of b".into()], true));
    }

    #[test]
    fn a_prompt_that_was_known_already_ends_when_there_is_nothing_left_to_do() {
        let mut turns = Turns { names_prompts: true, ..Turns::default() };
        open(&mut turns, "a");
        say(
            &mut turns,
            json!({ "type": "command_lifecycle", "command_uuid": "a", "state": "queued", "mark": "q" }),
        );
        open(&mut turns, "b");
        let idle = json!({ "type": "system", "subtype": "session_state_changed", "state": "idle", "sdk_host_only": true });
        say(&mut turns, idle);
        assert_eq!(read(&mut turns, "a"), (vec!["q".into()], true));
        assert_eq!(read(&mut turns, "b"), (vec![], false));
    }
}
