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
