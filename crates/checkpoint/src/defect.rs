//! Faults put in on purpose, to show that the tests can fail. They exist in test builds only (feature `defects`),
//! and one of them is on only if `RETHREAD_DEFECT` names it.

/// One way to get it wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A symbolic link on the way, or at the end, is followed.
    FollowLinks,
    /// A file that cannot be looked at counts as absent.
    TakeErrorsForAbsent,
    /// The last state before a point counts, not the first one after it.
    TakeTheLastBefore,
    /// What a person edited since is overwritten.
    IgnoreEdits,
    /// What was edited between two changes of the agent's is overwritten.
    IgnoreBreaks,
    /// What is replaced is not saved first.
    SkipTheSave,
    /// Nothing says what a rewind is about to do.
    SkipTheIntent,
    /// New contents are renamed into place before they are durable.
    SkipTheSync,
    /// The tree may have changed since the plan was made.
    SkipTheDigest,
    /// Content is restored whatever its hash is.
    TrustContent,
    /// Files get the mode that the umask leaves them.
    LeaveModesToTheUmask,
    /// Folders that the agent did not make are removed when they are empty.
    RemoveForeignFolders,
    /// What happens while no tool runs is taken for the agent's.
    TakeTheOutsideForOurs,
    /// A capture that failed is not mentioned.
    ForgetTheMissed,
    /// Nothing beneath the root says that a rewind of it was interrupted.
    LeaveNoMark,
    /// A file that looks as it did is taken for unchanged, however young it was when it was read.
    TrustYoungTimes,
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
