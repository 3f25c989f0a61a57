//! Sessions in S3: what is counted is requests, which is what costs money and time there.

use rethread_s3::{S3Backend, Settings};
use rethread_store::{Options, Store};
use rethread_testkit::{S3 as Server, S3Proxy};

use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::row::{Row, Unit};

/// How many entries are appended, and how many at once.
const APPENDED: usize = 10_000;
const BATCH: usize = 100;
/// How many requests may open a log.
const FEW: f64 = 5.0;
/// A bucket of its own, and a way to it that counts.
struct Place {
    url: String,
    way: S3Proxy,
}

impl Place {
    fn new() -> Outcome<Self> {
        let server = Server::shared().ok_or("there is no S3 server: scripts/setup s3")?;
        Ok(Self { url: format!("s3://{}/bench", server.bucket()), way: server.way() })
    }

    fn store(&self) -> Outcome<Store> {
        let settings = Settings::parse(&self.url)?.with_variables(self.way.variables());
        Ok(Store::new(S3Backend::new(&settings)?, Options::default()))
    }

    /// Appends batch by batch to a new session in an empty bucket, and closes the store. Returns how many requests that
    /// took, from the first to the last: none is left out.
    fn fill(&self, count: usize) -> Outcome<f64> {
        let entries = entries(&Corpus::new(1).lines(0..count))?;
        self.way.requests();
        let store = self.store()?;
        let session = ours::create(&store, "parser")?;
        for batch in entries.chunks(BATCH) {
            pollster::block_on(session.append_all(batch.to_vec()))?.wait()?;
        }
        store.close()?;
        Ok(self.way.requests().len() as f64)
    }
}

/// Everything that is asked: to make the place and the session, to append and to merge, to remember what the session is.
pub(super) fn append(bench: &Bench) -> Outcome<Row> {
    let count = APPENDED.min(bench.scale.long);
    let batches = count.div_ceil(BATCH) as f64;
    let title =
        "S3 backend: requests per batch, 10,000 entries in batches of 100, from an empty bucket to the end";
    Contest::new(title, Unit::Requests, |_| Ok(Place::new()?.fill(count)? / batches))
        .peer("one for each", Bar::AtMost(1.1), |_| Ok(1.0))
        .run_rounds(1, bench)
}

/// Everything that a process asks which knows nothing but the name of the session.
pub(super) fn open(bench: &Bench) -> Outcome<Row> {
    let place = Place::new()?;
    place.fill(APPENDED.min(bench.scale.long))?;
    Contest::new("S3 backend: requests to open that log", Unit::Requests, |_| {
        let store = place.store()?;
        place.way.requests();
        ours::open(&store, "parser")?;
        Ok(place.way.requests().len() as f64)
    })
    .peer("a handful", Bar::AtMost(1.0), |_| Ok(FEW))
    .run_rounds(1, bench)
}
