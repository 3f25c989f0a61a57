//! The same work by rethread, by its peers and by bare system calls, side by side.

mod area;
mod backends;
mod bar;
mod bench;
mod careless_disk;
mod checkpoint;
mod claude;
mod contest;
mod corpus;
mod counting_disk;
mod errand;
mod failure;
mod ground;
mod keeper;
mod neighbours;
mod ours;
mod peers;
mod row;
mod samples;
mod scale;
mod stopwatch;
mod store;
mod transcripts;
mod typed_entry;
mod ui;

use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::area::Area;
use crate::bench::Bench;
use crate::errand::Errand;
use crate::failure::Outcome;
use crate::row::Row;
use crate::scale::Scale;

/// Measures rethread against its peers, and fails where a bar does not hold.
#[derive(Debug, Parser)]
#[command(name = "rethread-bench")]
struct Args {
    /// Which areas to measure, or `area/trial`; all of them if none is named.
    areas: Vec<String>,
    /// Small sizes and two rounds, to see that it runs; no bar is judged.
    #[arg(long)]
    quick: bool,
    /// An errand for a process of its own, as JSON.
    #[arg(long, hide = true)]
    errand: Option<String>,
}

fn main() -> ExitCode {
    rethread_claude::guard::init();
    let done = match claude::serve_if_asked() {
        Ok(false) => run(Args::parse()),
        Ok(true) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        ui::error(&*error);
        ExitCode::FAILURE
    })
}

fn run(args: Args) -> Outcome<ExitCode> {
    if let Some(errand) = args.errand {
        ui::answer(&serde_json::from_str::<Errand>(&errand)?.run()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let scale = if args.quick { Scale::quick() } else { Scale::full() };
    // A thousand clients are a thousand files, which is about as many as a shell usually allows.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum })?;
    let mut all_hold = true;
    for area in Area::named(&args.areas)? {
        let bench = Bench::new(&area, scale.clone())?;
        let rows: Vec<Vec<Row>> =
            area.trials.iter().map(|trial| (trial.run)(&bench)).collect::<Outcome<_>>()?;
        let rows = rows.concat();
        bench.keep(&rows)?;
        ui::table(area.name, &rows, &bench)?;
        all_hold &= rows.iter().all(Row::holds);
    }
    Ok(if all_hold || args.quick { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
