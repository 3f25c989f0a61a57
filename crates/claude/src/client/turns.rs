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
use turn::Turn;

pub(super) use loose::FollowerId;
pub(super) use queue::Item;
pub(super) use turn::TurnId;

/// The prompts that somebody waits for the answer of, and what was said so far.
///
/// A message belongs to the oldest prompt that was not answered yet. What comes between turns is *loose*.
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
        let mut turn = Turn::new(id, uuid, said);
        if let Some(end) = &self.end {
            turn.finish(Some(Err(end.clone())));
        }
        let (now, held) =
            if is_first || self.names_prompts { (Some(prompt), None) } else { (None, Some(prompt)) };
        turn.held = held;
        self.open.push_back(turn);
        (id, now)
    }

    /// Takes a message in, and returns the prompts that may be sent now.
    pub(super) fn take_in(&mut self, item: Item) -> Vec<Value> {
        match About::of(&item) {
            About::Part => self.put(item),
            About::Result { prompts, is_nobodys } => {
                if !self.end_answered(&prompts, is_nobodys, &item) {
                    self.put(item);
                }
                return self.release().into_iter().collect();
            }
            About::Known { prompt, has_begun } => {
                self.names_prompts = true;
                let held = self.open.iter_mut().filter_map(|turn| turn.held.take()).collect();
                let known = self.open.iter_mut().find(|turn| Some(&turn.uuid) == prompt.as_ref());
                if let Some(turn) = known {
                    (turn.is_known, turn.has_begun) = (true, turn.has_begun || has_begun);
                }
                self.put(item);
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

    /// Ends the turns that a result answers, and returns whether there were any. Each gets the result.
    fn end_answered(&mut self, prompts: &[String], is_nobodys: bool, result: &Item) -> bool {
        let (mut is_first, mut ends_any) = (true, false);
        for turn in self.open.iter_mut().filter(|turn| !turn.is_done) {
            // What names nobody, such as what an agent begins with by itself, answers none that still waits.
            let is_its_turn = is_first && !is_nobodys && (turn.has_begun || !turn.is_known);
            let ends = if prompts.is_empty() { is_its_turn } else { prompts.contains(&turn.uuid) };
            if ends {
                turn.finish(Some(result.clone()));
                ends_any = true;
            }
            is_first = false;
        }
        self.open.retain(|turn| !(turn.is_done && turn.is_abandoned));
        ends_any
    }

    /// Ends the turns of prompts that the CLI has and will not answer any more: it has nothing left to do.
    fn end_known(&mut self) {
        self.open.iter_mut().filter(|turn| turn.is_known && !turn.is_done).for_each(|turn| turn.finish(None));
        self.open.retain(|turn| !(turn.is_done && turn.is_abandoned));
    }

    /// Returns the next prompt that was held back, if there is nothing left for it to wait for.
    fn release(&mut self) -> Option<Value> {
        let is_free = self.open.iter().all(|turn| turn.is_done || turn.held.is_some());
        if is_free { self.open.iter_mut().find_map(|turn| turn.held.take()) } else { None }
    }

    fn put(&mut self, item: Item) {
        match self.open.iter_mut().find(|turn| !turn.is_done) {
            Some(turn) => turn.put(item),
            None => self.loose.put(item),
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
        self.open.retain(|turn| !(turn.is_done && turn.is_abandoned));
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
        self.open.retain(|turn| !turn.is_abandoned);
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
