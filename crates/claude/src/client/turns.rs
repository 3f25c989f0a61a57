//! Whose a message is.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::frame::{Frame, FrameKind};
use crate::message::{Message, ResultMessage};

/// What a frame takes besides its bytes, roughly.
const OVERHEAD: usize = 128;
/// How the CLI says that it is at work, or is not any more.
const STATE: &[u8] = br#"{"type":"system","subtype":"session_state_changed""#;

/// What comes out of a stream.
pub(super) type Item = Result<Frame>;

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
    loose: VecDeque<Item>,
    /// Who waits for what is loose.
    following: Vec<Waker>,
    followers: usize,
    /// How many turns there were.
    opened: u64,
    /// Whether nobody will begin to take what is loose.
    is_closing: bool,
    waiting: usize,
    names_prompts: bool,
    is_at_work: bool,
    end: Option<Error>,
}

/// A turn's number. A UUID does not tell turns apart: the same prompt may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnId(u64);

#[derive(Debug)]
struct Turn {
    id: TurnId,
    uuid: String,
    queue: VecDeque<Item>,
    waker: Option<Waker>,
    /// The prompt, as long as it was not sent.
    held: Option<Value>,
    /// Whether the CLI has said that it has the prompt.
    is_known: bool,
    is_abandoned: bool,
    is_done: bool,
}

/// What a frame says about the prompt it belongs to.
#[derive(Default, Deserialize)]
#[serde(default)]
struct About {
    user_message_uuid: Option<String>,
    user_message_uuids: Option<Vec<String>>,
    command_uuid: Option<String>,
    state: Option<String>,
    origin: Option<Origin>,
    sdk_host_only: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Origin {
    kind: String,
}

impl Turns {
    /// Returns how many bytes wait to be read.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
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
        let queue = match is_first && self.followers == 0 {
            true => std::mem::take(&mut self.loose),
            false => VecDeque::new(),
        };
        let mut turn = Turn {
            id,
            uuid: uuid.to_owned(),
            queue,
            waker: None,
            held: None,
            is_known: false,
            is_abandoned: false,
            is_done: false,
        };
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
        let about = match &item {
            Ok(frame) if frame.kind() == FrameKind::Result => frame.read_leniently().unwrap_or_default(),
            Ok(frame) if frame.kind() == FrameKind::CommandLifecycle => {
                frame.read_leniently().unwrap_or_default()
            }
            Ok(frame) if frame.raw().starts_with(STATE) => frame.read_leniently().unwrap_or_default(),
            _ => {
                self.put(item);
                return Vec::new();
            }
        };
        let mut prompts = Vec::new();
        match &item {
            Ok(frame) if frame.kind() == FrameKind::Result => {
                if !self.end_answered(&about, &item) {
                    self.put(item);
                }
                if !self.names_prompts && self.open.iter().all(|turn| turn.is_done || turn.held.is_some()) {
                    prompts.extend(self.open.iter_mut().find_map(|turn| turn.held.take()));
                }
            }
            Ok(frame) if frame.kind() == FrameKind::CommandLifecycle => {
                self.names_prompts = true;
                prompts.extend(self.open.iter_mut().filter_map(|turn| turn.held.take()));
                let known = self.open.iter_mut().find(|turn| Some(&turn.uuid) == about.command_uuid.as_ref());
                if let Some(turn) = known {
                    turn.is_known = true;
                }
                self.put(item);
            }
            _ => {
                self.is_at_work = about.state.as_deref() != Some("idle");
                if !about.sdk_host_only {
                    self.put(item);
                }
                if !self.is_at_work {
                    self.end_known();
                    // Who follows may have waited for just that.
                    self.wake_followers();
                }
            }
        }
        prompts
    }

    /// Ends the turns that a result answers, and returns whether there were any. Each gets the result.
    fn end_answered(&mut self, about: &About, result: &Item) -> bool {
        let named =
            about.user_message_uuids.iter().flatten().chain(&about.user_message_uuid).collect::<Vec<_>>();
        let is_nobodys = about.origin.as_ref().is_some_and(|origin| origin.kind == "task-notification");
        let (mut is_first, mut ends_any) = (true, false);
        for turn in self.open.iter_mut().filter(|turn| !turn.is_done) {
            let ends = if named.is_empty() { is_first && !is_nobodys } else { named.contains(&&turn.uuid) };
            if ends {
                self.waiting += if turn.is_abandoned { 0 } else { size(result) };
                turn.finish((!turn.is_abandoned).then(|| result.clone()));
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

    fn put(&mut self, item: Item) {
        let Some(turn) = self.open.iter_mut().find(|turn| !turn.is_done) else {
            // How the CLI failed to begin is told with its end, even if nobody listens.
            let is_result = item.as_ref().is_ok_and(|frame| frame.kind() == FrameKind::Result);
            if !self.is_closing || self.followers > 0 || is_result {
                self.waiting += size(&item);
                self.loose.push_back(item);
                self.wake_followers();
            }
            return;
        };
        if !turn.is_abandoned {
            self.waiting += size(&item);
            turn.queue.push_back(item);
            turn.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Drops what is loose, and what will be, if nobody takes it.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        if self.followers == 0 {
            let left: usize = self.loose.drain(..).map(|item| size(&item)).sum();
            self.waiting = self.waiting.saturating_sub(left);
        }
    }

    fn wake_followers(&mut self) {
        self.following.drain(..).for_each(Waker::wake);
    }

    /// Ends a turn whose prompt was taken back, and returns whether it was never sent.
    pub(super) fn cancel(&mut self, uuid: &str) -> bool {
        let Some(turn) = self.open.iter_mut().find(|turn| turn.uuid == uuid && !turn.is_done) else {
            return false;
        };
        let was_held = turn.held.take().is_some();
        turn.finish(Some(Err(Error::Cancelled)));
        was_held
    }

    /// Returns whether a prompt was not sent yet.
    pub(super) fn is_held(&self, uuid: &str) -> bool {
        self.open.iter().any(|turn| turn.uuid == uuid && turn.held.is_some())
    }

    /// Takes the next message of a turn.
    pub(super) fn take(&mut self, id: TurnId, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let Some(turn) = self.open.iter_mut().find(|turn| turn.id == id) else {
            return Poll::Ready(None);
        };
        let item = turn.queue.pop_front();
        if item.is_none() && !turn.is_done {
            turn.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.waiting = self.waiting.saturating_sub(item.as_ref().map_or(0, size));
        Poll::Ready(item)
    }

    /// Lets go of a turn. What is still to come of it goes to nobody.
    pub(super) fn leave(&mut self, id: TurnId) {
        let Some(at) = self.open.iter().position(|turn| turn.id == id) else { return };
        let turn = &mut self.open[at];
        let left: usize = turn.queue.drain(..).map(|item| size(&item)).sum();
        turn.is_abandoned = true;
        // A prompt that was never sent was never asked.
        if turn.is_done || turn.held.is_some() {
            self.open.remove(at);
        }
        self.waiting = self.waiting.saturating_sub(left);
    }

    /// Says that somebody takes what is loose, or does not any more.
    pub(super) fn follow(&mut self, follows: bool) {
        self.followers = if follows { self.followers + 1 } else { self.followers.saturating_sub(1) };
        if !follows {
            // One that was woken and left has taken nothing: it is another's now.
            self.wake_followers();
            if self.is_closing {
                self.close();
            }
        }
    }

    /// Takes the next message that belongs to no turn.
    pub(super) fn take_loose(&mut self, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let item = self.loose.pop_front();
        if item.is_none() && self.end.is_none() {
            if !self.following.iter().any(|waker| waker.will_wake(context.waker())) {
                self.following.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        self.waiting = self.waiting.saturating_sub(item.as_ref().map_or(0, size));
        Poll::Ready(item)
    }

    /// Returns what results said that nobody asked for: why the CLI could not even begin.
    pub(super) fn unasked_results(&self) -> Vec<ResultMessage> {
        let messages = self.loose.iter().flatten().filter_map(|frame| frame.message().ok());
        let results = messages.filter_map(|message| match message {
            Message::Result(result) => Some(result),
            _ => None,
        });
        results.collect()
    }

    /// Tells everybody that nothing more will come.
    pub(super) fn finish(&mut self, end: &Error) {
        for turn in self.open.iter_mut().filter(|turn| !turn.is_done) {
            turn.finish(Some(Err(end.clone())));
        }
        self.open.retain(|turn| !turn.is_abandoned);
        if !matches!(end, Error::Ended { ending: crate::transport::Ending::Exited(0), .. }) {
            self.loose.push_back(Err(end.clone()));
        }
        self.is_at_work = false;
        self.end = Some(end.clone());
        self.wake_followers();
    }
}

impl Turn {
    fn finish(&mut self, last: Option<Item>) {
        self.queue.extend(last);
        self.is_done = true;
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

fn size(item: &Item) -> usize {
    OVERHEAD + item.as_ref().map_or(0, |frame| frame.raw().len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
