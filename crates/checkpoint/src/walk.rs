//! Walking a tree on several threads: what is not as it is known to be.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::folder_names::{Lookup, names_in};
use crate::folder_queue::{Queue, Task};
use crate::ignored::{IGNORED, Ignored};
use crate::known::{Item, Known, join};
use crate::look::{Print, look_in};
use crate::mark::is_mark;
use crate::pack::{Packed, Packer};
use crate::path::TreePath;
use crate::record::LeftOut;
use crate::state::{Present, State};

/// More contents than this go into packs.
const FEW: usize = 32;
const FEW_BYTES: usize = 4 << 20;

/// What a walk needs to know.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) known: Known,
    /// Folders that are never looked into, by device and inode.
    pub(crate) never: Vec<(u64, u64)>,
    pub(crate) file_limit: u64,
    pub(crate) total_limit: u64,
    pub(crate) paths_limit: u64,
    pub(crate) seen: AtomicU64,
    pub(crate) stored: AtomicU64,
}

/// Something that is not as it is known to be.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: TreePath,
    pub(crate) state: State,
    pub(crate) print: Print,
}

/// What a walk finds, as it finds it.
#[derive(Debug)]
pub(crate) enum News {
    /// Small contents in a pack.
    Packed(Packed),
    /// A few small contents.
    Few(Vec<(Found, Vec<u8>)>),
    /// What needs no content stored, or is too large for a pack.
    Plain(Vec<Found>),
    /// Names that are no longer there.
    Gone(Vec<TreePath>),
    /// The same, only that it looks different: times, for instance.
    Fresh(Vec<(TreePath, Print)>),
    /// What was not looked at.
    LeftOut(Vec<LeftOut>),
    /// The root itself cannot be read.
    Failed(std::io::Error),
}

/// Starts a walk. What it finds comes through the channel, which ends with it.
pub(crate) fn start(walk: &Arc<Walk>, root: OwnedFd) -> (Receiver<News>, Vec<JoinHandle<()>>) {
    let (tell, news) = sync_channel(16);
    let queue = Arc::new(Queue::default());
    queue.push(vec![Task { path: Vec::new(), parent: Arc::new(root), ignored: None }]);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let start = |_| {
        let (queue, walk, tell) = (queue.clone(), walk.clone(), tell.clone());
        std::thread::spawn(move || {
            let (packer, few) = (Packer::default(), Vec::new());
            Walker { walk: &walk, tell, packer, few, few_bytes: 0 }.run(&queue);
        })
    };
    (news, (0..threads).map(start).collect())
}

struct Walker<'a> {
    walk: &'a Walk,
    tell: SyncSender<News>,
    packer: Packer,
    few: Vec<(Found, Vec<u8>)>,
    few_bytes: usize,
}

/// What one folder holds that is worth telling.
#[derive(Default)]
struct Harvest {
    plain: Vec<Found>,
    gone: Vec<TreePath>,
    fresh: Vec<(TreePath, Print)>,
    left_out: Vec<LeftOut>,
    folders: Vec<Task>,
}

impl Walker<'_> {
    fn run(mut self, queue: &Queue) {
        let mut buffer = Vec::with_capacity(32 << 10);
        while let Some(task) = queue.next() {
            let mut harvest = Harvest::default();
            if let Err(error) = self.folder(&task, &mut buffer, &mut harvest) {
                match TreePath::parse(&task.path) {
                    Ok(path) => harvest.left_out.push(LeftOut { path, reason: error.to_string() }),
                    Err(_) => self.send(News::Failed(error)),
                }
            }
            queue.push(std::mem::take(&mut harvest.folders));
            self.tell_all(harvest);
            queue.done();
        }
        if !self.packer.is_empty() {
            let packed = self.packer.finish();
            self.send(News::Packed(packed));
        }
        if !self.few.is_empty() {
            let few = std::mem::take(&mut self.few);
            self.send(News::Few(few));
        }
    }

    fn tell_all(&self, harvest: Harvest) {
        let Harvest { plain, gone, fresh, left_out, .. } = harvest;
        for (empty, news) in [
            (plain.is_empty(), News::Plain(plain)),
            (gone.is_empty(), News::Gone(gone)),
            (fresh.is_empty(), News::Fresh(fresh)),
            (left_out.is_empty(), News::LeftOut(left_out)),
        ] {
            if !empty {
                self.send(news);
            }
        }
    }

    fn send(&self, news: News) {
        // Whoever does not listen any more has failed and says so itself.
        let _ = self.tell.send(news);
    }

    fn folder(&mut self, task: &Task, buffer: &mut Vec<u8>, harvest: &mut Harvest) -> std::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The root too is opened anew: a copied handle would go on where the last walk had ended.
        let name = if task.path.is_empty() { b"." } else { last_name(&task.path) };
        let folder = rustix::fs::openat(&task.parent, OsStr::from_bytes(name), flags, Mode::empty())?;
        let names = names_in(folder.as_fd(), buffer)?;
        if names.iter().any(is_mark) {
            return Err(std::io::Error::other("a rewind was interrupted there, or is under way"));
        }
        let rules = names.iter().any(Ignored::is_rules);
        let ignored = match rules {
            true => Ignored::within(task.ignored.clone(), folder.as_fd(), &task.path),
            false => task.ignored.clone(),
        };
        let folder = Arc::new(folder);
        let empty = Vec::new();
        let known = self.walk.known.folders.get(&task.path[..]).unwrap_or(&empty);
        let mut lookup = Lookup::new(known);
        for name in names.iter() {
            let item = lookup.find(name);
            self.name(task, &folder, name, item, ignored.as_ref(), harvest);
        }
        harvest.gone.extend(lookup.unseen().filter_map(|item| join(&task.path, &item.name)));
        Ok(())
    }

    /// Looks at one name.
    fn name(
        &mut self,
        task: &Task,
        folder: &Arc<OwnedFd>,
        name: &[u8],
        item: Option<&Item>,
        ignored: Option<&Arc<Ignored>>,
        harvest: &mut Harvest,
    ) {
        let stat = match rustix::fs::statat(folder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => {
                harvest.gone.extend(item.and_then(|_| join(&task.path, name)));
                return;
            }
            Err(error) => {
                let why = std::io::Error::from(error).to_string();
                harvest.left_out.extend(join(&task.path, name).map(|path| LeftOut { path, reason: why }));
                return;
            }
        };
        let print = Print::of(&stat);
        let is_folder = print.kind() == FileType::Directory;
        let is_same = match item {
            Some(item) if is_folder => {
                item.state.same(&State::Present(Present::Folder { mode: Some(print.rwx()) }))
            }
            Some(item) => item.is_still(&print),
            None => false,
        };
        if is_same && !is_folder {
            return;
        }
        let Some(path) = join(&task.path, name) else { return };
        if is_folder && self.walk.never.contains(&(print.device, print.inode)) {
            return;
        }
        // What is known stays known, whatever the rules say now.
        if item.is_none() {
            if ignored.is_some_and(|ignored| ignored.leaves_out(path.as_bytes(), is_folder)) {
                harvest.left_out.push(LeftOut { path, reason: IGNORED.into() });
                return;
            }
            if self.walk.seen.fetch_add(1, Ordering::Relaxed) >= self.walk.paths_limit {
                let reason = format!("there are more than {} paths", self.walk.paths_limit);
                harvest.left_out.push(LeftOut { path, reason });
                return;
            }
        }
        if is_folder {
            let state = State::Present(Present::Folder { mode: Some(print.rwx()) });
            let (path_bytes, parent) = (path.as_bytes().to_vec(), folder.clone());
            if !is_same {
                harvest.plain.push(Found { path, state, print });
            }
            harvest.folders.push(Task { path: path_bytes, parent, ignored: ignored.cloned() });
            return;
        }
        self.look(folder.as_fd(), name, path, item, harvest);
    }

    /// Reads something that is not as it is known to be.
    fn look(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        path: TreePath,
        item: Option<&Item>,
        harvest: &mut Harvest,
    ) {
        let seen = look_in(folder, OsStr::from_bytes(name), self.walk.file_limit);
        let Some(print) = seen.print else {
            match seen.state {
                State::Absent => harvest.gone.extend(item.map(|_| path)),
                state => harvest.plain.push(Found { path, state, print: Print::default() }),
            }
            return;
        };
        if item.is_some_and(|item| item.state.same(&seen.state)) {
            harvest.fresh.push((path, print));
            return;
        }
        let mut found = Found { path, state: seen.state, print };
        let size = found.state.file().map_or(0, |file| file.size);
        if self.walk.stored.fetch_add(size, Ordering::Relaxed) + size > self.walk.total_limit {
            let reason = format!("the whole capture is over its limit of {} bytes", self.walk.total_limit);
            found.state = State::Skipped { reason };
        }
        match seen.bytes.filter(|_| found.state.file().is_some()) {
            Some(bytes) => self.keep(found, bytes, harvest),
            None => harvest.plain.push(found),
        }
    }

    fn keep(&mut self, found: Found, bytes: Vec<u8>, harvest: &mut Harvest) {
        self.few_bytes += bytes.len();
        self.few.push((found, bytes));
        if self.packer.is_empty() && self.few.len() <= FEW && self.few_bytes <= FEW_BYTES {
            return;
        }
        for (found, bytes) in std::mem::take(&mut self.few) {
            let path = found.path.clone();
            match self.packer.add(found, &bytes) {
                Ok(Some(packed)) => self.send(News::Packed(packed)),
                Ok(None) => {}
                Err(error) => harvest.left_out.push(LeftOut { path, reason: error.to_string() }),
            }
        }
    }
}

fn last_name(path: &[u8]) -> &[u8] {
    let after = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &path[after..]
}
