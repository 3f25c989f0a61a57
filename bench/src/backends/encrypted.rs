//! What encryption costs, against the same store without it.

use std::path::Path;

use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_store::{FileBackend, Options, Store};

use super::milliseconds;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::row::{Row, Unit};
use crate::stopwatch::rate;

/// How many entries are loaded.
const LOADED: usize = 10_000;

fn plain(folder: &Path) -> Store {
    Store::new(FileBackend::new(folder), Options::default())
}

fn sealed(folder: &Path, key: &MasterKey) -> Store {
    Store::new(EncryptedBackend::new(FileBackend::new(folder), key), Options::default())
}

/// One caller, who waits for each entry.
pub(super) fn append(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(4).lines(0..bench.scale.durable);
    let (entries, count, key) = (entries(&lines)?, lines.len(), MasterKey::generate()?);
    let append = |store: Store| {
        let session = ours::create(&store, "parser")?;
        let appended = rate(count, || {
            Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
        });
        store.close()?;
        appended
    };
    // A quarter slower is four fifths of the rate.
    Contest::new("encrypted: durable append, one in flight", Unit::EntriesPerSecond, |folder| {
        append(sealed(folder, &key))
    })
    .peer("the same, not encrypted", Bar::AtLeast(0.8), |folder| append(plain(folder)))
    .run_rounds(bench.scale.many_rounds, bench)
}

/// A session that is opened and read as a whole.
pub(super) fn load(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(5).lines(0..LOADED.min(bench.scale.long));
    let (sealed_at, plain_at, key) = (bench.fresh()?, bench.fresh()?, MasterKey::generate()?);
    for made in [sealed(&sealed_at, &key), plain(&plain_at)] {
        ours::create_with(&made, "parser", &lines)?;
        made.close()?;
    }
    let expected: usize = lines.iter().map(|line| line.len()).sum();
    let load = |store: Store| {
        milliseconds(|| {
            let history = pollster::block_on(ours::open(&store, "parser")?.messages())?;
            let loaded: usize = history.records.iter().map(|record| record.entry.as_bytes().len()).sum();
            if loaded == expected { Ok(()) } else { Err("not all was loaded".into()) }
        })
    };
    Contest::new("encrypted: load of 10,000 entries", Unit::Milliseconds, |_| load(sealed(&sealed_at, &key)))
        .peer("the same, not encrypted", Bar::AtMost(1.25), |_| load(plain(&plain_at)))
        .run_rounds(bench.scale.many_rounds, bench)
}
