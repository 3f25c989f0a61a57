//! Folders and files that cannot be looked at: they are not absent, and nobody clears them away.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use super::strace;
use crate::kit::{Home, entry};

/// A folder that could not be listed was taken for one that holds nothing, and `gc` removed the session in it.
#[test]
fn a_session_whose_folder_cannot_be_looked_at_is_not_cleared_away() {
    if !strace::works() {
        return;
    }
    for (calls, place) in [
        ("getdents64", "sessions/s"),
        ("openat", "sessions/s"),
        ("statx", "sessions/s/messages.jsonl"),
        ("statx", "sessions/s/metadata.json"),
    ] {
        for error in ["EIO", "EACCES", "EMFILE"] {
            let home = Home::in_memory();
            home.conversation("s", 3);
            std::fs::remove_file(home.log("s").with_file_name("metadata.json")).unwrap();
            age(&home);
            let (fault, place) = (format!("{calls}:error={error}"), home.store().join(place));
            let mut gc = strace::through(&home, &fault, "/dev/null", &[place], &["gc"]);
            let output = gc.output().unwrap();
            let told = format!("{fault}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(matches!(output.status.code(), Some(0 | 1)), "{told}");
            let expected: String = (1..=3).map(entry).collect();
            assert_eq!(home.run(&["show", "s", "--json"]).out, expected, "{told}");
        }
    }
}

/// Makes everything in a store so old that nobody can be at work on it.
fn age(home: &Home) {
    let then = SystemTime::now() - Duration::from_secs(48 * 3600);
    for path in strace::everything_in(&home.store()) {
        let times = FileTimes::new().set_modified(then);
        File::open(path).unwrap().set_times(times).unwrap();
    }
}
