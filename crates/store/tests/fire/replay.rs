//! Every input that fuzzing found worth keeping, once more: `make fuzz` looks for new ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[expect(unreachable_pub, reason = "it is also the library of the package in fuzz/")]
#[path = "../../../../fuzz/src/lib.rs"]
pub(crate) mod targets;

/// Targets that are replayed by the crate that they are about.
const ELSEWHERE: [&str; 3] = ["transcript", "transcript_chain", "transcript_line"];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Says which input it was, should its target panic.
struct Blame(PathBuf);

impl Drop for Blame {
    #[expect(clippy::print_stderr, reason = "a failed test says which input it was")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is {}", self.0.display());
        }
    }
}

#[test]
fn no_input_that_was_ever_kept_breaks_a_reader() {
    for (target, run) in targets::TARGETS {
        let folder = corpus().join(target);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{} has no input", folder.display());
        for input in inputs {
            let blame = Blame(folder.join(input));
            run(&std::fs::read(&blame.0).unwrap());
        }
    }
}

#[test]
fn every_corpus_and_every_fuzz_binary_has_its_target() {
    let known = targets::TARGETS.iter().map(|(name, _)| *name).chain(ELSEWHERE);
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert_eq!(names(&corpus()), known);
    let binaries = names(&corpus().join("../fuzz_targets"));
    assert_eq!(binaries, known.iter().map(|name| format!("{name}.rs")).collect());
}
