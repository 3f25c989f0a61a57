//! The parts of the product that are measured, each with its own table.

use crate::backends;
use crate::bench::Bench;
use crate::checkpoint;
use crate::failure::Outcome;
use crate::row::Row;
use crate::{claude, keeper, store, transcripts};

/// One part of the product, and what is tried of it, one after the other.
#[derive(Clone)]
pub(crate) struct Area {
    pub(crate) name: &'static str,
    pub(crate) trials: Vec<Trial>,
    /// Some trials were left out.
    pub(crate) partial: bool,
}

/// One thing to try.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> Outcome<Vec<Row>>,
}

impl Area {
    /// Returns the areas with these names, or `area/trial` for one trial alone; all of them if there is no name.
    pub(crate) fn named(names: &[String]) -> Outcome<Vec<Area>> {
        let all = [
            ("store", store::TRIALS),
            ("checkpoint", checkpoint::TRIALS),
            ("transcripts", transcripts::TRIALS),
            ("claude", claude::TRIALS),
            ("keeper", keeper::TRIALS),
            ("backends", backends::TRIALS),
        ];
        let all = all.map(|(name, trials)| Area { name, trials: trials.to_vec(), partial: false });
        if names.is_empty() {
            return Ok(all.to_vec());
        }
        names.iter().map(|name| find(&all, name)).collect()
    }
}

fn find(all: &[Area], name: &str) -> Outcome<Area> {
    let (area, trial) = name.split_once('/').map_or((name, None), |(area, trial)| (area, Some(trial)));
    let unknown =
        |what, names: Vec<&str>| format!("there is no {what} {name}; there is: {}", names.join(", "));
    let found = all.iter().find(|known| known.name == area);
    let mut found = found.ok_or_else(|| unknown("area", all.iter().map(|area| area.name).collect()))?.clone();
    if let Some(trial) = trial {
        let names = found.trials.iter().map(|trial| trial.name).collect();
        found.trials.retain(|known| known.name == trial);
        found.partial = true;
        if found.trials.is_empty() {
            return Err(unknown("trial", names).into());
        }
    }
    Ok(found)
}
