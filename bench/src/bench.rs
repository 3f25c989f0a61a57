//! One run: how much it does, where it writes, and where its rows go.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::area::Area;
use crate::failure::Outcome;
use crate::ground::Ground;
use crate::row::Row;
use crate::scale::Scale;

/// One run of one area.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) ground: Ground,
    area: &'static str,
    /// Where the rows go.
    pub(crate) file: PathBuf,
}

impl Bench {
    /// Begins a run, in the build's own folder: that is on a real disk, and nobody minds what is left there.
    ///
    /// A quick or partial run does not replace the rows of a real one.
    pub(crate) fn new(area: &Area, scale: Scale) -> Outcome<Self> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).ok_or("the program is in no build folder")?;
        let results = target.join("bench");
        let suffix = match (scale.judged, area.partial) {
            (true, false) => "",
            (true, true) => ".partial",
            (false, _) => ".quick",
        };
        let file = results.join(format!("{}{suffix}.json", area.name));
        Ok(Self { scale, ground: Ground::beneath(&results)?, area: area.name, file })
    }

    /// Writes the rows, one JSON object a line.
    pub(crate) fn keep(&self, rows: &[Row]) -> Outcome<()> {
        let mut file = std::fs::File::create(&self.file)?;
        for row in rows {
            let mut line = json!({ "area": self.area, "holds": row.holds() });
            if let (Some(line), serde_json::Value::Object(row)) =
                (line.as_object_mut(), serde_json::to_value(row)?)
            {
                line.extend(row);
            }
            writeln!(file, "{line}")?;
        }
        Ok(())
    }

    /// Makes a folder that was never there before.
    pub(crate) fn fresh(&self) -> Outcome<PathBuf> {
        self.ground.fresh()
    }
}

/// Returns how long a file is.
pub(crate) fn length(path: &Path) -> Outcome<u64> {
    Ok(std::fs::metadata(path)?.len())
}
