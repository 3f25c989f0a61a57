//! Every fault that can be put in on purpose is found by a test: a suite that cannot fail proves nothing.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::mounted::Image;

/// A fault, and the test that finds it.
const CAUGHT: &[(&str, &str)] = &[
    ("FollowLinks", "promises::r9_a_link_in_place_of_a_folder_is_not_followed_by_a_rewind"),
    ("TakeErrorsForAbsent", "promises::r12_an_error_at_capture_is_never_taken_for_an_absent_file"),
    ("TakeTheLastBefore", "promises::r5_the_first_state_after_the_point_counts_for_each_path"),
    ("IgnoreEdits", "promises::r4_one_conflict_stops_everything_until_it_is_named"),
    ("IgnoreBreaks", "promises::r5_a_persons_edit_between_two_edits_of_the_agent_is_a_conflict"),
    ("SkipTheSave", "promises::r5_what_nobody_looked_at_afterwards_is_assumed_and_saved"),
    ("SkipTheIntent", "crash::r7_a_crash_at_every_call_of_a_rewind_ends_before_or_after"),
    ("SkipTheSync", "crash::r7_new_contents_are_durable_before_they_take_their_place"),
    ("SkipTheDigest", "promises::r3_a_plan_that_no_longer_holds_is_not_applied"),
    ("TrustContent", "promises::r4_missing_and_corrupt_content_stops_before_the_first_change"),
    ("LeaveModesToTheUmask", "promises::r10_permissions_are_exact_and_setuid_is_never_set"),
    (
        "RemoveForeignFolders",
        "promises::r10_folders_are_removed_only_if_the_agent_made_them_and_they_are_empty",
    ),
    ("TakeTheOutsideForOurs", "trees::what_changes_while_no_tool_runs_is_a_conflict_until_it_is_named"),
    ("ForgetTheMissed", "promises::r12_a_capture_that_failed_makes_every_plan_across_it_incomplete"),
    (
        "LeaveNoMark",
        "crash::r7_whoever_comes_next_beneath_the_root_finds_an_interrupted_rewind_whatever_session_it_is_of",
    ),
    (
        "TrustYoungTimes",
        "ticks::r13_an_edit_within_the_tick_of_a_clock_is_found_though_the_file_looks_as_it_did",
    ),
];
/// What can only be shown where a file system can be mounted.
const MOUNTED: &str = "ticks::";

/// A fault may make its test hang; that finds it too, but not for ever.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn every_fault_that_is_put_in_on_purpose_is_caught_by_its_test() {
    let can_mount = Image::new("ext4 of whole seconds", "defaults").is_some();
    let here = CAUGHT.iter().filter(|(_, test)| can_mount || !test.starts_with(MOUNTED));
    let missed: Vec<String> = here.filter_map(|(defect, test)| catch(defect, test).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_fault_that_can_be_put_in_has_a_test_that_is_named_in_the_proof() {
    let source = include_str!("../src/defect.rs");
    let proof = include_str!("../../../docs/proof.md");
    let names = source.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let defects: Vec<&str> = names.filter(|name| name.chars().all(char::is_alphanumeric)).collect();
    assert_eq!(defects.len(), CAUGHT.len(), "{defects:?}");
    for defect in defects {
        let (_, test) = CAUGHT.iter().find(|(name, _)| *name == defect).unwrap();
        let name = test.rsplit("::").next().unwrap();
        let is_named = proof.lines().any(|line| line.contains(defect) && line.contains(name));
        assert!(is_named, "docs/proof.md does not name {defect} with {name}");
    }
}

/// Runs one test with one fault in a process of its own, and wants it to fail.
fn catch(defect: &str, test: &str) -> Result<(), String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env("RETHREAD_DEFECT", defect)
        .env_remove("RETHREAD_TORTURE_SECONDS")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            // The harness says 101 for a test that failed, and 0 also for a test that is not there.
            Some(status) if status.code() == Some(101) => return Ok(()),
            Some(status) => return Err(format!("{defect}: {test} passes, or is no test: {status}")),
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill().and_then(|()| child.wait());
                return Ok(());
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
