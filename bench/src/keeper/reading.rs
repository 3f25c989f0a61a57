//! The first page of many sessions, and the last page of a long one.

use serde_json::Value;

use super::served::Served;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;
use crate::transcripts::{Ask, made, typescript};
use crate::ui::Progress;

const ROUNDS: usize = 5;
/// How many somebody sees first.
const PAGE: usize = 50;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let (many, long, home) = (bench.fresh()?, bench.fresh()?, bench.fresh()?);
    let (count, lines) = (bench.scale.sessions, bench.scale.long);
    let progress = Progress::begin(format!("making {count} sessions and one of {lines} lines"));
    made::many(&many, count)?;
    made::one(&long, lines)?;
    bench.ground.settle()?;
    progress.end();
    let page = PAGE.min(count);
    let mut served = Served::start(&home, &many, None)?;
    let mut ask = |path: &str, expected: usize| -> Outcome<f64> {
        let (seconds, answer) = seconds(|| served.get(path))?;
        let found = serde_json::from_slice::<Value>(&answer)?["items"].as_array().map_or(0, Vec::len);
        match found == expected {
            true => Ok(seconds * 1e3),
            false => Err(format!("{path} has {found} items, not {expected}").into()),
        }
    };
    let first = format!("/sessions?limit={PAGE}");
    ask(&first, page)?;
    let listed = Contest::new(format!("first {page} of {count} sessions, warm"), Unit::Milliseconds, |_| {
        ask(&first, page)
    })
    .peer("TypeScript SDK: listSessions with a limit", Bar::AtMost(0.02), |_| {
        Ok(typescript(&many, Ask::List(Some(PAGE)))?.seconds * 1e3)
    })
    .run_rounds(ROUNDS, bench)?;
    let other = bench.fresh()?;
    let mut served = Served::start(&other, &long, None)?;
    let all = typescript(&long, Ask::Messages(None))?.found as usize;
    let (last, path) =
        (Ask::Messages(Some((all - PAGE, PAGE))), format!("/sessions/{}/messages?limit={PAGE}", made::id(0)));
    served.get(&path)?;
    let read = Contest::new(format!("last {PAGE} of a session of {lines} lines"), Unit::Milliseconds, |_| {
        let (seconds, answer) = seconds(|| served.get(&path))?;
        let found = serde_json::from_slice::<Value>(&answer)?["items"].as_array().map_or(0, Vec::len);
        if found == PAGE { Ok(seconds * 1e3) } else { Err(format!("{found} messages came").into()) }
    })
    .peer("TypeScript SDK: getSessionMessages", Bar::AtMost(0.02), |_| {
        Ok(typescript(&long, last)?.seconds * 1e3)
    })
    .run_rounds(ROUNDS, bench)?;
    Ok(vec![listed, read])
}
