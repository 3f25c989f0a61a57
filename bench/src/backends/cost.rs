//! What the same entries take up in each place: the table of `docs/scaling.md`.

use std::fs;
use std::path::Path;

use rethread_postgres::{PostgresBackend, Settings as PostgresSettings};
use rethread_s3::{S3Backend, Settings as S3Settings};
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::Backend;
use rethread_store::{Entry, FileBackend, Options, Store};
use rethread_testkit::{Postgres, S3};

use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::row::{Row, Unit};

/// How many entries come at once.
const BATCH: usize = 100;
/// Whatever belongs to our tables, indexes and long values included.
const TABLES: &str =
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'rethread' AND c.relkind = 'r'";

/// Stores entries, perhaps in a fresh folder, and returns how many bytes they take up.
type Fill = fn(&Path, &[Entry]) -> Outcome<u64>;

/// Stores the same entries in each place, and returns what that takes up beside the lines themselves.
pub(super) fn stored(bench: &Bench) -> Outcome<Vec<Row>> {
    let lines = Corpus::new(1).lines(0..bench.scale.long);
    let raw: usize = lines.iter().map(|line| line.len() + 1).sum();
    let entries = entries(&lines)?;
    let places: [(&str, Fill); 4] =
        [("files", files), ("SQLite", sqlite), ("PostgreSQL", postgres), ("S3", s3)];
    let row = |(place, fill): (&str, Fill)| {
        let title = format!("{place}: what {} entries take up", entries.len());
        // Once: it is the same every time.
        let size = fill(&bench.fresh()?, &entries)?;
        Contest::new(title, Unit::Mebibytes, |_| Ok(mebibytes(size)))
            .peer("raw JSON lines", Bar::Shown, |_| Ok(mebibytes(raw as u64)))
            .run_rounds(1, bench)
    };
    places.into_iter().map(row).collect()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn files(folder: &Path, entries: &[Entry]) -> Outcome<u64> {
    fill(FileBackend::new(folder), entries)?;
    size_of(folder)
}

fn sqlite(folder: &Path, entries: &[Entry]) -> Outcome<u64> {
    fill(SqliteBackend::new(folder.join("sessions.db")), entries)?;
    size_of(folder)
}

fn postgres(_: &Path, entries: &[Entry]) -> Outcome<u64> {
    let server = Postgres::shared().ok_or("PostgreSQL is not installed: apt-get install postgresql")?;
    let database = server.database();
    fill(PostgresBackend::new(PostgresSettings::parse(&server.url(&database))?)?, entries)?;
    Ok(server.sql(&database, TABLES).parse()?)
}

fn s3(_: &Path, entries: &[Entry]) -> Outcome<u64> {
    let server = S3::shared().ok_or("there is no S3 server: scripts/setup s3")?;
    let (bucket, way) = (server.bucket(), server.way());
    let settings = S3Settings::parse(&format!("s3://{bucket}/cost"))?.with_variables(way.variables());
    fill(S3Backend::new(&settings)?, entries)?;
    size_of(&server.objects(&bucket))
}

fn fill(backend: impl Backend + 'static, entries: &[Entry]) -> Outcome<()> {
    let store = Store::new(backend, Options::default());
    let session = ours::create(&store, "parser")?;
    for batch in entries.chunks(BATCH) {
        pollster::block_on(session.append_all(batch.to_vec()))?.wait()?;
    }
    Ok(store.close()?)
}

/// Returns how many bytes the files beneath a folder have.
fn size_of(folder: &Path) -> Outcome<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        size += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}
