//! Rewinds where there is hardly any room: all of it, or nothing and a word about it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::effort::Effort;
use super::mounted::Mounted;
use super::strace::everything_in;
use crate::kit::Home;

const PAGE: usize = 4 << 10;
/// More than the rewind needs, in pages.
const STEPS: u64 = 48;

type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn tree(folder: &Path) -> Tree {
    everything_in(folder).into_iter().map(|path| (path.clone(), fs::read(path).ok())).collect()
}

#[test]
fn a_rewind_with_too_little_room_at_any_step_changes_nothing_and_works_with_room() {
    let mut outcomes = [0; 2];
    for round in Effort::new("a rewind with so many pages left", STEPS) {
        let mut home = Home::new();
        home.move_to("disk/store");
        let Some(_disk) = Mounted::tmpfs(&home.path().join("disk"), "size=2m") else { return };
        let work = home.path().join("disk/work");
        let write = |version: &str| {
            for number in 0..6 {
                let folder = work.join(format!("{version}{}", number % 2));
                fs::create_dir_all(&folder).unwrap();
                let text = format!("{version} {number}\n").repeat(1500);
                fs::write(folder.join(number.to_string()), &text).unwrap();
                fs::write(work.join(number.to_string()), text).unwrap();
            }
        };
        write("before");
        home.answer(&["new", "--id", "s", "--cwd", work.to_str().unwrap()]);
        assert_eq!(home.run(&["checkpoint", "s", "--tree", "--message", "m"]).code, 0);
        let before = tree(&work);
        fs::remove_dir_all(work.join("before1")).unwrap();
        write("after");
        assert_eq!(home.run(&["checkpoint", "s", "--tree", "--after", "--message", "m"]).code, 0);
        let after = tree(&work);
        let filler = home.path().join("disk/filler");
        fill_up(&filler, round.turn(STEPS) as usize);
        let said = home.run(&["rewind", "s", "--to", "m"]);
        let found = tree(&work);
        match said.code {
            0 => assert_eq!(found, before, "{round:?}"),
            _ => {
                assert!(said.err.contains("error: "), "{round:?}: {}", said.err);
                // What is lacking is noticed before the first change.
                assert_eq!(found, after, "{round:?}: {}", said.err);
                // Where there was no room even to say so, the next command sees to it.
                fs::remove_file(&filler).unwrap();
                assert_eq!(home.run(&["checkpoints", "s"]).code, 0, "{round:?}");
                assert_eq!(tree(&work), after, "{round:?}");
            }
        }
        outcomes[usize::from(said.code == 0)] += 1;
        let _ = fs::remove_file(&filler);
        let again = home.run(&["rewind", "s", "--to", "m"]);
        assert_eq!(again.code, 0, "{round:?}: {}", again.err);
        assert_eq!(tree(&work), before, "{round:?}");
    }
    let all = std::env::var_os("RETHREAD_ROUND").is_none();
    assert!(!all || (outcomes[0] > 0 && outcomes[1] > 0), "{outcomes:?}");
}

/// Leaves so many pages free.
fn fill_up(filler: &Path, pages: usize) {
    use std::io::Write as _;
    let mut file = fs::File::create(filler).unwrap();
    let mut written = 0_u64;
    while file.write_all(&[1; PAGE]).is_ok() {
        written += PAGE as u64;
    }
    file.set_len(written.saturating_sub((pages * PAGE) as u64)).unwrap();
}
