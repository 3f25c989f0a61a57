//! Where a conversation is forked, so that its words go back as far as files do.

use std::borrow::Cow;

use rethread_store::{EntryId, Fork, Page, Session};
use rethread_transcripts::{NativeFork, Transcript};

use crate::context::Context;
use crate::failure::Failure;

/// The last message before another one, in the home that the conversation lives in.
#[derive(Clone, Debug)]
pub(crate) enum ForkPoint {
    /// Claude Code has the conversation; the store only has what was recorded of its files.
    Native(String),
    Stored(EntryId),
}

impl ForkPoint {
    /// Finds what stands before a message; `None` if the conversation begins with it, or does not know it.
    pub(crate) fn before(
        message: &EntryId,
        session: &Session,
        context: &Context,
    ) -> Result<Option<Self>, Failure> {
        let claude = context.native.claude().ok();
        if let Some(path) = claude.and_then(|claude| claude.find(session.id().as_str()).ok()) {
            let transcript = Transcript::open(path)?;
            return Ok(native_before(&transcript, message.as_str())?.map(Self::Native));
        }
        let page = match pollster::block_on(session.page(Page::Before(message.clone(), 1))) {
            Err(rethread_store::Error::EntryNotFound { .. }) => return Ok(None),
            page => page?,
        };
        Ok(page.records.last().map(|record| Self::Stored(record.entry.id().clone())))
    }

    /// Returns the command that forks there, in backquotes.
    pub(crate) fn command(&self, session: &Session, context: &Context) -> String {
        let at = match self {
            Self::Native(at) => at,
            Self::Stored(at) => at.as_str(),
        };
        context.command(&format!("fork {} --at {at}", context.short(session.id())))
    }

    /// Forks the conversation there, and returns the new session's id.
    pub(crate) fn fork(self, session: &Session, context: &Context) -> Result<String, Failure> {
        match self {
            Self::Native(at) => {
                let mut fork = NativeFork::default();
                fork.at = Some(at);
                Ok(context.native.claude()?.fork(session.id().as_str(), &fork)?.session_id)
            }
            Self::Stored(at) => {
                let forked = context.write(session.fork(Fork::default().at(at)))?;
                Ok(forked.id().to_string())
            }
        }
    }
}

/// Returns the message that another one follows, over whatever the program put in between.
fn native_before(transcript: &Transcript, message: &str) -> Result<Option<String>, Failure> {
    let chain = match transcript.chain_to(message) {
        Err(rethread_transcripts::Error::EntryNotFound { .. }) => return Ok(None),
        chain => chain?,
    };
    let mut reader = transcript.read(&chain);
    let mut before = None;
    while let Some(entry) = reader.next() {
        let entry = entry?;
        let uuid = entry.view().uuid.map(Cow::into_owned);
        if uuid.as_deref() == Some(message) {
            break;
        }
        before = uuid.filter(|_| entry.is_message()).or(before);
    }
    Ok(before)
}
