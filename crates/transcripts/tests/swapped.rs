//! Somebody swaps what lies on the way for a link, again and again, while sessions are changed: nothing beyond it is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rethread_transcripts::{ClaudeFolder, Links, NativeFork, Shelf};

const ID: &str = "0198f2aa-1111-4111-8111-111111111111";

/// How long each thing is tried; a way by path is found out within a fraction of it.
const LONG: Duration = Duration::from_millis(400);

fn line(text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"{ID}\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

/// Everything beneath a folder, links as links.
fn all(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let read = |path: PathBuf| {
        let within = if path.is_dir() && !path.is_symlink() { all(&path) } else { Vec::new() };
        std::iter::once((path.clone(), fs::read(&path).ok())).chain(within)
    };
    found.into_iter().flat_map(read).collect()
}

/// Swaps two names until it is told to end.
fn swap(one: &Path, other: &Path, is_over: &AtomicBool) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    while !is_over.load(Ordering::Relaxed) {
        // Either may be gone for a moment, when it was just deleted.
        let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    }
}

/// Does something to a session while `swapped`, beneath the folder, is now itself and now a link to the same of a victim's.
fn play(swapped: &str, mut act: impl FnMut(&ClaudeFolder, &Path) -> bool) {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for owner in ["claude", "victim"] {
        let project = at(owner).join("projects/-p");
        fs::create_dir_all(project.join(ID)).unwrap();
        fs::create_dir_all(at(owner).join("file-history").join(ID)).unwrap();
        fs::write(at(owner).join("file-history").join(ID).join("kept"), owner).unwrap();
        fs::write(project.join(format!("{ID}.jsonl")), line(owner)).unwrap();
    }
    let link = at("link");
    symlink(at("victim").join(swapped), &link).unwrap();
    let before = all(&at("victim"));
    let claude = ClaudeFolder::new(at("claude")).links(Links::Refuse);
    let (is_over, place) = (AtomicBool::new(false), at("claude").join(swapped));
    let done = std::thread::scope(|scope| {
        scope.spawn(|| swap(&place, &link, &is_over));
        let (begun, mut done) = (Instant::now(), 0);
        while begun.elapsed() < LONG || done == 0 && begun.elapsed() < 50 * LONG {
            done += usize::from(act(&claude, &at("trash")));
        }
        is_over.store(true, Ordering::Relaxed);
        done
    });
    assert!(done > 0, "it never worked: nothing was tried");
    assert_eq!(all(&at("victim")), before, "{swapped}");
}

#[test]
fn a_change_never_goes_through_a_link_that_is_swapped_in() {
    let transcript = format!("projects/-p/{ID}.jsonl");
    let beside = format!("projects/-p/{ID}");
    for swapped in ["projects", "projects/-p", &transcript, &beside] {
        play(swapped, |claude, _| claude.rename(ID, "mine").is_ok());
        play(swapped, |claude, _| claude.tag(ID, Some("mine")).is_ok());
        play(swapped, |claude, _| claude.archive(ID, Shelf::Archive).is_ok());
    }
}

#[test]
fn a_deletion_and_what_undoes_it_never_go_through_a_link_that_is_swapped_in() {
    let transcript = format!("projects/-p/{ID}.jsonl");
    let history = format!("file-history/{ID}");
    for swapped in ["projects", "projects/-p", "file-history", &transcript, &history] {
        play(swapped, |claude, trash| {
            let deleted = claude.delete(ID, trash).is_ok();
            // Whatever was taken away is put back, or the next one finds nothing to do.
            for _ in 0..1000 {
                if claude.restore(ID, trash).is_ok() {
                    break;
                }
            }
            deleted
        });
    }
}

#[test]
fn a_fork_is_never_written_through_a_link_that_is_swapped_in_nor_read_from_one() {
    let transcript = format!("projects/-p/{ID}.jsonl");
    let history = format!("file-history/{ID}");
    for swapped in ["projects", "projects/-p", "file-history", &transcript, &history] {
        play(swapped, |claude, _| match claude.fork(ID, &NativeFork::default()) {
            Ok(fork) => {
                let text = (0..1000).find_map(|_| fs::read_to_string(&fork.path).ok());
                assert!(!text.unwrap_or_default().contains("victim"), "{swapped}");
                true
            }
            Err(_) => false,
        });
    }
}
