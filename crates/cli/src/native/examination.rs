//! What is the matter with one session of Claude Code's own, and what there is to do about it.

use std::collections::HashSet;
use std::path::Path;

use rethread_transcripts::{
    BranchReason, Directory, Fault, FaultKind, KeptFile, Live, Session, Subagent, Transcript,
};

use crate::context::Context;
use crate::failure::in_one_line;
use crate::native::quoted;
use crate::text::{count, one_line};

/// What was found in one session.
#[derive(Debug, Default)]
pub(crate) struct Examination {
    /// What is not as Claude Code writes it.
    pub(crate) faults: Vec<Fault>,
    /// Why it cannot be read at all.
    pub(crate) unreadable: Option<String>,
    /// What is no damage, and yet may surprise.
    pub(crate) notes: Vec<Note>,
}

/// Something surprising, and what there is to do about it.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) what: String,
    pub(crate) advice: Option<String>,
}

/// What is known of all sessions together.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    live: Vec<Live>,
    /// Ids that more than one file has.
    doubled: HashSet<String>,
}

impl Surroundings {
    pub(crate) fn of(sessions: &[Session], context: &Context) -> Self {
        let live = context.native.claude().map(|claude| claude.live()).unwrap_or_default();
        let mut seen = HashSet::new();
        let again = sessions.iter().filter(|session| !seen.insert(&session.session_id));
        Self { live, doubled: again.map(|session| session.session_id.clone()).collect() }
    }
}

impl Examination {
    /// Examines one of the sessions; `newest` says whether it is the one that its id means.
    pub(crate) fn of(session: &Session, newest: bool, around: &Surroundings, context: &Context) -> Self {
        let mut found = Self::default();
        match Transcript::open(&session.path) {
            Ok(transcript) => {
                found.faults = transcript.faults();
                found.look_at_branches(session, &transcript, context);
                if transcript.keeps_files() && newest {
                    found.look_for_kept_files(session, context);
                }
            }
            Err(error) => found.unreadable = Some(in_one_line(&error)),
        }
        if session.live.is_some() {
            // It may be in the middle of a line.
            found.faults.retain(|fault| fault.kind != FaultKind::TornTail);
        }
        found.look_at_directory(session);
        found.look_at_processes(session, around);
        if around.doubled.contains(&session.session_id) {
            found.tell_of_double(session, newest);
        }
        found.look_at_subagents(session);
        found
    }

    /// Returns whether something of it cannot be read.
    pub(crate) fn is_ill(&self) -> bool {
        self.unreadable.is_some() || self.faults.iter().any(|fault| fault.kind.is_damage())
    }

    fn note(&mut self, what: String, advice: impl Into<Option<String>>) {
        self.notes.push(Note { what, advice: advice.into() });
    }

    fn look_at_branches(&mut self, session: &Session, transcript: &Transcript, context: &Context) {
        let ends = transcript.branch_ends();
        let left = ends.iter().filter(|end| end.reason == BranchReason::Left).count();
        if left > 0 {
            let id = context.short_of(&session.session_id);
            let list = context.command(&format!("show {id} --branches"));
            let fork = context.command(&format!("fork {id} --at UUID"));
            let what = match left {
                1 => "a branch was left, which is not shown".into(),
                _ => format!("{left} branches were left, which are not shown"),
            };
            self.note(what, format!("{list} lists them, {fork} goes on from one"));
        }
    }

    fn look_for_kept_files(&mut self, session: &Session, context: &Context) {
        let kept = context.native.claude().map(|claude| claude.checkpoints(&session.session_id));
        let Ok(Ok(checkpoints)) = kept else { return };
        let backups = checkpoints
            .iter()
            .flat_map(|it| &it.files)
            .filter_map(|KeptFile { backup, .. }| backup.as_deref());
        let missing: HashSet<&Path> =
            backups.filter(|backup| matches!(backup.try_exists(), Ok(false))).collect();
        if !missing.is_empty() {
            let id = context.short_of(&session.session_id);
            let list = context.command(&format!("checkpoints {id}"));
            let what = format!("{} of files missing", count(missing.len(), "backup"));
            self.note(what, format!("Claude Code cannot take those files back; {list} says what it kept"));
        }
    }

    fn look_at_directory(&mut self, session: &Session) {
        let Some(cwd) = &session.cwd else { return };
        let shown = one_line(&cwd.to_string_lossy(), usize::MAX);
        match session.directory {
            Directory::Vanished => {
                let make = format!(
                    "it is resumed wherever you are; `mkdir -p {}` makes the directory again",
                    quoted(cwd)
                );
                self.note(format!("its directory {shown} is gone"), make);
            }
            Directory::Moved => {
                self.note(
                    format!("it was moved to {shown}"),
                    "it is resumed there; nothing is to be done".to_owned(),
                );
            }
            _ => {}
        }
    }

    fn look_at_processes(&mut self, session: &Session, around: &Surroundings) {
        let at_work = around.live.iter().filter(|live| live.session == session.session_id);
        let pids: Vec<String> = at_work.map(|live| live.pid.to_string()).collect();
        if let [_, .., last] = &pids[..] {
            let what = format!("processes {} are at work on it at once", pids.join(" and "));
            self.note(
                what,
                format!("what they say goes apart into branches; `kill {last}` ends one of them"),
            );
        }
    }

    fn tell_of_double(&mut self, session: &Session, newest: bool) {
        let path = one_line(&session.path.to_string_lossy(), usize::MAX);
        if newest {
            self.note(
                format!("another file has this id; {path} is the newer, and is the one that is meant"),
                None,
            );
        } else {
            let advice = format!(
                "nothing but this list shows it; `mv {} ELSEWHERE` takes it out of the way",
                quoted(&session.path)
            );
            self.note(format!("{path} is an older file with the id of a newer one"), advice);
        }
    }

    fn look_at_subagents(&mut self, session: &Session) {
        for subagent in Subagent::all_of(&session.path) {
            let is_damaged = |it: Transcript| it.faults().iter().any(|fault| fault.kind.is_damage());
            match Transcript::open(&subagent.path).map(is_damaged) {
                Ok(false) => {}
                Ok(true) => self
                    .note(format!("the transcript of its subagent {} is damaged", subagent.agent_id), None),
                Err(error) => self.note(in_one_line(&error), None),
            }
        }
    }
}
