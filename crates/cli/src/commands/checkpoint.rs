//! `checkpoint`: records what files are.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rethread_checkpoint::{Checkpoint as Recorded, Checkpointer, Moment, Window};
use rethread_store::EntryId;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::{self, failure};
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Checkpoint {
    session: NamedSession,
    what: What,
    moment: Moment,
    root: args::Root,
    answer: Answer,
}

#[derive(Debug)]
enum What {
    Before(Vec<PathBuf>),
    After(Vec<PathBuf>),
    Tree(Window),
    Pin(EntryId, rethread_checkpoint::Keep),
}

impl From<args::Checkpoint> for Checkpoint {
    fn from(typed: args::Checkpoint) -> Self {
        let window = if typed.after { Window::Tools } else { Window::Idle };
        let full = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let paths = typed.paths.into_iter().map(full).collect();
        let what = match (typed.pin, typed.unpin) {
            (Some(id), _) => What::Pin(id, rethread_checkpoint::Keep::Pinned),
            (_, Some(id)) => What::Pin(id, rethread_checkpoint::Keep::Free),
            _ if typed.tree => What::Tree(window),
            _ if typed.after => What::After(paths),
            _ => What::Before(paths),
        };
        let moment = Moment { id: typed.id, message: typed.message, tool_use: typed.tools };
        Self { session: typed.session, what, moment, root: typed.root, answer: Answer::of(typed.json) }
    }
}

impl Checkpoint {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = pollster::block_on(self.session.open(context))?;
        let checkpoints = files::open(&session, &self.root, context, ui)?;
        let recorded = match self.what {
            What::Before(paths) => {
                let tell = telling(ui);
                pollster::block_on(checkpoints.before_telling(self.moment, &paths, &tell))
            }
            What::After(paths) => {
                let tell = telling(ui);
                pollster::block_on(checkpoints.after_telling(self.moment, &paths, &tell))
            }
            What::Tree(window) => tree(&checkpoints, self.moment, window, ui),
            What::Pin(id, keep) => {
                pollster::block_on(checkpoints.pin(&id, keep)).map_err(failure)?;
                return Ok(Done::Fully);
            }
        };
        let recorded = recorded.map_err(failure)?;
        if !checkpoints.is_on() {
            ui.warn("checkpoints are switched off; nothing was recorded");
            return Ok(Done::Partly);
        }
        match self.answer {
            Answer::Json => ui.data(&serde_json::to_vec(&recorded).unwrap_or_default())?,
            Answer::Text => ui.data(recorded.id.as_str().as_bytes())?,
        }
        ui.aside(&format!(
            "{}; {} goes back there",
            count(recorded.changes.len(), "path"),
            context.command(&format!("rewind {} --to {}", context.short(session.id()), recorded.id))
        ));
        recorded.missed.iter().for_each(|missed| ui.warn(&format!("not captured: {missed}")));
        Ok(if recorded.missed.is_empty() { Done::Fully } else { Done::Partly })
    }
}

/// Returns what shows how many paths are captured.
fn telling(ui: &mut Ui) -> impl Fn(usize, usize) + Send + Sync {
    let ui = Mutex::new(ui);
    move |done, all| {
        ui.lock().unwrap_or_else(PoisonError::into_inner).progress("Capturing path", done, all);
    }
}

fn tree(
    checkpoints: &Checkpointer,
    moment: Moment,
    window: Window,
    ui: &mut Ui,
) -> rethread_checkpoint::Result<Recorded> {
    let ui = Mutex::new(ui);
    let tell = |seen| {
        ui.lock().unwrap_or_else(PoisonError::into_inner).progress_so_far("Paths read so far:", seen);
    };
    pollster::block_on(checkpoints.tree_telling(moment, window, &tell))
}
