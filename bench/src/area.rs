//! The parts of the product that are measured, each with its own table.

use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::Row;
use crate::store;

/// One part of the product.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> Outcome<Vec<Row>>,
}

const ALL: &[Area] = &[Area { name: "store", run: store::run }];

impl Area {
    /// Returns the areas with these names; all of them if there is no name.
    pub(crate) fn named(names: &[String]) -> Outcome<Vec<Area>> {
        if names.is_empty() {
            return Ok(ALL.to_vec());
        }
        let find = |name: &String| {
            let known = || ALL.iter().map(|area| area.name).collect::<Vec<_>>().join(", ");
            let found = ALL.iter().find(|area| area.name == name).copied();
            found.ok_or_else(|| format!("there is no area {name}; there is: {}", known()).into())
        };
        names.iter().map(find).collect()
    }
}
