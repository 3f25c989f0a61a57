//! How long an agent's loop is held up by an append, while the queue has room.

use std::time::Instant;

use rethread_store::backend::Durability;

use super::tasks::TASKS;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::bare::{Bare, with_newlines};
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::stopwatch::seconds;

/// Appends in bursts that the queue has room for; the writer is at work all the while.
pub(crate) fn run(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(7).lines(0..bench.scale.shared / 4);
    let entries = entries(&lines)?;
    let written = with_newlines(&lines[..bench.scale.durable.min(lines.len())]);
    Contest::new("time to accept an append, p99", Unit::Microseconds, |folder| {
        let store = ours::store(folder, Durability::Synced);
        let session = ours::create(&store, "parser")?;
        let mut accepted = Samples::default();
        for burst in entries.chunks(TASKS) {
            let mut tickets = Vec::with_capacity(TASKS);
            for entry in burst {
                let entry = entry.clone();
                let begun = Instant::now();
                let ticket = pollster::block_on(session.append(entry))?;
                accepted.push(begun.elapsed().as_secs_f64() * 1e6);
                tickets.push(ticket);
            }
            tickets.into_iter().try_for_each(|ticket| ticket.wait().map(drop))?;
        }
        store.close()?;
        Ok(accepted.quantile(0.99))
    })
    .peer("bare write+fdatasync, median", Bar::AtMost(0.1), |folder| {
        let mut file = Bare::create(&folder.join("messages.jsonl"))?;
        let mut synced = Samples::default();
        for line in &written {
            synced.push(seconds(|| file.write_durably(line))?.0 * 1e6);
        }
        Ok(synced.median())
    })
    .run_rounds(bench.scale.many_rounds, bench)
}
