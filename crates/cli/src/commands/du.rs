//! `du`: what takes how much of the disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rethread_store::Error;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::size;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Du {
    answer: Answer,
}

impl From<args::Du> for Du {
    fn from(typed: args::Du) -> Self {
        Self { answer: Answer::of(typed.json) }
    }
}

/// What some files take together.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    files: u64,
    bytes: u64,
    /// In blocks of the disk, folders included.
    on_disk: u64,
}

impl Du {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let Some(folder) = context.folder() else {
            return Err(Failure::wrongly("only a store in a folder has a size", "`--store PATH` names one"));
        };
        let mut kinds = BTreeMap::new();
        add(folder, folder, &mut kinds)?;
        let all = kinds.values().fold(Taken::default(), |sum, taken| sum.and(*taken));
        for (kind, taken) in kinds.iter().map(|(kind, taken)| (*kind, taken)).chain([("all", &all)]) {
            match self.answer {
                Answer::Json => {
                    let Taken { files, bytes, on_disk } = taken;
                    let line = serde_json::json!({ "what": kind, "files": files, "bytes": bytes, "on_disk": on_disk });
                    ui.data(line.to_string().as_bytes())?;
                }
                Answer::Text => {
                    let line =
                        format!("{:>10}  {kind:<12} {}", size(taken.on_disk), count(taken.files, "file"));
                    ui.line(if kind == "all" { Tone::Strong } else { Tone::Plain }, &line)?;
                }
            }
        }
        ui.aside(&format!("{} clears away what nothing needs any more", context.command("gc --dry-run")));
        Ok(Done::Fully)
    }
}

impl Taken {
    fn and(self, other: Taken) -> Self {
        Self {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            on_disk: self.on_disk + other.on_disk,
        }
    }
}

fn add(root: &Path, folder: &Path, kinds: &mut BTreeMap<&'static str, Taken>) -> Result<(), Failure> {
    let names = match fs::read_dir(folder) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", folder)(error).into()),
    };
    for entry in names {
        let path = entry.map_err(Error::io("list", folder))?.path();
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            // Gone while we looked.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("look at", path)(error).into()),
        };
        let is_file = u64::from(!metadata.is_dir());
        let taken =
            Taken { files: is_file, bytes: metadata.len() * is_file, on_disk: metadata.blocks() * 512 };
        let sum = kinds.entry(kind(root, &path)).or_default();
        *sum = sum.and(taken);
        if metadata.is_dir() {
            add(root, &path, kinds)?;
        }
    }
    Ok(())
}

fn kind(root: &Path, path: &Path) -> &'static str {
    let within = path.strip_prefix(root).unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match within.iter().next().and_then(|first| first.to_str()) {
        Some("sessions") if name.starts_with("checkpoints") => "checkpoints",
        Some("sessions") => "sessions",
        Some("blobs") => "contents",
        Some("cache") => "caches",
        Some("quarantine") => "quarantine",
        Some("trash") => "trash",
        _ => "other",
    }
}
