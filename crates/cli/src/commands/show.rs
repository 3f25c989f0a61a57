//! `show`: a conversation, as resuming the session would restore it.

use std::collections::{HashMap, HashSet};

use rethread_store::backend::{LogKey, LogName};
use rethread_store::{EntryId, Error, Gap, Record, Scope, Session, SessionId, Why};

use crate::args;
use crate::context::Context;
use crate::conversation::Conversation;
use crate::failure::{Done, Failure};
use crate::named::{NamedEntry, NamedSession};
use crate::native;
use crate::stored_log::StoredLog;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Show {
    which: Wanted,
    part: Part,
    form: Form,
    durable: bool,
    raw: bool,
    subagent: Option<String>,
    subagents: bool,
    branches: bool,
    no_pager: bool,
}

#[derive(Debug)]
enum Wanted {
    Named(NamedSession),
    Latest(Scope),
}

#[derive(Debug)]
enum Part {
    /// The active chain.
    Chain,
    /// The chain that ends with an entry.
    UpTo(NamedEntry),
    /// Every branch.
    Branches,
    Transcript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Conversation,
    Entries,
    Stamped,
}

impl From<args::Show> for Show {
    fn from(typed: args::Show) -> Self {
        let here = typed.cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let which = match typed.id {
            Some(id) => Wanted::Named(id),
            None if typed.project => Wanted::Latest(Scope::Project(here)),
            None => Wanted::Latest(Scope::Directory(here)),
        };
        let part = match typed.at {
            Some(entry) => Part::UpTo(entry),
            None if typed.transcript => Part::Transcript,
            None if typed.all => Part::Branches,
            None => Part::Chain,
        };
        let form = match (typed.stamped, typed.json) {
            (true, _) => Form::Stamped,
            (false, true) => Form::Entries,
            (false, false) => Form::Conversation,
        };
        Self {
            which,
            part,
            form,
            durable: typed.durable,
            raw: typed.raw,
            subagent: typed.subagent,
            subagents: typed.subagents,
            branches: typed.branches,
            no_pager: typed.no_pager,
        }
    }
}

/// What is shown, and what cannot be.
struct Found {
    entries: Vec<Shown>,
    missing: Vec<String>,
    /// What was lost before a repair: worth a word, and no failure any more.
    lost: Vec<String>,
}

struct Shown {
    record: Record,
    /// Where it stands among the branches, if all of them are shown.
    branch: Option<Branch>,
}

struct Branch {
    parent: Option<EntryId>,
    is_active: bool,
}

impl Show {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Wanted::Named(named) = &self.which
            && let Some(id) = named.native(context)?
        {
            let answer = Answer::of(self.form == Form::Entries);
            if self.subagents {
                return native::list_subagents(&id, answer, context, ui);
            }
            if self.branches {
                return native::list_branches(&id, answer, context, ui);
            }
            self.page(ui);
            return native::show(&id, &self.native_part(), context, ui);
        }
        if self.subagent.is_some() || self.subagents {
            let hint = format!("{} shows a stored one's as sessions", context.command("list --all"));
            return Err(Failure::wrongly(
                "only Claude Code's own sessions have their subagents in them",
                hint,
            ));
        }
        if self.branches {
            let hint = format!("{} shows what branches a stored one has", context.command("show ID --all"));
            return Err(Failure::wrongly("only the branches of Claude Code's own sessions are listed", hint));
        }
        let session = self.open(context)?;
        if self.durable {
            context.write(self.settle(&session))?;
        }
        let found = pollster::block_on(self.find(context, &session))?;
        self.page(ui);
        match self.form {
            Form::Conversation => self.converse(context, ui, &session, &found.entries)?,
            Form::Entries => {
                found.entries.iter().try_for_each(|shown| ui.data(shown.record.entry.as_bytes()))?;
            }
            Form::Stamped => pollster::block_on(self.stamped(ui, &session, &found.entries))?,
        }
        found.lost.iter().for_each(|lost| ui.warn(lost));
        if found.missing.is_empty() {
            return Ok(Done::Fully);
        }
        found.missing.iter().for_each(|missing| ui.warn(missing));
        ui.hint(&format!("{} says what is damaged", context.command_on("verify", session.id())));
        Ok(Done::Partly)
    }

    /// What people read is shown a page at a time.
    fn page(&self, ui: &mut Ui) {
        if self.form == Form::Conversation && !self.raw && !self.no_pager {
            ui.page();
        }
    }

    /// Returns what is asked for in the words of Claude Code's own sessions.
    fn native_part(&self) -> native::Part {
        native::Part {
            at: if let Part::UpTo(NamedEntry(entry)) = &self.part { Some(entry.to_string()) } else { None },
            all: matches!(self.part, Part::Branches | Part::Transcript),
            subagent: self.subagent.clone(),
            form: match self.form {
                _ if self.raw => native::Form::Raw,
                Form::Conversation => native::Form::Conversation,
                Form::Entries => native::Form::Messages,
                Form::Stamped => native::Form::Raw,
            },
        }
    }

    fn open(&self, context: &Context) -> Result<Session, Failure> {
        match &self.which {
            Wanted::Named(named) => pollster::block_on(named.open(context)),
            Wanted::Latest(scope) => {
                let (Scope::Directory(place) | Scope::Project(place)) = scope;
                let latest = pollster::block_on(context.store.latest(scope))?;
                Ok(latest.ok_or_else(|| Error::NothingToContinue(place.clone()))?)
            }
        }
    }

    async fn settle(&self, session: &Session) -> rethread_store::Result<()> {
        let transcript = LogKey::new(session.id().clone(), LogName::Transcript);
        match self.part {
            Part::Transcript => session.store().backend().settle(&transcript).await,
            _ => session.settle().await,
        }
    }

    async fn find(&self, context: &Context, session: &Session) -> Result<Found, Failure> {
        let history = match &self.part {
            Part::Chain => session.messages().await?,
            Part::UpTo(named) => session.messages_up_to(&named.find(session).await?).await?,
            Part::Branches => return branches(context, session).await,
            Part::Transcript => return transcript(session).await,
        };
        let entries = history.records.into_iter().map(|record| Shown { record, branch: None }).collect();
        let (lost, missing): (Vec<&Gap>, Vec<&Gap>) =
            history.gaps.iter().partition(|gap| gap.reason == Why::Lost);
        let named = |gaps: Vec<&Gap>| {
            gaps.into_iter().map(|gap| context.shortened(&gap.to_string(), &gap.session)).collect()
        };
        Ok(Found { entries, missing: named(missing), lost: named(lost) })
    }

    fn converse(
        &self,
        context: &Context,
        ui: &mut Ui,
        session: &Session,
        entries: &[Shown],
    ) -> Result<(), Failure> {
        let mut conversation = Conversation::new(ui.cut());
        for Shown { record, branch } in entries {
            if let Some(parent) = conversation.leaves(record) {
                ui.line(
                    Tone::Faint,
                    &format!("\n-- inherited from {} up to here --", context.short(parent)),
                )?;
            }
            let lines = match branch {
                None => conversation.next(record),
                Some(Branch { parent, is_active }) => {
                    conversation.next_of_any_branch(record, parent.as_ref(), *is_active)
                }
            };
            ui.lines(&lines)?;
        }
        if entries.is_empty() {
            let (id, append) = (context.short(session.id()), context.command_on("append", session.id()));
            ui.say(&format!("Session {id} has no entries yet; {append} adds some."));
        }
        Ok(())
    }

    /// Prints lines as they are stored. Of every branch that means the whole log, notes included.
    async fn stamped(&self, ui: &mut Ui, session: &Session, entries: &[Shown]) -> Result<(), Failure> {
        let name =
            if matches!(self.part, Part::Transcript) { LogName::Transcript } else { LogName::Messages };
        let whole_log = matches!(self.part, Part::Branches);
        let mut logs: HashMap<SessionId, StoredLog> = HashMap::new();
        let of = |id: &SessionId| LogKey::new(id.clone(), name);
        for Shown { record, .. } in
            entries.iter().filter(|shown| !whole_log || shown.record.session != *session.id())
        {
            if !logs.contains_key(&record.session) {
                let log = StoredLog::read(&**session.store().backend(), &of(&record.session)).await?;
                logs.insert(record.session.clone(), log);
            }
            let line = logs.get(&record.session).and_then(|log| log.at(record.position));
            line.map_or(Ok(()), |line| ui.data(line.as_bytes()))?;
        }
        if whole_log {
            let log = StoredLog::read(&**session.store().backend(), &of(session.id())).await?;
            log.lines.iter().try_for_each(|line| ui.data(line.as_bytes()))?;
        }
        Ok(())
    }
}

async fn branches(context: &Context, session: &Session) -> Result<Found, Failure> {
    let history = session.messages().await?;
    let active: HashSet<&EntryId> = history.entries().map(|entry| entry.id()).collect();
    let all = session.all_branches().await?;
    let entries = all
        .into_iter()
        .map(|branched| {
            let is_active = active.contains(branched.record.entry.id());
            Shown { record: branched.record, branch: Some(Branch { parent: branched.parent, is_active }) }
        })
        .collect();
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    let own = StoredLog::read(&**session.store().backend(), &log).await?;
    let inherited = history.gaps.iter().filter(|gap| gap.session != *session.id());
    let inherited = inherited.map(|gap| context.shortened(&gap.to_string(), &gap.session));
    let missing = inherited.chain(own.damage.iter().map(ToString::to_string)).collect();
    Ok(Found { entries, missing, lost: Vec::new() })
}

async fn transcript(session: &Session) -> Result<Found, Failure> {
    let log = LogKey::new(session.id().clone(), LogName::Transcript);
    let stored = StoredLog::read(&**session.store().backend(), &log).await?;
    let entries = stored.records(&log).map(|record| Shown { record, branch: None }).collect();
    Ok(Found { entries, missing: stored.damage.iter().map(ToString::to_string).collect(), lost: Vec::new() })
}
