//! `list`: the sessions of a store, the newest first.

use jiff::Timestamp;
use rethread_keeper::{SessionCard, is_companion};
use rethread_store::{Error, Filter, Listing, Metadata, Scope, SessionId, Show};
use rethread_transcripts::Session;

use crate::age::age;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::native::{Driven, Item, TrashedSession, table as grouped};
use crate::text::{columns_of, one_line};
use crate::ui::{Answer, Tone, Ui};

/// How many sessions a person at a terminal gets to see who did not say how many.
const ENOUGH: usize = 100;
/// The least a title gets, however narrow the terminal is.
const NARROWEST_TITLE: usize = 16;

#[derive(Debug)]
pub(crate) struct List {
    filter: Filter,
    answer: Answer,
    homes: Homes,
    count: bool,
}

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Homes {
    Both,
    Native,
    Stored,
}

impl From<args::List> for List {
    fn from(typed: args::List) -> Self {
        let mut filter = Filter::default();
        filter.scope = match (typed.cwd, typed.project) {
            (Some(directory), _) => Some(Scope::Directory(directory)),
            (None, Some(directory)) => Some(Scope::Project(directory)),
            (None, None) => None,
        };
        if typed.all || typed.archived || typed.trash {
            filter.archived = if typed.archived { Show::Only } else { Show::Also };
            filter.trashed = match (typed.trash, typed.all) {
                (true, _) => Show::Only,
                (false, true) => Show::Also,
                (false, false) => Show::Hide,
            };
            filter.children = if typed.archived { Show::Hide } else { Show::Also };
        }
        filter.tag = typed.tag;
        filter.text = typed.search;
        filter.limit = typed.limit.map_or(0, |limit| limit as usize);
        let homes = match (typed.native, typed.stored) {
            (true, _) => Homes::Native,
            (false, true) => Homes::Stored,
            (false, false) => Homes::Both,
        };
        Self { filter, answer: Answer::of(typed.json), homes, count: typed.count }
    }
}

impl List {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let (Answer::Text, Ok(place)) = (self.answer, KeeperPlace::find()) {
            place.label(ui);
        }
        if self.count && self.homes != Homes::Stored {
            let mut counted = 0;
            context.native.count(|| {
                ui.progress_so_far("Sessions counted so far:", counted);
                counted += 1;
                true
            })?;
        }
        let trashed = if self.filter.trashed == Show::Hide { Vec::new() } else { self.trashed(context) };
        let native = if self.homes == Homes::Stored { Vec::new() } else { self.native(context, ui)? };
        let mut listing = match self.homes {
            Homes::Native => Listing::default(),
            _ => pollster::block_on(context.store.list(&self.filter))?,
        };
        // What the keeper adds to a session of Claude Code's own is no session to anybody.
        let everything = self.filter.children == Show::Also;
        listing.sessions.retain(|metadata| everything || !is_companion(metadata));
        let mut driven = if self.homes == Homes::Stored { Driven::default() } else { Driven::find() };
        let pending = self.fitting(driven.take_pending());
        if self.homes == Homes::Native || !native.is_empty() || !trashed.is_empty() || !pending.is_empty() {
            let pending = pending.into_iter().map(|card| Item::Pending(Box::new(card)));
            let native = native.into_iter().map(|session| Item::Native(Box::new(session)));
            let trashed = trashed.into_iter().map(|session| Item::Trashed(Box::new(session)));
            self.both(pending.chain(native).chain(trashed), &listing, &driven, context, ui)?;
            return tell_unreadable(&listing, context, ui);
        }
        match self.answer {
            Answer::Json => listing.sessions.iter().try_for_each(|metadata| stored(metadata, ui))?,
            Answer::Text => table(&listing, context, ui)?,
        }
        if listing.sessions.is_empty() && listing.unreadable.is_empty() && self.answer == Answer::Text {
            self.say_that_there_is_none(context, ui)?;
        }
        if listing.next.is_some() {
            ui.aside("There are more; a higher --limit shows them.");
        }
        tell_unreadable(&listing, context, ui)
    }

    /// Returns what is in the trash of Claude Code's own and fits. Of those only the id and the text are known.
    fn trashed(&self, context: &Context) -> Vec<TrashedSession> {
        let Filter { scope, tag, text, .. } = &self.filter;
        if self.homes == Homes::Stored || scope.is_some() || tag.is_some() {
            return Vec::new();
        }
        let Ok(trash) = context.native.trash() else { return Vec::new() };
        let mut trashed = TrashedSession::all(&trash);
        if let Some(text) = text.as_ref().map(|text| text.to_lowercase()) {
            trashed.retain(|session| session.says(&text));
        }
        trashed
    }

    /// Returns the sessions of Claude Code's own that fit.
    fn native(&self, context: &Context, ui: &mut Ui) -> Result<Vec<Session>, Failure> {
        let filter = &self.filter;
        if filter.trashed == Show::Only {
            return Ok(Vec::new());
        }
        let rethread_transcripts::Listing { mut sessions, unreadable, .. } = context.native.listing()?;
        for folder in unreadable {
            let folder = one_line(&folder.to_string_lossy(), usize::MAX);
            ui.warn(&format!("{folder} cannot be looked into; what is in it is not listed"));
        }
        let scope = filter.scope.as_ref().map(|scope| match scope {
            Scope::Directory(directory) => {
                (directory.canonicalize().unwrap_or_else(|_| directory.clone()), false)
            }
            Scope::Project(directory) => {
                (directory.canonicalize().unwrap_or_else(|_| directory.clone()), true)
            }
        });
        let text = filter.text.as_ref().map(|text| text.to_lowercase());
        sessions.retain(|session| {
            let is_there = scope.as_ref().is_none_or(|(place, is_project)| match is_project {
                true => session.project.as_ref().is_some_and(|project| place.starts_with(project)),
                false => session.cwd.as_ref() == Some(place),
            });
            let shown = match filter.archived {
                Show::Hide => !session.archived,
                Show::Also => true,
                Show::Only => session.archived,
            };
            let names = [session.name.as_deref(), session.first_prompt.as_deref(), Some(&session.session_id)];
            let is_named = |text: &String| {
                names.iter().flatten().any(|name| name.to_lowercase().contains(text.as_str()))
            };
            let is_tagged = filter.tag.is_none() || session.tag == filter.tag;
            is_there && shown && is_tagged && text.as_ref().is_none_or(is_named)
        });
        Ok(sessions)
    }

    /// Returns those of the sessions that have not begun that fit.
    fn fitting(&self, mut pending: Vec<SessionCard>) -> Vec<SessionCard> {
        let Filter { scope, tag, text, archived, trashed, .. } = &self.filter;
        let narrows = scope.is_some() || tag.is_some() || text.is_some();
        pending.retain(|_| !narrows && *archived != Show::Only && *trashed != Show::Only);
        pending
    }

    /// Shows sessions of both homes.
    fn both(
        &self,
        native: impl Iterator<Item = Item>,
        listing: &Listing,
        driven: &Driven,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let stored_ones = listing.sessions.iter().map(|metadata| Item::Stored(Box::new(metadata.clone())));
        let mut items: Vec<Item> = native.chain(stored_ones).collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.updated_at()));
        let all = items.len();
        let usual = if ui.is_watched() && self.answer == Answer::Text { ENOUGH } else { usize::MAX };
        items.truncate(if self.filter.limit > 0 { self.filter.limit } else { usual });
        match self.answer {
            Answer::Text => grouped(&items, driven, context, ui)?,
            Answer::Json => {
                for item in &items {
                    match item {
                        Item::Stored(metadata) => stored(metadata, ui)?,
                        Item::Native(session) => match driven.get(&session.session_id) {
                            Some(card) => as_card(card, &**session, ui)?,
                            None => as_card(&SessionCard::from(&**session), &**session, ui)?,
                        },
                        Item::Pending(card) => as_card(card, &**card, ui)?,
                        Item::Trashed(session) => thrown_away(session, ui)?,
                    }
                }
            }
        }
        if items.len() < all {
            ui.aside(&format!("{} more; a higher --limit shows them.", all - items.len()));
        }
        if items.is_empty() && self.answer == Answer::Text {
            ui.say("No session fits.");
            ui.hint(&format!("{} shows everything there is", context.command("list --all")));
        }
        Ok(())
    }

    fn say_that_there_is_none(&self, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
        if !context.store.backend().capabilities().keeps {
            ui.say("A store that is off keeps no sessions.");
        } else if pollster::block_on(context.store.ids())?.is_empty() {
            ui.say("There are no sessions yet.");
            ui.hint(&format!("{} begins one, `rethread tour` shows around", context.command("new")));
        } else {
            ui.say("No session fits.");
            ui.hint(&format!("{} shows everything there is", context.command("list --all")));
        }
        Ok(())
    }
}

fn stored(metadata: &Metadata, ui: &mut Ui) -> Result<(), Failure> {
    as_card(&SessionCard::from(metadata), metadata, ui)
}

/// Answers with a session as the keeper's lists show it, and with what else is known of it.
fn as_card<T: serde::Serialize>(card: &SessionCard, session: &T, ui: &mut Ui) -> Result<(), Failure> {
    let json = |value: Result<serde_json::Value, _>| match value {
        Ok(serde_json::Value::Object(members)) => members,
        _ => unreachable!("a session is an object of JSON"),
    };
    let mut members = json(serde_json::to_value(card));
    for (name, value) in json(serde_json::to_value(session)) {
        members.entry(name).or_insert(value);
    }
    ui.data(serde_json::Value::Object(members).to_string().as_bytes())
}

/// Answers with a session of Claude Code's own that was thrown away.
fn thrown_away(session: &TrashedSession, ui: &mut Ui) -> Result<(), Failure> {
    let mut json = serde_json::to_value(session).unwrap_or_else(|_| unreachable!("a session is JSON"));
    json["home"] = "native".into();
    ui.data(json.to_string().as_bytes())
}

fn tell_unreadable(listing: &Listing, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let is_erased = |error: &Error| matches!(error, Error::Erased(_));
    let (erased, damaged): (Vec<_>, Vec<_>) =
        listing.unreadable.iter().partition(|(_, error)| is_erased(error));
    for (session, error) in &damaged {
        ui.warn(&format!("session {} cannot be read: {}", context.short(session), context.describe(error)));
    }
    for (session, _) in &erased {
        let gc = context.command("gc");
        ui.say(&format!(
            "Session {} was erased; {gc} clears away what is left of it.",
            context.short(session)
        ));
    }
    let Some((session, _)) = damaged.first() else { return Ok(Done::Fully) };
    ui.hint(&format!("{} says what is damaged", context.command_on("verify", session)));
    Ok(Done::Partly)
}

/// One line of the table.
struct Row {
    id: String,
    age: String,
    messages: String,
    title: String,
    project: String,
}

impl Row {
    fn of(metadata: &Metadata, context: &Context, now: Timestamp) -> Self {
        let marks = [
            (metadata.trashed_at.is_some(), "[trash] "),
            (metadata.archived, "[archived] "),
            (metadata.child, "[child] "),
            (metadata.is_checkpoint, "[digest] "),
        ];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        Self {
            id: context.short(&metadata.session_id),
            age: age(metadata.updated_at, now),
            messages: metadata.message_count.to_string(),
            title: one_line(&(marks + title(metadata).unwrap_or("-")), usize::MAX),
            project: metadata.project.as_deref().or(metadata.cwd.as_deref()).map_or("-".into(), from_home),
        }
    }

    fn unreadable((session, _): &(SessionId, Error), context: &Context) -> Self {
        let id = context.short(session);
        Self { id, age: "?".into(), messages: "?".into(), title: "[unreadable]".into(), project: "-".into() }
    }
}

fn table(listing: &Listing, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let now = Timestamp::now();
    let readable = listing.sessions.iter().map(|metadata| Row::of(metadata, context, now));
    let unreadable = listing.unreadable.iter().map(|unreadable| Row::unreadable(unreadable, context));
    let rows: Vec<Row> = readable.chain(unreadable).collect();
    let widest = |column: fn(&Row) -> &str| rows.iter().map(|row| columns_of(column(row))).max().unwrap_or(0);
    let (id, age) = (widest(|row| &row.id), widest(|row| &row.age).max(3));
    let (messages, project) = (widest(|row| &row.messages).max(4), widest(|row| &row.project).min(40));
    let taken = id + age + messages + project + 8;
    // Only a terminal has an end of the line; a program gets whole titles.
    let room = ui.width().map(|width| width.saturating_sub(taken).max(NARROWEST_TITLE));
    let titles = widest(|row| &row.title).min(room.unwrap_or(60));
    if ui.is_watched() && !rows.is_empty() {
        let (title, place) = ("TITLE", "PROJECT");
        ui.line(
            Tone::Faint,
            &format!("{:id$}  {:>age$}  {:>messages$}  {title:titles$}  {place}", "ID", "AGE", "MSGS"),
        )?;
    }
    for row in &rows {
        let title = one_line(&row.title, room.unwrap_or(usize::MAX));
        let padding = " ".repeat(titles.saturating_sub(columns_of(&title)));
        let project = from_the_right(&row.project, ui.width().map_or(usize::MAX, |_| project));
        let Row { id: short, age: old, messages: count, .. } = row;
        ui.line(
            Tone::Plain,
            &format!("{short:id$}  {old:>age$}  {count:>messages$}  {title}{padding}  {project}"),
        )?;
    }
    Ok(())
}

/// Returns the name of a session for people, if it has one, else what it began with.
fn title(metadata: &Metadata) -> Option<&str> {
    metadata.name.as_deref().or(metadata.first_prompt.as_deref())
}

/// Returns a path as people write it, from their home.
fn from_home(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(&home) {
        Some("") if !home.is_empty() => "~".into(),
        Some(rest) if !home.is_empty() && rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// Cuts a path so that its end, which tells the most, stays.
fn from_the_right(path: &str, width: usize) -> String {
    let path = one_line(path, usize::MAX);
    if columns_of(&path) <= width {
        return path;
    }
    let mut kept = path.as_str();
    while columns_of(kept) >= width && !kept.is_empty() {
        kept = &kept[kept.chars().next().map_or(0, char::len_utf8)..];
    }
    format!("…{kept}")
}
