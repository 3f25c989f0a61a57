//! The benchmarks run from end to end on small sizes. No bar is judged: a test must not depend on a machine's mood.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_quick_run_of_the_store_gives_every_row() {
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["store", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let file = program.ancestors().nth(2).unwrap().join("bench/store.quick.json");
    let rows = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let bars = rows.iter().flat_map(|row| row["peers"].as_array().unwrap());
    let judged = bars.filter(|peer| peer["bar"].is_object()).count();
    assert_eq!((rows.len(), judged), (22, 24));
    assert!(rows.iter().all(|row| row["ours"].is_number() && row["area"] == "store"));
}

#[test]
fn a_quick_run_of_the_backends_gives_every_row() {
    if rethread_testkit::Postgres::shared().is_none() {
        return rethread_testkit::cannot("PostgreSQL is not installed: apt-get install postgresql");
    }
    if rethread_testkit::S3::shared().is_none() {
        return rethread_testkit::cannot("there is no S3 server: scripts/setup s3");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["backends", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = program.ancestors().nth(2).unwrap().join("bench/backends.quick.json");
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 17);
}

#[test]
fn a_quick_run_of_the_transcripts_gives_every_row() {
    if rethread_testkit::Sdk::find().is_none() || rethread_testkit::PythonSdk::find().is_none() {
        return rethread_testkit::cannot("the official SDKs cannot be installed");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["transcripts", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = program.ancestors().nth(2).unwrap().join("bench/transcripts.quick.json");
    let rows = std::fs::read_to_string(file).unwrap();
    assert_eq!(rows.lines().count(), 13);
}

#[test]
fn a_quick_run_of_checkpoints_gives_every_row() {
    // The program itself is a contestant, and is beside this one only if somebody built it.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "-p", "rethread"])
        .status()
        .unwrap();
    assert!(built.success());
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["checkpoint", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = program.ancestors().nth(2).unwrap().join("bench/checkpoint.quick.json");
    let rows = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let judged =
        rows.iter().flat_map(|row| row["peers"].as_array().unwrap()).filter(|peer| peer["bar"].is_object());
    assert_eq!((rows.len(), judged.count()), (10, 13));
}

#[test]
fn a_quick_run_of_the_keeper_gives_every_row() {
    if rethread_testkit::Sdk::find().is_none() || rethread_testkit::package("ws").is_none() {
        return rethread_testkit::cannot("the official SDK or ws cannot be installed");
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "-p", "rethread"])
        .status()
        .unwrap();
    assert!(built.success());
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["keeper", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = program.ancestors().nth(2).unwrap().join("bench/keeper.quick.json");
    let rows = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let judged =
        rows.iter().flat_map(|row| row["peers"].as_array().unwrap()).filter(|peer| peer["bar"].is_object());
    assert_eq!((rows.len(), judged.count()), (9, 9));
}

#[test]
fn a_quick_run_of_the_driver_gives_every_row() {
    if rethread_testkit::Program::find().is_none() || rethread_testkit::PythonSdk::find().is_none() {
        return rethread_testkit::cannot("Claude Code or the official SDK cannot be installed");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_rethread-bench"));
    let run = Command::new(program).args(["claude", "--quick"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = program.ancestors().nth(2).unwrap().join("bench/claude.quick.json");
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 3);
}

#[test]
fn an_unknown_area_is_named_with_those_there_are() {
    let run = Command::new(env!("CARGO_BIN_EXE_rethread-bench")).arg("stroe").output().unwrap();
    assert!(!run.status.success());
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(
        said,
        "error: there is no area stroe; there is: store, checkpoint, transcripts, claude, keeper, backends\n"
    );
}
