//! Every fault that can be put in on purpose is found by a test: a suite that cannot fail proves nothing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A fault, and the test that finds it. Others are found by tests within the crate: `src/defect.rs` has them.
const CAUGHT: &[(&str, &str)] = &[
    ("SkipTheHostCheck", "security::dns_rebinding_meets_a_name_that_is_not_ours"),
    ("AcceptNullOrigin", "security::a_cross_site_websocket_is_refused_before_it_is_one"),
    ("ForgetTheRateLimit", "security::guessing_gets_slow_and_whoever_knows_the_token_does_not_notice"),
    ("ForgetTheNamespace", "session_store::a_token_opens_its_own_namespace_and_nothing_else"),
    ("FollowLinks", "security::a_symlinked_transcript_does_not_exist"),
    ("ForgetTheRoots", "security::sessions_outside_the_allowed_roots_do_not_exist"),
    ("KeepDeniedCallsOpen", "driving::what_a_person_edits_after_a_denied_or_interrupted_call_is_theirs"),
];

/// A fault may make its test hang; that finds it too, but not for ever.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn every_fault_that_is_put_in_on_purpose_is_caught_by_its_test() {
    let missed: Vec<String> = CAUGHT.iter().filter_map(|(defect, test)| catch(defect, test).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_fault_that_can_be_put_in_has_a_test_that_is_named_in_the_proof() {
    let source = include_str!("../src/defect.rs");
    let proof = include_str!("../../../docs/proof.md");
    let names = source.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let defects: Vec<&str> = names.filter(|name| name.chars().all(char::is_alphanumeric)).collect();
    assert!(defects.len() >= 8, "{defects:?}");
    for defect in defects {
        let here = CAUGHT.iter().find(|(name, _)| *name == defect).map(|(_, test)| *test);
        let within = source.lines().find_map(|line| {
            let rest = line.trim().strip_prefix(&format!("(\"{defect}\", \""))?;
            rest.strip_suffix("\"),")
        });
        let test = here.or(within).unwrap_or_else(|| panic!("nothing finds {defect}"));
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
