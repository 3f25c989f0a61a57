//! Reading a long session.

use std::path::Path;

use super::official::{Ask, python, typescript};
use super::{Task, made};
use crate::bar::Bar;
use crate::bench::{Bench, length};
use crate::contest::Contest;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::ui::Progress;

const ROUNDS: usize = 3;
/// How many messages somebody sees first.
const LAST: u64 = 50;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let (config, small, indexes) = (bench.fresh()?, bench.fresh()?, bench.fresh()?);
    let progress = Progress::begin("making a long session of Claude Code's");
    let long = made::one(&config, bench.scale.long)?;
    let short = made::one(&small, (bench.scale.long / 100).max(100))?;
    bench.ground.settle()?;
    progress.end();
    let mebibytes = length(&long)? as f64 / 1024.0 / 1024.0;
    let expected = typescript(&config, Ask::Messages(None))?.found;
    let read = |task: Task, place: &Path, found: u64| -> Outcome<Answer> {
        Errand::Transcripts { task, place: place.to_owned() }.send(found)
    };
    let all = |task: Task| read(task, &long, expected);
    let time = |answer: Outcome<Answer>| -> Outcome<f64> { Ok(answer?.seconds * 1e3) };
    let what = format!("active conversation, {expected} messages, {mebibytes:.0} MiB");
    let typed = Contest::new(format!("{what}, typed"), Unit::Milliseconds, |_| time(all(Task::Typed)))
        .peer("TypeScript SDK: getSessionMessages", Bar::AtMost(0.2), |_| {
            time(typescript(&config, Ask::Messages(None)))
        })
        .peer("Python SDK: get_session_messages", Bar::AtMost(0.083), |_| {
            time(python(&config, Ask::Messages(None)))
        })
        .run_rounds(ROUNDS, bench)?;
    let lazy = Contest::new(format!("{what}, lazily typed"), Unit::Milliseconds, |_| time(all(Task::Lazy)))
        .peer("TypeScript SDK: getSessionMessages", Bar::AtMost(0.1), |_| {
            time(typescript(&config, Ask::Messages(None)))
        })
        .run_rounds(ROUNDS, bench)?;
    let memory =
        Contest::new("peak memory of that, typed", Unit::Mebibytes, |_| Ok(all(Task::Typed)?.peak_mebibytes))
            .peer("TypeScript SDK: getSessionMessages", Bar::AtMost(0.333), |_| {
                Ok(typescript(&config, Ask::Messages(None))?.peak_mebibytes)
            })
            .run_rounds(ROUNDS, bench)?;
    let last = |place: &Path, index: Option<&str>| {
        let index = index.map(|name| indexes.join(name));
        time(read(Task::Last { index, count: LAST }, place, LAST))
    };
    last(&long, Some("long"))?;
    last(&short, Some("short"))?;
    let page = Ask::Messages(Some((expected as usize - LAST as usize, LAST as usize)));
    let paged = |_: &Path| time(typescript(&config, page));
    let indexed = Contest::new(format!("last {LAST} messages, with an index"), Unit::Milliseconds, |_| {
        last(&long, Some("long"))
    })
    .peer("TypeScript SDK with a limit", Bar::AtMost(0.02), paged)
    .peer("the same of a session of a hundredth", Bar::AtMost(2.0), |_| last(&short, Some("short")))
    .run(bench)?;
    let scanned = Contest::new(format!("last {LAST} messages, without an index"), Unit::Milliseconds, |_| {
        last(&long, None)
    })
    .peer("TypeScript SDK with a limit", Bar::AtMost(0.333), paged)
    .run_rounds(ROUNDS, bench)?;
    Ok(vec![typed, lazy, memory, indexed, scanned])
}
