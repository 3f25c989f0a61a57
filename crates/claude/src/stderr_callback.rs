//! What is called with the CLI's complaints.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A function that gets every line the CLI complains about.
#[derive(Clone)]
pub struct StderrCallback(Arc<dyn Fn(&str) + Send + Sync>);

impl StderrCallback {
    pub(crate) fn new(call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    /// Calls it. That it panics must not keep the next line from being read.
    pub(crate) fn call(&self, line: &str) {
        drop(catch_unwind(AssertUnwindSafe(|| (self.0)(line))));
    }
}

impl fmt::Debug for StderrCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StderrCallback")
    }
}
