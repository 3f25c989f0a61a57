//! `export`: a session as one file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rethread_store::{Error, Exported, Files, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::native;
use crate::text::count;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Export {
    session: NamedSession,
    to: Option<PathBuf>,
    claude: bool,
    files: Files,
}

impl From<args::Export> for Export {
    fn from(typed: args::Export) -> Self {
        let files = if typed.without_files { Files::LeftOut } else { Files::Included };
        Self { session: typed.id, to: typed.output, claude: typed.claude, files }
    }
}

impl Export {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = pollster::block_on(self.session.find(context))?;
        if self.claude {
            let (written, _) = native::export(&id, context)?;
            ui.data(written.path.as_os_str().as_encoded_bytes())?;
            let resume = context.command(&format!("resume {}", context.short(&id)));
            ui.aside(&format!("Wrote {}; {resume} goes on with it.", count(written.entries as u64, "entry")));
            return Ok(Done::Fully);
        }
        let export = |out: &mut (dyn Write + Send)| {
            pollster::block_on(context.store.export_with(&id, self.files, out))
        };
        let exported = match &self.to {
            None => export(ui.raw()).map_err(|error| match &error {
                Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Failure::PipeClosed,
                _ => error.into(),
            })?,
            Some(path) if is_plain(path) => {
                // Written aside, so that the file is whole or not there.
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let aside = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
                let mut aside = aside.map_err(Error::io("write", path))?;
                let exported = export(aside.as_file_mut())?;
                aside.as_file().sync_all().map_err(Error::io("write", path))?;
                aside.persist(path).map_err(|error| Error::io("write", path)(error.error))?;
                exported
            }
            Some(path) => export(&mut File::create(path).map_err(Error::io("write", path))?)?,
        };
        Ok(tell(&exported, &id, context, ui))
    }
}

/// Returns whether a path is that of a file or of nothing yet: a pipe or a device must not be replaced.
fn is_plain(path: &Path) -> bool {
    path.metadata().map_or(true, |there| there.is_file())
}

fn tell(exported: &Exported, id: &SessionId, context: &Context, ui: &mut Ui) -> Done {
    let records = count(exported.records + exported.inherited, "record");
    let files = match exported.files {
        0 => String::new(),
        files => format!(" and {} of files", count(files, "content")),
    };
    ui.aside(&format!("Exported session {}, {records}{files}.", context.short(id)));
    if exported.missing > 0 {
        let (missing, verify) = (count(exported.missing, "content"), context.command_on("verify", id));
        ui.warn(&format!("{missing} of files could not be read and were left out; {verify} says which"));
    }
    if exported.lost == 0 {
        return if exported.missing == 0 { Done::Fully } else { Done::Partly };
    }
    let lost = count(exported.lost, "record");
    ui.warn(&format!("{lost} could not be read; the file says which"));
    Done::Partly
}
