//! Every fault that can be put in on purpose is found by a test: a suite that cannot fail proves nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A fault, and the test that finds it.
const CAUGHT: &[(&str, &str)] = &[
    ("DropTheSync", "promises::d2_a_synced_ticket_completes_only_after_a_sync_of_file_and_folders"),
    ("DropTheFolderSync", "promises::d2_a_synced_ticket_completes_only_after_a_sync_of_file_and_folders"),
    ("AcknowledgeBeforeSync", "promises::d2_a_synced_ticket_completes_only_after_a_sync_of_file_and_folders"),
    (
        "SyncAgainAfterAFailure",
        "promises::failing_disk::d8_a_failed_sync_condemns_the_file_and_the_records_go_to_the_next_segment",
    ),
    (
        "ForgetAFailedSync",
        "fire::failed_syncs::whoever_comes_after_a_failed_sync_does_not_trust_the_file_though_its_writer_is_gone",
    ),
    ("SkipTheTailCheck", "torn::a_torn_tail_at_every_byte_loses_only_the_record_it_is_in"),
    (
        "CutTheTornTail",
        "promises::failing_disk::d11_a_torn_tail_is_quarantined_reported_and_closed_off_but_never_cut",
    ),
    ("TrustWhatIsBehindAHole", "holes::d3_whatever_of_the_last_write_is_missing_what_is_left_is_a_prefix"),
    ("UnlinkTheLock", "promises::d13_the_lock_file_is_never_deleted_or_replaced"),
    ("ForgetTheInodeCheck", "promises::d13_a_lock_file_that_was_replaced_does_not_make_two_holders"),
    (
        "IgnoreAShortWrite",
        "promises::failing_disk::d9_a_short_write_keeps_its_whole_records_and_a_follower_sees_each_once",
    ),
    ("SplitAGroup", "promises::failing_disk::d9_a_group_that_does_not_fit_leaves_nothing_of_itself"),
    ("ShowHalfAGroup", "torn::a_group_that_was_cut_counts_for_nothing_wherever_the_cut_is"),
    (
        "ForgetTheMark",
        "promises::failing_disk::d8_what_a_dead_writer_had_not_synced_is_written_again_before_it_is_trusted",
    ),
    (
        "TrustADeadWriter",
        "promises::failing_disk::d8_what_a_dead_writer_had_not_synced_is_written_again_before_it_is_trusted",
    ),
    ("ReparentToTheTail", "fire::model::whatever_is_done_memory_agrees_with_the_model"),
    (
        "IgnoreTheChecksum",
        "promises::failing_disk::d10_every_flipped_missing_doubled_glued_or_foreign_line_is_found",
    ),
    (
        "TakeDoubledLines",
        "promises::failing_disk::d10_every_flipped_missing_doubled_glued_or_foreign_line_is_found",
    ),
    ("BelieveTheCache", "promises::d14_cached_metadata_of_another_log_is_not_believed"),
    ("RenameBeforeSync", "fire::crash_states::a_crash_of_the_machine_at_any_call_keeps_every_promise"),
    ("RenameBeforeSync", "fire::crash_states::a_crash_during_recovery_from_a_crash_keeps_every_promise"),
    ("NameBeforeContent", "fire::crash_states::a_crash_of_the_machine_at_any_call_keeps_every_promise"),
    ("ReplaceInPlace", "promises::d14_documents_are_replaced_whole_and_metadata_is_rebuilt_from_the_log"),
    ("AddTwice", "new_entries::of_many_who_add_the_same_entries_at_once_each_entry_is_added_by_one"),
    ("ForgetTheBirth", "setbacks::what_was_in_a_session_before_is_not_said_to_be_in_the_one_in_its_place"),
    ("TrustWhatWasSeen", "new_entries::what_others_have_removed_is_not_said_to_be_there"),
    ("ServeTheLastFirst", "promises::d1_an_append_returns_a_ticket_at_once_in_order_of_acceptance"),
    ("WriteOneByOne", "promises::d6_what_waits_for_one_log_is_one_write_and_one_sync"),
    (
        "ForgetTheUnheard",
        "promises::d7_a_failure_whose_ticket_was_dropped_shows_in_health_and_in_the_next_flush",
    ),
    ("IgnoreTheFence", "forks::only_one_drives_and_whoever_was_replaced_cannot_write"),
    ("DropWhenFull", "promises::d5_queues_are_bounded_and_one_stuck_log_never_stalls_another"),
    ("FlushWithoutSync", "promises::written_mode_is_synced_within_a_second_and_by_flush"),
    ("PurgeUnderForks", "fire::model::whatever_is_done_memory_agrees_with_the_model"),
    ("CollectWhatIsUsed", "care::gc_keeps_what_is_referred_to_and_finishes_what_was_interrupted"),
    (
        "CollectAtOnce",
        "care::content_that_nothing_refers_to_waits_for_its_time_of_grace_and_stays_if_somebody_needs_it_meanwhile",
    ),
    ("CollectWhatIsPutAgain", "conformance::files_conform"),
    ("KeepDamagedContent", "care::damaged_content_is_healed_by_whoever_puts_it_again"),
    ("ShowWhatIsArriving", "bundle::gc_clears_away_what_a_dead_import_left_and_spares_one_under_way"),
    (
        "LeaveModesToTheUmask",
        "promises::d17_no_text_of_a_caller_becomes_a_path_and_modes_are_private_whatever_the_umask",
    ),
    (
        "DropTheSyncOfTheJournal",
        "fire::failed_syncs::a_failed_sync_that_takes_its_blocks_down_loses_nothing_acknowledged_after_it",
    ),
    (
        "IgnoreTheJournal",
        "journal::readers_see_after_a_power_cut_what_only_the_journal_has_and_change_nothing",
    ),
    ("PickChildren", "forks::children_and_digests_are_never_the_latest"),
];

/// Longer than any of these tests takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn every_fault_that_is_put_in_on_purpose_is_caught_by_its_test() {
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((defect, test)) = CAUGHT.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(why) = catch(defect, test) {
                        missed.lock().unwrap().push(format!("{defect}: {test} {why}"));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_fault_that_can_be_put_in_has_a_test_that_is_named_in_the_proof() {
    let source = include_str!("../src/defect.rs");
    let proof = include_str!("../../../docs/proof.md");
    let defects: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','))
        .filter(|name| name.chars().all(char::is_alphanumeric))
        .collect();
    assert!(defects.len() >= 15, "{defects:?}");
    for defect in defects {
        let Some((_, test)) = CAUGHT.iter().find(|(name, _)| *name == defect) else {
            panic!("no test is named for {defect}");
        };
        let name = test.rsplit("::").next().unwrap();
        assert!(
            proof.lines().any(|line| line.contains(defect) && line.contains(name)),
            "docs/proof.md: {defect}"
        );
    }
}

#[test]
fn every_fault_that_a_promise_is_said_to_be_proved_by_is_found_by_a_test_of_that_promise() {
    let proof = include_str!("../../../docs/proof.md");
    let promises = proof.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = cells.get(1)?.strip_prefix('D')?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(cells)
    });
    let promises: Vec<_> = promises.collect();
    assert_eq!(promises.len(), 18);
    for cells in promises {
        for fault in cells[4].split(", ").filter(|fault| !fault.is_empty()) {
            let is_found = CAUGHT.iter().any(|(name, test)| *name == fault && cells[3].contains(test));
            assert!(is_found, "{}: no test of that row is known to find {fault}", cells[1]);
        }
    }
}

/// Runs one test with one fault in a process of its own, and wants it to fail.
fn catch(defect: &str, test: &str) -> Result<(), &'static str> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env("RETHREAD_DEFECT", defect)
        .env_remove("RETHREAD_TORTURE_SECONDS")
        .env_remove("RETHREAD_TABLE")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            // The harness says 101 for a test that failed, and 0 also for a test that is not there.
            Some(status) if status.code() == Some(101) => return Ok(()),
            Some(status) if status.success() => return Err("passes, or is no test"),
            Some(_) => return Err("is ended by something else, which proves nothing"),
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err("hangs, which proves nothing");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn every_test_that_the_proof_names_is_one() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // Some crates have some beside what they test.
    let tested = [
        "store/tests",
        "cli/tests",
        "checkpoint/tests",
        "transcripts/tests",
        "bridge/tests",
        "keeper/tests",
        "claude/tests",
        "backends/encrypted/tests",
        "backends/postgres/tests",
        "backends/s3/tests",
        "backends/sqlite/tests",
    ];
    let folders = tested.iter().chain(&[
        "keeper/src",
        "claude/src",
        "redact/src",
        "transcripts/src",
        "backends/encrypted/src",
        "backends/postgres/src",
        "backends/s3/src",
        "backends/sqlite/src",
    ]);
    let sources: Vec<_> = folders.map(|folder| crate::kit::tree(&crates.join(folder))).collect();
    let mut tests = std::collections::HashSet::new();
    for (path, bytes) in
        sources.iter().flatten().filter(|(path, _)| path.extension().is_some_and(|it| it == "rs"))
    {
        let (module, text) = (path.file_stem().unwrap().to_str().unwrap(), String::from_utf8_lossy(bytes));
        let marks = text.match_indices("#[test]").chain(text.match_indices("#[tokio::test"));
        for (_, after) in marks.map(|(at, found)| text[at..].split_at(found.len())) {
            let name = after.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).unwrap().0;
            // All of a file's, one of it, and one beside what it tests.
            tests.extend([format!("{module}::*"), format!("{module}::{name}"), format!("tests::{name}")]);
        }
    }
    let proof = include_str!("../../../docs/proof.md");
    let named: Vec<&str> =
        proof.split('`').filter(|text| text.contains("::") && !text.contains(' ')).collect();
    assert!(named.len() > 50, "{named:?}");
    for name in named {
        let (modules, test) = name.rsplit_once("::").unwrap();
        let module = modules.rsplit("::").next().unwrap();
        assert!(tests.contains(&format!("{module}::{test}")), "docs/proof.md names {name}, which is no test");
    }
}
