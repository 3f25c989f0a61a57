//! A sync that fails once and then lies: the disk under a mounted image is full for a while.
//!
//! The cache goes on showing what was written, and the next sync of the same file reports success although the disk
//! never got it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::appender::{Appender, Pace};
use super::effort::{Effort, Round};
use super::ledger::{Ledger, Run};
use super::mounted::{Image, Mounted};
use crate::kit::Home;

/// A file system in an image on a disk that can be filled up behind its back.
struct Shaky {
    home: Home,
    image: Image,
    disk: Option<Mounted>,
    _below: Mounted,
}

impl Shaky {
    fn new(kind: &str) -> Option<Self> {
        let mut home = Home::new();
        home.move_to("disk/store");
        let below = Mounted::tmpfs(&home.path().join("below"), "size=400m")?;
        let file = home.path().join("below/image");
        let image = Image::in_file(kind, "defaults", &file)?;
        image.hollow_out();
        // So little that it is filled up in no time.
        let used = fs::metadata(file).unwrap().blocks() / 2;
        below.remount(&format!("size={}k", used + 4096));
        let mut shaky = Self { home, image, disk: None, _below: below };
        shaky.mount();
        Some(shaky)
    }

    /// Forgets what is only in memory.
    fn mount(&mut self) {
        self.disk = None;
        let mut disk = self.image.mount(&self.home.path().join("disk"));
        disk.page_by_page();
        self.disk = Some(disk);
    }

    fn filler(&self) -> PathBuf {
        self.home.path().join("below/filler")
    }

    /// Takes all room from the image's disk.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

/// How often a round is tried until a sync fails in it.
const TRIES: usize = 20;

#[test]
fn what_was_acknowledged_is_on_the_disk_although_a_sync_failed_and_the_next_one_lied() {
    let Some(_) = Shaky::new("ext4") else { return };
    for round in Effort::new("a sync that fails once and then lies", 10) {
        let mut rng = round.rng();
        // Where the disk had room again before anybody synced, nothing was tried.
        let tried = (0..TRIES).any(|_| condemns_a_file(round, &mut rng));
        assert!(tried, "no sync failed in {TRIES} tries");
    }
}

/// Takes the disk away for a moment while somebody appends. Returns whether a sync failed, and all is well all the same.
fn condemns_a_file(round: Round, rng: &mut fastrand::Rng) -> bool {
    let mut shaky = Shaky::new(if round.number.is_multiple_of(2) { "ext4" } else { "xfs" }).unwrap();
    shaky.home.answer(&["new", "--id", "s"]);
    let mut ledger = Ledger::new("s");
    let append = |run, pace| Appender::start(shaky.home.command(&["append", "s"]), run, pace);
    let sizes = || (0..150).map(|n| (n * 157) % 2500);
    let pace = if rng.bool() { Pace::Lockstep } else { Pace::Flood };
    let appender = append(Run::new("during", sizes()), pace);
    appender.wait_for(rng.usize(..100), Duration::from_millis(60));
    shaky.fill();
    // Short enough to be waited for, or so long that it gives up.
    std::thread::sleep(Duration::from_millis(rng.u64(1..800)));
    shaky.free();
    let ended = appender.end();
    let complete = ended.run.acknowledged.len() == ended.run.lines.len();
    assert_eq!(ended.code, Some(i32::from(!complete)), "{}", ended.err);
    assert!(complete || ended.err.contains("\nhint: "), "{}", ended.err);
    ledger.add(ended.run);
    let ended = append(Run::new("after", sizes()), Pace::Flood).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ledger.add(ended.run);
    shaky.mount();
    ledger.check(&shaky.home);
    shaky.home.log("s").with_file_name("messages.1.jsonl").try_exists().unwrap()
}

/// If a program that trusts the second sync lost nothing, then the rounds above would prove nothing.
#[test]
fn a_second_sync_says_that_all_is_well_and_the_data_is_gone() {
    for kind in ["ext4", "xfs"] {
        let Some(mut shaky) = Shaky::new(kind) else { return };
        let path = shaky.home.path().join("disk/file");
        let mut file = File::create(&path).unwrap();
        file.sync_all().unwrap();
        shaky.fill();
        file.write_all(&[b'x'; 100_000]).unwrap();
        assert!(file.sync_data().is_err(), "{kind}: the disk is full");
        shaky.free();
        assert!(file.sync_data().is_ok(), "{kind}: the second sync lies");
        assert_eq!(fs::read(&path).unwrap(), [b'x'; 100_000], "{kind}: the cache lies too");
        drop(file);
        shaky.mount();
        assert_ne!(fs::read(&path).unwrap(), [b'x'; 100_000], "{kind}");
    }
}
