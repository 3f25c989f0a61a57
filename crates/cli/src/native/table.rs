//! Sessions of both homes, beneath the projects they belong to.

use jiff::Timestamp;
use rethread_keeper::{SessionCard, SessionState};
use rethread_store::Metadata;
use rethread_transcripts::{Directory, Health, Session};

use super::{Driven, TrashedSession};
use crate::age::age;
use crate::context::Context;
use crate::failure::Failure;
use crate::text::one_line;
use crate::ui::{Tone, Ui};

/// One session of a listing.
#[derive(Debug)]
pub(crate) enum Item {
    Native(Box<Session>),
    /// One that a keeper is to begin, and that has no file yet.
    Pending(Box<SessionCard>),
    Trashed(Box<TrashedSession>),
    Stored(Box<Metadata>),
}

impl Item {
    pub(crate) fn updated_at(&self) -> Timestamp {
        match self {
            Item::Native(session) => session.updated_at,
            Item::Pending(card) => card.updated_at,
            Item::Trashed(session) => session.trashed.trashed_at,
            Item::Stored(metadata) => metadata.updated_at,
        }
    }

    fn project(&self) -> String {
        let project = match self {
            Item::Native(session) => {
                session.project.as_deref().map(|path| path.to_string_lossy().into_owned())
            }
            Item::Pending(card) => card.project.clone(),
            Item::Trashed(_) => Some("(in the trash)".into()),
            Item::Stored(metadata) => metadata.project.clone().or_else(|| metadata.cwd.clone()),
        };
        project.unwrap_or_else(|| "(no directory)".into())
    }

    fn id(&self) -> &str {
        match self {
            Item::Native(session) => &session.session_id,
            Item::Pending(card) => &card.session_id,
            Item::Trashed(session) => &session.trashed.session_id,
            Item::Stored(metadata) => metadata.session_id.as_str(),
        }
    }

    fn messages(&self) -> String {
        match self {
            Item::Native(session) => session.message_count.map_or("-".into(), |count| count.to_string()),
            Item::Pending(_) | Item::Trashed(_) => "-".into(),
            Item::Stored(metadata) => metadata.message_count.to_string(),
        }
    }

    fn title(&self, driven: &Driven) -> String {
        let (title, marks) = match self {
            Item::Native(session) => {
                (session.name.as_deref(), native_marks(session, driven.get(&session.session_id)))
            }
            Item::Pending(card) => (card.name.as_deref(), vec!["not begun"]),
            Item::Trashed(session) => (session.first_prompt.as_deref(), vec!["trash"]),
            Item::Stored(metadata) => {
                let title = metadata.name.as_deref().or(metadata.first_prompt.as_deref());
                (title, stored_marks(metadata))
            }
        };
        let marks: String = marks.into_iter().map(|mark| format!("[{mark}] ")).collect();
        one_line(&(marks + title.unwrap_or("-")), usize::MAX)
    }
}

fn native_marks(session: &Session, driven: Option<&SessionCard>) -> Vec<&'static str> {
    let health = match session.health {
        Health::Torn if session.live.is_none() => Some("torn"),
        Health::Garbage => Some("damaged"),
        Health::Empty => Some("empty"),
        Health::Unreadable => Some("unreadable"),
        _ => session.damage.as_ref().map(|_| "damaged"),
    };
    let directory = match session.directory {
        Directory::Vanished => Some("directory gone"),
        Directory::Moved => Some("moved"),
        _ => None,
    };
    let live = match driven.map(|card| card.state) {
        Some(SessionState::Running) => Some("running"),
        Some(SessionState::Waiting) => Some("needs you"),
        Some(SessionState::Failed) => Some("failed"),
        _ => session.live.is_some().then_some("live"),
    };
    let fork = session.forked_from.is_some().then_some("fork");
    [live, health, session.archived.then_some("archived"), fork, directory].into_iter().flatten().collect()
}

fn stored_marks(metadata: &Metadata) -> Vec<&'static str> {
    let marks = [
        (true, "stored"),
        (metadata.trashed_at.is_some(), "trash"),
        (metadata.archived, "archived"),
        (metadata.child, "child"),
        (metadata.is_checkpoint, "digest"),
    ];
    marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect()
}

/// Shows sessions beneath their projects, both the newest first.
pub(crate) fn table(items: &[Item], driven: &Driven, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let now = Timestamp::now();
    let mut projects: Vec<(String, Vec<&Item>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for item in items {
        let project = item.project();
        let at = *known.entry(project.clone()).or_insert_with(|| {
            projects.push((project, Vec::new()));
            projects.len() - 1
        });
        projects[at].1.push(item);
    }
    for (number, (project, items)) in projects.iter().enumerate() {
        if number > 0 {
            ui.line(Tone::Plain, "")?;
        }
        ui.line(Tone::Strong, &one_line(project, usize::MAX))?;
        let rows: Vec<[String; 4]> = items
            .iter()
            .map(|item| {
                [
                    context.short_of(item.id()),
                    age(item.updated_at(), now),
                    item.messages(),
                    item.title(driven),
                ]
            })
            .collect();
        let widest = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let (ids, ages, counts) = (widest(0), widest(1), widest(2));
        for [id, age, messages, title] in &rows {
            let room =
                ui.width().map_or(usize::MAX, |width| width.saturating_sub(ids + ages + counts + 8).max(16));
            let title = one_line(title, room);
            ui.line(Tone::Plain, &format!("  {id:ids$}  {age:>ages$}  {messages:>counts$}  {title}"))?;
        }
    }
    Ok(())
}
