//! What a failed row prints repeats the round that failed, as it was.

use std::process::Command;
use std::time::Duration;

use super::effort::{Effort, Round, torture};
use super::side_by_side::side_by_side;

/// Makes the two rows below fail; without it they say nothing.
const TO_FAIL: &str = "RETHREAD_ROWS_TO_FAIL";

/// Says what this round is, and fails if that is bad luck.
#[expect(clippy::print_stderr, reason = "another process compares it")]
fn fails_by_chance(round: Round) {
    let (luck, turn) = (round.rng().u64(..), round.turn(1_000));
    if luck % 5 == 0 {
        eprintln!("unlucky: {luck} {turn} {}", torture());
        panic!("bad luck");
    }
}

#[test]
fn a_row_that_is_made_to_fail() {
    if std::env::var_os(TO_FAIL).is_some() {
        Effort::new("to fail", 1_000).for_each(fails_by_chance);
    }
}

#[test]
fn a_row_of_several_at_once_that_is_made_to_fail() {
    if std::env::var_os(TO_FAIL).is_some() {
        side_by_side(Effort::new("to fail, several at once", 1_000), 16, |round| {
            // Not the last one to begin, nor the last one to end.
            std::thread::sleep(Duration::from_millis(20 - round.number % 16));
            fails_by_chance(round);
        });
    }
}

/// Runs a row in a process of its own with these variables. Returns what it said.
fn failing(row: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("fire::repeats::{row}"), "--exact", "--nocapture"]).env(TO_FAIL, "1");
    for variable in ["RETHREAD_SEED", "RETHREAD_ROUND", "RETHREAD_TORTURE_SECONDS", "RETHREAD_TABLE"] {
        command.env_remove(variable);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(!output.status.success(), "{row} was made to fail");
    String::from_utf8(output.stderr).unwrap()
}

fn unlucky(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("unlucky: ")).collect()
}

#[test]
fn what_a_failed_row_prints_repeats_the_round_that_failed() {
    for row in ["a_row_that_is_made_to_fail", "a_row_of_several_at_once_that_is_made_to_fail"] {
        for size in [&[][..], &[("RETHREAD_TORTURE_SECONDS", "1")]] {
            let said = failing(row, size);
            let line = said.lines().find_map(|line| line.trim().strip_suffix(" -- --exact --nocapture"));
            let (variables, command) = line.unwrap().split_once(" cargo test ").unwrap();
            assert_eq!(command, format!("-p rethread-store --test main fire::repeats::{row}"));
            let variables: Vec<_> =
                variables.split(' ').map(|variable| variable.split_once('=').unwrap()).collect();
            let again = failing(row, &variables);
            let [repeated] = unlucky(&again)[..] else { panic!("{again}") };
            assert!(unlucky(&said).contains(&repeated), "{repeated} is not of {said}");
        }
    }
}
