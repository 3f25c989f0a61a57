//! Power cuts in the middle of rewinds, on real file systems: every path is as it was or as it was to be.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::effort::Effort;
use super::mounted::{Cut, Image, Mounted};
use super::stopped;
use super::strace;
use crate::kit::Home;

/// How many cuts one project lives through before another one is begun.
const CUTS_A_PROJECT: usize = 6;

#[test]
fn a_rewind_that_the_power_is_cut_in_ends_before_or_after_on_ext4() {
    cuts("ext4", "a rewind is cut off on ext4");
}

#[test]
fn a_rewind_that_the_power_is_cut_in_ends_before_or_after_on_xfs() {
    cuts("xfs", "a rewind is cut off on XFS");
}

/// If the same rewind with syncs that do nothing survived, the cuts above would prove nothing.
#[test]
fn a_power_cut_undoes_a_rewind_whose_syncs_do_nothing() {
    if !strace::works() {
        return;
    }
    for kind in ["ext4", "xfs"] {
        let Some(image) = Image::new(kind, "defaults") else { return };
        let mut home = Home::new();
        home.move_to("disk/store");
        let disk = image.mount(&home.path().join("disk"));
        let work = home.path().join("disk/work");
        fs::create_dir(&work).unwrap();
        home.answer(&["new", "--id", "s", "--cwd", work.to_str().unwrap()]);
        let mut rng = fastrand::Rng::with_seed(1);
        write(&work, "before", 10, &mut rng);
        assert_eq!(home.run(&["checkpoint", "s", "--tree", "--message", "m"]).code, 0);
        let before = tree(&work);
        write(&work, "after", 10, &mut rng);
        assert_eq!(home.run(&["checkpoint", "s", "--tree", "--after", "--message", "m"]).code, 0);
        rustix::fs::syncfs(fs::File::open(&work).unwrap()).unwrap();
        let words = ["rewind", "s", "--to", "m"];
        let mut command = strace::tampered(&home, "fsync,fdatasync,syncfs:retval=0", &words);
        assert!(command.output().unwrap().status.success());
        assert_eq!(tree(&work), before);
        disk.cut(Cut::AtOnce);
        drop(disk);
        let _disk = image.mount(&home.path().join("disk"));
        assert_ne!(tree(&work), before, "{kind}");
    }
}

/// Every path of a tree: its permissions, and what is in it.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn tree(folder: &Path) -> Tree {
    let all = strace::everything_in(folder).into_iter().filter(|path| path != folder);
    let look = |path: PathBuf| {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = match metadata.file_type() {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            kind if kind.is_file() => fs::read(&path).unwrap(),
            _ => Vec::new(),
        };
        (path.strip_prefix(folder).unwrap().to_owned(), (metadata.permissions().mode(), content))
    };
    all.map(look).collect()
}

fn cuts(kind: &str, row: &'static str) {
    let Some(image) = Image::new(kind, "defaults") else { return };
    let mut home = Home::new();
    let at = home.path().join("disk");
    let mut disk = image.mount(&at);
    let (mut both, mut half) = ([0; 2], 0);
    for (number, round) in Effort::new(row, 50).enumerate() {
        let mut rng = round.rng();
        let work = at.join("home").join((number - number % CUTS_A_PROJECT).to_string()).join("work");
        if number % CUTS_A_PROJECT == 0 {
            let _ = fs::remove_dir_all(at.join("home"));
            fs::create_dir_all(&work).unwrap();
            home.move_to(work.with_file_name("store"));
            home.answer(&["new", "--id", "s", "--cwd", work.to_str().unwrap()]);
        }
        let (message, changed) = (format!("m{number}"), rng.usize(1..40));
        write(&work, "before", changed, &mut rng);
        let captured = |window: &[&str]| {
            let words = [&["checkpoint", "s", "--tree", "--message", &message], window].concat();
            assert_eq!(home.run(&words).code, 0);
        };
        captured(&[]);
        let before = tree(&work);
        write(&work, "after", changed, &mut rng);
        captured(&["--after"]);
        let after = tree(&work);
        // What the tool wrote is not ours to make durable; what becomes of it in a cut is not asked here.
        rustix::fs::syncfs(fs::File::open(&work).unwrap()).unwrap();
        let acknowledged = break_off(&home, &work, &disk, &message, &mut rng);
        drop(disk);
        disk = image.mount(&at);
        half += usize::from(fs::symlink_metadata(work.join(".rethread-rewind")).is_ok());
        let listed = home.run(&["checkpoints", "s"]);
        assert_eq!(listed.code, 0, "{}", listed.err);
        let found = tree(&work);
        assert!(found == before || found == after, "{:?}: {:?}", round, neither(&found, &before, &after));
        assert!(!acknowledged || found == before, "{round:?}: it was said to be done");
        both[usize::from(found == before)] += 1;
        let said = home.run(&["verify", "s"]);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    }
    // Cuts that all came too early or too late would prove nothing.
    assert!(
        std::env::var_os("RETHREAD_ROUND").is_some() || (both[0] > 0 && both[1] > 0 && half > 0),
        "{both:?} {half}"
    );
}

/// Writes a version of the project: files, permissions, a link, folders that come and go.
fn write(work: &Path, version: &str, files: usize, rng: &mut fastrand::Rng) {
    for number in 0..files {
        let folder = work.join(format!("folder{}", number % 5));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(number.to_string());
        match rng.u8(..8) {
            0 => drop(fs::remove_file(&file)),
            _ => fs::write(&file, format!("{version} {number}\n").repeat(rng.usize(1..2000))).unwrap(),
        }
        if rng.u8(..8) == 0 && file.try_exists().unwrap() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let _ = fs::remove_file(work.join("link"));
    symlink(version, work.join("link")).unwrap();
    let (made, gone) =
        (work.join(format!("only-{version}")), if version == "after" { "before" } else { "after" });
    fs::create_dir_all(made.join("deep")).unwrap();
    fs::write(made.join("deep/file"), version).unwrap();
    let _ = fs::remove_dir_all(work.join(format!("only-{gone}")));
}

/// Cuts the power while the files are rewound. Returns whether the rewind had said that it was done.
fn break_off(home: &Home, work: &Path, disk: &Mounted, message: &str, rng: &mut fastrand::Rng) -> bool {
    let mut child = home.start(&["rewind", "s", "--to", message]);
    let is_under_way = || fs::symlink_metadata(work.join(".rethread-rewind")).is_ok();
    match rng.u8(..4) {
        // When it has just said that it is done.
        0 => drop(child.wait().unwrap()),
        // Somewhere in the middle, however busy the machine is.
        1 | 2 => {
            while !is_under_way() && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(50));
            }
            std::thread::sleep(Duration::from_micros(rng.u64(..4_000)));
        }
        _ => std::thread::sleep(Duration::from_micros(rng.u64(..20_000))),
    }
    stopped::stop(&child);
    let done = child.try_wait().unwrap().is_some_and(|status| status.success());
    disk.cut(if rng.bool() { Cut::AtOnce } else { Cut::AfterTheJournal });
    let _ = child.kill();
    let _ = child.wait();
    done
}

fn neither(found: &Tree, before: &Tree, after: &Tree) -> Vec<(PathBuf, bool, bool)> {
    let all: std::collections::BTreeSet<&PathBuf> =
        found.keys().chain(before.keys()).chain(after.keys()).collect();
    let is = |path: &PathBuf, tree: &Tree| found.get(path) == tree.get(path);
    let told = all.into_iter().map(|path| (path.clone(), is(path, before), is(path, after)));
    told.filter(|(_, before, after)| !(*before && *after)).collect()
}
