//! Functions of the host's that the CLI calls at moments of the agent's life.

mod event;
mod input;
mod output;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

pub use event::HookEvent;
pub use input::HookInput;
pub use output::HookOutput;

/// The longest time that the CLI is told of, in seconds. What is longer than a timer of JavaScript's, a little more than 24
/// days, would be over at once.
const LONGEST: u64 = 24 * 24 * 60 * 60;

type Answer = Pin<Box<dyn Future<Output = HookOutput> + Send>>;

/// A hook: which tools it is for, what it does, how long that may take.
#[derive(Clone)]
pub struct HookMatcher {
    matcher: String,
    call: Arc<dyn Fn(HookInput) -> Answer + Send + Sync>,
    timeout: Duration,
}

impl HookMatcher {
    /// Returns a hook for the tools that a pattern names (`Edit|Write`), all of them if it is empty.
    pub fn new<F, A>(matcher: impl Into<String>, call: F) -> Self
    where
        F: Fn(HookInput) -> A + Send + Sync + 'static,
        A: Future<Output = HookOutput> + Send + 'static,
    {
        let call = Arc::new(move |input| -> Answer { Box::pin(call(input)) });
        Self { matcher: matcher.into(), call, timeout: Duration::from_secs(60) }
    }

    /// Returns it with another time than a minute.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn limit(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn call(&self, input: HookInput) -> Answer {
        (self.call)(input)
    }
}

impl fmt::Debug for HookMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookMatcher").field("matcher", &self.matcher).finish_non_exhaustive()
    }
}

/// All hooks of a session, in the order they were added.
#[derive(Clone, Debug, Default)]
pub struct Hooks(Vec<(HookEvent, HookMatcher)>);

impl Hooks {
    pub(crate) fn add(&mut self, event: HookEvent, matcher: HookMatcher) {
        // What is known is known by its name, too: a hook that fails before a tool denies it, however it was named.
        self.0.push((HookEvent::from(event.as_str()), matcher));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hook that a callback id names, and its event.
    pub(crate) fn find(&self, id: &str) -> Option<&(HookEvent, HookMatcher)> {
        let index: usize = id.strip_prefix("hook_")?.parse().ok()?;
        self.0.get(index)
    }

    /// Returns the hooks as the CLI is told of them. Its limit is a little longer than ours, so that ours answers first.
    pub(crate) fn to_json(&self) -> Value {
        let mut events = Map::new();
        for (index, (event, hook)) in self.0.iter().enumerate() {
            let matcher = (!hook.matcher.is_empty()).then_some(&hook.matcher);
            let seconds = hook.timeout.as_secs().saturating_add(2).min(LONGEST);
            let told = json!({ "matcher": matcher, "hookCallbackIds": [format!("hook_{index}")], "timeout": seconds });
            let of_event = events.entry(event.as_str()).or_insert_with(|| json!([]));
            if let Value::Array(hooks) = of_event {
                hooks.push(told);
            }
        }
        Value::Object(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_may_take_for_ever_and_no_timer_runs_over() {
        let mut hooks = Hooks::default();
        let hook = HookMatcher::new("", async |_| HookOutput::proceed());
        for timeout in [Duration::from_secs(60), Duration::MAX] {
            hooks.add(HookEvent::Stop, hook.clone().timeout(timeout));
        }
        let told = hooks.to_json();
        assert_eq!((&told["Stop"][0]["timeout"], &told["Stop"][1]["timeout"]), (&json!(62), &json!(LONGEST)));
        assert!(LONGEST * 1000 < i32::MAX as u64);
    }
}
