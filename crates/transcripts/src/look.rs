//! A look at files: at both ends of those that changed, and at nothing of those that are as they were.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::catalog::{Catalog, Kept, Learnt, Record};
use crate::claude_folder::Links;
use crate::damage::Damage;
use crate::opening::Opening;
use crate::skim::{Buffer, Missing, Skim, is_missing};
use crate::walk::{Found, State};

/// How many threads look at files at most.
const MOST_THREADS: usize = 24;
/// For how many files each another thread is worth it.
const SHARE: usize = 32;
/// How many files a thread has fetched before it waits for the first: a disk does many things at once.
const BATCH: usize = 8;
/// A file that was written to so shortly before may be written to again without its time changing.
pub(crate) const RACY: i64 = 1_000_000_000;

/// What was learnt of some files, in their order.
pub(crate) struct Looked<'a> {
    pub(crate) learnt: Vec<Learnt<'a>>,
    /// Not all of it was known before, or some of that is gone.
    pub(crate) has_news: bool,
}

impl<'a> Looked<'a> {
    /// Looks at files that a catalog may know already.
    pub(crate) fn at(found: &[Found], catalog: &'a Catalog<'a>, links: Links) -> Self {
        let known = |found: &Found| catalog.kept.get(&*found.name()).filter(|kept| kept.fits(found.state));
        let mut learnt: Vec<Option<Learnt<'a>>> =
            found.iter().map(|found| known(found).map(Learnt::Kept)).collect();
        let mut stale: Vec<usize> = (0..found.len()).filter(|at| learnt[*at].is_none()).collect();
        // In the order of the disk, more or less.
        stale.sort_unstable_by_key(|at| found[*at].state.inode);
        let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(stale.len())));
        let work = || {
            let mut hand = Hand::default();
            while let Some(&at) = stale.get(next.fetch_add(1, Ordering::Relaxed)) {
                let known = catalog.kept.get(&*found[at].name());
                hand.take(at, || Look::at(&found[at], known, links));
            }
            all.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(hand.end());
        };
        if !stale.is_empty() {
            thread::scope(|scope| {
                for _ in 1..(stale.len() / SHARE).min(MOST_THREADS) {
                    scope.spawn(work);
                }
                work();
            });
        }
        for (at, record) in all.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            learnt[at] = Some(Learnt::Fresh(record));
        }
        let has_news = !stale.is_empty() || catalog.kept.len() > found.len();
        Self { learnt: learnt.into_iter().flatten().collect(), has_news }
    }
}

/// What one thread has learnt, and the files that it has had fetched.
#[derive(Default)]
struct Hand<'a> {
    own: Vec<(usize, Box<Record>)>,
    fetched: Vec<(usize, Look<'a>)>,
    buffer: Buffer,
}

impl<'a> Hand<'a> {
    /// Takes a file: what is in memory is read at once, and the rest once there are enough that have been asked for.
    fn take(&mut self, at: usize, open: impl Fn() -> Look<'a>) {
        let mut look = open();
        if look.file.is_err() && !self.fetched.is_empty() {
            // Perhaps because there are too many open files.
            self.read_fetched();
            look = open();
        }
        match look.record_in_memory(&mut self.buffer) {
            Some(record) => self.own.push((at, Box::new(record))),
            None => self.fetched.push((at, look)),
        }
        if self.fetched.len() == BATCH {
            self.read_fetched();
        }
    }

    fn read_fetched(&mut self) {
        let buffer = &mut self.buffer;
        self.own.extend(self.fetched.drain(..).map(|(at, look)| (at, Box::new(look.record(buffer)))));
    }

    fn end(mut self) -> Vec<(usize, Box<Record>)> {
        self.read_fetched();
        self.own
    }
}

/// A look at a file that was found.
pub(crate) struct Look<'a> {
    found: &'a Found,
    file: io::Result<File>,
    /// How it begins, if that is known from an earlier time.
    opening: Option<Opening>,
    /// What was damaged then.
    damage: Option<Damage>,
}

impl<'a> Look<'a> {
    /// Opens a file.
    pub(crate) fn at(found: &'a Found, known: Option<&Kept<'_>>, links: Links) -> Self {
        let opening = known.and_then(|kept| kept.beginning(found.state));
        let opening = opening.filter(|opening| opening.first_prompt.is_some());
        let damage = known.and_then(|kept| kept.damage_of(found.state)).cloned();
        Self { found, file: found.open(links), opening, damage }
    }

    /// Returns what the file says if all of that is in memory. If not, the system is asked to fetch it.
    fn record_in_memory(&self, buffer: &mut Buffer) -> Option<Record> {
        let (file, size) = (self.file.as_ref().ok()?, self.found.state.size);
        match Skim::of(file, size, self.opening.as_ref(), buffer, Missing::Leave) {
            Ok(skim) => Some(self.record_of(skim)),
            Err(error) => {
                if is_missing(&error) {
                    Skim::announce(file, size, self.opening.as_ref());
                }
                None
            }
        }
    }

    /// Returns what the file says, or that it cannot be read.
    pub(crate) fn record(self, buffer: &mut Buffer) -> Record {
        let (file, size) = (self.file.as_ref().ok(), self.found.state.size);
        let opening = self.opening.as_ref();
        // As long as it was when it was found: if it has grown since, the next listing sees that.
        match file.map(|file| Skim::of(file, size, opening, buffer, Missing::Await)) {
            Some(Ok(skim)) => self.record_of(skim),
            // Never kept as known: the time of writing is that of no file.
            _ => {
                let state = State { inode: 0, modified: i64::MAX - RACY, ..self.found.state };
                Record { state, ..self.record_of(Skim::default()) }
            }
        }
    }

    fn record_of(&self, skim: Skim) -> Record {
        Record { state: self.found.state, message_count: None, damage: self.damage.clone(), skim }
    }
}
