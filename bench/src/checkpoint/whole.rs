//! Capturing whatever changed in a whole tree.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rethread_checkpoint::{Moment, Window};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags};

use super::forest::Forest;
use super::shadow_git::ShadowGit;
use super::{open, program};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let count = bench.scale.large_tree;
    let forest = Forest::plant(&bench.fresh()?, count)?;
    let (plain, tuned) =
        (ShadowGit::plain(&bench.fresh()?, &forest.root)?, ShadowGit::tuned(&bench.fresh()?, &forest.root)?);
    plain.capture()?;
    tuned.capture()?;
    let touched = forest.some(1);
    let git = |git: &ShadowGit| {
        forest.edit(&touched)?;
        Ok(seconds(|| git.capture())?.0 * 1e3)
    };
    let (store, other) = (bench.fresh()?, bench.fresh()?);
    let checkpoints = open(&store, &forest.root)?;
    let capture = || {
        forest.edit(&touched)?;
        let captured = seconds(|| {
            Ok(pollster::block_on(checkpoints.tree(Moment::default().tool("t"), Window::Tools))?)
        })?;
        Ok(captured.0 * 1e3)
    };
    capture()?;
    let walk = || Ok(seconds(|| bare_walk(&forest.root, count))?.0 * 1e3);
    let what = format!("whole-tree capture after 1 edit of {count} files, durable, library call");
    let library = Contest::new(what, Unit::Milliseconds, |_| capture())
        .peer("git add -A && write-tree, shadow, tuned", Bar::AtMost(1.0 / 2.0), |_| git(&tuned))
        .peer("the same, not tuned", Bar::Shown, |_| git(&plain))
        .peer("a bare walk with statx on two threads", Bar::AtMost(1.5), |_| walk())
        .run(bench)?;

    pollster::block_on(open(&other, &forest.root)?.tree(Moment::default(), Window::Idle))?;
    let program = program()?;
    let call = || {
        forest.edit(&touched)?;
        let mut command = Command::new(&program);
        command.args(["checkpoint", "s", "--tree", "--after"]).env("RETHREAD_HOME", &other);
        command.current_dir(&forest.root).stdout(Stdio::null());
        Ok(seconds(|| Ok(command.status()?.success().then_some(()).ok_or("rethread failed")?))?.0 * 1e3)
    };
    let what = format!("whole-tree capture after 1 edit of {count} files, durable, as a command");
    let command = Contest::new(what, Unit::Milliseconds, |_| call())
        .peer("git add -A && write-tree, shadow, tuned", Bar::AtMost(1.0 / 1.3), |_| git(&tuned))
        .run(bench)?;
    Ok(vec![library, command])
}

/// The first capture of a tree, which reads and stores everything.
pub(super) fn first(bench: &Bench) -> Outcome<Row> {
    let count = bench.scale.large_tree;
    let forest = Forest::plant(&bench.fresh()?, count)?;
    let capture = |folder: &std::path::Path| {
        let checkpoints = open(folder, &forest.root)?;
        Ok(seconds(|| Ok(pollster::block_on(checkpoints.tree(Moment::default(), Window::Idle))?))?.0 * 1e3)
    };
    let git = |folder: &std::path::Path| {
        let git = ShadowGit::plain(folder, &forest.root)?;
        Ok(seconds(|| git.capture())?.0 * 1e3)
    };
    let what = format!("first whole-tree capture of {count} files, durable");
    Contest::new(what, Unit::Milliseconds, capture)
        .peer("git add -A && write-tree, shadow", Bar::AtMost(1.0), git)
        .run_rounds(bench.scale.few_rounds, bench)
}

/// A folder's name in one that is open.
type Folder = (Arc<OwnedFd>, Vec<u8>);

struct Folders {
    waiting: Mutex<(Vec<Folder>, usize)>,
    changed: Condvar,
}

/// Looks at everything in a tree, relative to folder handles, and does nothing with it.
fn bare_walk(root: &std::path::Path, expected: usize) -> Outcome<()> {
    let root: OwnedFd = std::fs::File::open(root)?.into();
    let folders =
        Folders { waiting: Mutex::new((vec![(Arc::new(root), b".".to_vec())], 0)), changed: Condvar::new() };
    let walk = || -> Outcome<usize> {
        let mut files = 0;
        while let Some((parent, name)) = folders.next() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = rustix::fs::openat(&*parent, &*name, flags, Mode::empty())?;
            let names: Vec<Vec<u8>> = Dir::read_from(&folder)?
                .map(|entry| Ok(entry?.file_name().to_bytes().to_vec()))
                .collect::<Result<_, rustix::io::Errno>>()?;
            let (folder, mut found) = (Arc::new(folder), Vec::new());
            for name in names.into_iter().filter(|name| !matches!(&name[..], b"." | b"..")) {
                let stat = rustix::fs::statx(
                    folder.as_fd(),
                    &*name,
                    AtFlags::SYMLINK_NOFOLLOW,
                    StatxFlags::BASIC_STATS,
                )?;
                match FileType::from_raw_mode(stat.stx_mode.into()) {
                    FileType::Directory => found.push((folder.clone(), name)),
                    _ => files += 1,
                }
            }
            folders.done(found);
        }
        Ok(files)
    };
    let files = std::thread::scope(|scope| {
        let both = [scope.spawn(walk), scope.spawn(walk)];
        both.into_iter().map(|thread| thread.join().map_err(|_| "a walker failed")?).sum::<Outcome<usize>>()
    })?;
    if files == expected { Ok(()) } else { Err(format!("{files} files of {expected}").into()) }
}

impl Folders {
    fn next(&self) -> Option<Folder> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(folder) = waiting.0.pop() {
                waiting.1 += 1;
                return Some(folder);
            }
            if waiting.1 == 0 {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, found: Vec<Folder>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0.extend(found);
        waiting.1 -= 1;
        self.changed.notify_all();
    }
}
