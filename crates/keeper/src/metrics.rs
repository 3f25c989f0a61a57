//! Counters for whoever watches the keeper itself, in Prometheus' text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down; it goes down when what it counts is dropped.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

/// Something that is counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted<'a>(&'a Gauge);

impl Gauge {
    pub(crate) fn one(&self) -> Counted<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: Counter,
    pub(crate) refused: Counter,
    pub(crate) events: Counter,
    pub(crate) sent: Counter,
    pub(crate) resyncs: Counter,
    pub(crate) clients: Gauge,
}

impl Metrics {
    /// Returns all of it as text; `more` are gauges that others keep.
    pub(crate) fn text(&self, more: &[(&str, &str, u64)]) -> String {
        let counters = [
            ("requests_total", "Requests that came.", self.requests.get()),
            ("refused_total", "Requests that were refused.", self.refused.get()),
            ("events_total", "Events that were published.", self.events.get()),
            ("frames_sent_total", "Frames that were sent to clients of the stream.", self.sent.get()),
            ("resyncs_total", "Clients that were told to read anew.", self.resyncs.get()),
        ];
        let gauges = [("stream_clients", "Clients of the stream.", self.clients.get())];
        let mut text = String::new();
        let mut write = |kind: &str, (name, help, value): (&str, &str, u64)| {
            let name = format!("rethread_keeper_{name}");
            // A string takes whatever is written to it.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        counters.into_iter().for_each(|counter| write("counter", counter));
        gauges.into_iter().chain(more.iter().copied()).for_each(|gauge| write("gauge", gauge));
        text
    }
}
