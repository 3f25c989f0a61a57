//! Faults put in on purpose, to show that the tests can fail. They exist in test builds only (feature `defects`),
//! and one of them is on only if `RETHREAD_DEFECT` names it.

/// One way to get it wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Records are acknowledged although nothing was synced.
    DropTheSync,
    /// The same where it is the journal that is to be synced.
    DropTheSyncOfTheJournal,
    /// What only a journal has is not looked for.
    IgnoreTheJournal,
    /// A new file's name is not made durable.
    DropTheFolderSync,
    /// A record is acknowledged when it is written; the sync comes later.
    AcknowledgeBeforeSync,
    /// After a failed sync the same file is synced again, and the second answer believed.
    SyncAgainAfterAFailure,
    /// Nothing tells the next process of a failed sync.
    ForgetAFailedSync,
    /// Nobody looks whether the file ends with a whole line.
    SkipTheTailCheck,
    /// A torn tail is cut off, where a reader may be at work on it.
    CutTheTornTail,
    /// Records behind a hole in the last write are taken for good.
    TrustWhatIsBehindAHole,
    /// Whoever is done deletes the lock file.
    UnlinkTheLock,
    /// The lock file at the path may be another one by now.
    ForgetTheInodeCheck,
    /// A write that took only part of the bytes counts as done.
    IgnoreAShortWrite,
    /// On a full disk a group is kept in part.
    SplitAGroup,
    /// A reader hands out the first half of a group.
    ShowHalfAGroup,
    /// Nothing says that records are on their way to the disk.
    ForgetTheMark,
    /// What a dead writer left unsynced is taken as it is.
    TrustADeadWriter,
    /// An entry that branches off follows the last record instead.
    ReparentToTheTail,
    /// A stamp's checksum is not looked at.
    IgnoreTheChecksum,
    /// A position that comes twice is taken twice.
    TakeDoubledLines,
    /// A cached fold is believed although the log is another.
    BelieveTheCache,
    /// A document is renamed into place before its bytes are durable.
    RenameBeforeSync,
    /// Contents that come together get their names before they are durable.
    NameBeforeContent,
    /// A document is written over in place.
    ReplaceInPlace,
    /// An entry that the log holds is added once more, though it should not be.
    AddTwice,
    /// A log is taken for the one that was there before, if it is as long.
    ForgetTheBirth,
    /// That an entry is there is said from memory, whoever may have removed it since.
    TrustWhatWasSeen,
    /// Whoever comes last is served first.
    ServeTheLastFirst,
    /// Each operation is written and synced alone.
    WriteOneByOne,
    /// A failure whose ticket was dropped is forgotten.
    ForgetTheUnheard,
    /// Whoever lost the lease goes on writing.
    IgnoreTheFence,
    /// A full queue drops what it is given.
    DropWhenFull,
    /// A flush does not wait for the sync.
    FlushWithoutSync,
    /// A purge leaves forks without the history they inherit.
    PurgeUnderForks,
    /// Content is removed although a checkpoint refers to it.
    CollectWhatIsUsed,
    /// Content goes the first time that nothing refers to it, without a time of grace.
    CollectAtOnce,
    /// Content goes though somebody has just put it again.
    CollectWhatIsPutAgain,
    /// Damaged content is taken for there when it is put again.
    KeepDamagedContent,
    /// A session that is still being imported is shown.
    ShowWhatIsArriving,
    /// Files get the mode that the umask leaves them.
    LeaveModesToTheUmask,
    /// "Latest" picks children and digests too.
    PickChildren,
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
