//! Faults put in on purpose, to show that the tests can fail. They exist in test builds only (feature `defects`),
//! and one of them is on only if `RETHREAD_DEFECT` names it.

/// One way to get it wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Any name will do.
    SkipTheHostCheck,
    /// A page from nowhere is one of ours.
    AcceptNullOrigin,
    /// Guessing costs nothing.
    ForgetTheRateLimit,
    /// A program with a token for one namespace comes into another one, and into everything else.
    ForgetTheNamespace,
    /// A link beneath Claude Code's folder is followed.
    FollowLinks,
    /// A decision need not name what was shown.
    DecideUnseen,
    /// A second decision replaces the first.
    DecideTwice,
    /// A request is shown before it is written down.
    ShowBeforeTheJournal,
    /// What the stream said stays as it was, whatever is on disk.
    TrustTheStream,
    /// A client that is too slow gets what is left instead of a resync.
    SkipTheGap,
    /// Sessions of other directories are shown too.
    ForgetTheRoots,
    /// A driven agent may ask over the socket.
    TrustTheAgent,
    /// A call that nobody allowed counts as one that runs.
    KeepDeniedCallsOpen,
}

impl Defect {
    /// Returns whether this fault is wanted.
    #[cfg(feature = "defects")]
    pub(crate) fn is_on(self) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        CHOSEN
            .get_or_init(|| std::env::var("RETHREAD_DEFECT").ok())
            .as_ref()
            .is_some_and(|chosen| *chosen == format!("{self:?}"))
    }

    /// Returns that it is not.
    #[cfg(not(feature = "defects"))]
    pub(crate) const fn is_on(self) -> bool {
        false
    }
}

#[cfg(all(test, feature = "defects"))]
mod tests {
    use std::process::{Command, Stdio};

    /// A fault, and the test within this crate that finds it. `tests/defects.rs` has the others.
    #[rustfmt::skip]
    const CAUGHT: &[(&str, &str)] = &[
        ("DecideUnseen", "attention::tests::a_decision_is_about_exactly_what_was_shown_and_the_first_one_wins"),
        ("DecideTwice", "attention::tests::a_decision_is_about_exactly_what_was_shown_and_the_first_one_wins"),
        ("ShowBeforeTheJournal", "attention::tests::what_was_pending_when_its_keeper_died_is_lost_and_asked_again_under_its_name"),
        ("TrustTheStream", "merge::tests::whatever_the_order_the_end_is_what_the_disk_says"),
        ("SkipTheGap", "hub::tests::whoever_is_too_slow_meets_a_gap_and_the_ring_stays_small"),
        ("TrustTheAgent", "peer::tests::whoever_descends_from_a_driven_agent_is_a_stranger"),
    ];

    #[test]
    fn every_fault_that_is_put_in_on_purpose_is_caught_by_its_test() {
        for (defect, test) in CAUGHT {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([test, "--exact"]).env("RETHREAD_DEFECT", defect);
            // A regression that proptest would write down is one of this fault only.
            command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            // The harness says 101 for a test that failed, and 0 also for a test that is not there.
            assert_eq!(status.code(), Some(101), "{defect}: {test} passes, or is no test");
        }
    }
}
