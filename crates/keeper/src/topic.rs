//! What an event is about, and who wants to know.

use std::sync::Arc;

/// What an event is about: a session, and whether lists show it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    topic: Arc<str>,
    is_overview: bool,
}

impl Subject {
    pub(crate) fn new(session: &str, kind: &str) -> Self {
        let is_overview =
            kind.starts_with("session.") || kind.starts_with("attention.") || kind == "health.changed";
        Self { topic: format!("session:{session}").into(), is_overview }
    }

    pub(crate) fn topic(&self) -> &Arc<str> {
        &self.topic
    }
}

/// What somebody wants to know of: `session:ID`, `sessions` (what lists show, of all of them), `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// In order. Most want one, and comparing is quicker than hashing.
    topics: Vec<Box<str>>,
    sessions: bool,
    all: bool,
}

impl Interest {
    pub(crate) fn of<'a>(topics: impl IntoIterator<Item = &'a str>) -> Self {
        let mut interest = Self::default();
        for topic in topics {
            interest.add(topic);
        }
        interest
    }

    pub(crate) fn add(&mut self, topic: &str) {
        match topic {
            "all" => self.all = true,
            "sessions" => self.sessions = true,
            topic => {
                if let Err(at) = self.find(topic) {
                    self.topics.insert(at, topic.into());
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, topic: &str) {
        match topic {
            "all" => self.all = false,
            "sessions" => self.sessions = false,
            topic => {
                if let Ok(at) = self.find(topic) {
                    self.topics.remove(at);
                }
            }
        }
    }

    fn find(&self, topic: &str) -> Result<usize, usize> {
        self.topics.binary_search_by(|own| (**own).cmp(topic))
    }

    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    pub(crate) fn wants(&self, subject: &Subject) -> bool {
        self.all || self.sessions && subject.is_overview || self.find(subject.topic()).is_ok()
    }

    /// Returns whether a topic is wanted for what conversations are about.
    pub(crate) fn has(&self, topic: &str) -> bool {
        self.all || self.find(topic).is_ok()
    }

    /// Returns whether a text can name a topic.
    pub(crate) fn is_topic(text: &str) -> bool {
        let is_id = |id: &str| {
            !id.is_empty()
                && id.len() <= 128
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        matches!(text, "all" | "sessions") || text.strip_prefix("session:").is_some_and(is_id)
    }
}
