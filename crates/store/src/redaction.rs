//! What a store that leaves secrets out keeps of an entry, of a note, of a memory, and of what a session is called.

use std::borrow::Cow;

use rethread_redact::Redactor;
use serde_json::Value;

use crate::entry::Entry;
use crate::metadata::Metadata;
use crate::note::Note;
use crate::store::Store;
use crate::writer::{Change, Draft};

/// What people say of a session. Everything else about it is for programs, which must find it as they left it.
const SAID: [&str; 4] = ["name", "first_prompt", "agent_name", "tags"];

impl Store {
    /// Returns an entry as it is to be stored.
    pub(crate) fn redacted(&self, entry: Entry) -> Entry {
        let Some(redactor) = self.redactor() else { return entry };
        match redactor.redact(entry.as_str()) {
            Cow::Borrowed(_) => entry,
            Cow::Owned(clean) => entry.with_bytes(clean.into()),
        }
    }

    /// Returns a text as it is to be stored.
    pub(crate) fn redacted_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor().map_or(Cow::Borrowed(text), |redactor| redactor.redact(text))
    }

    /// Returns a note as it is to be stored.
    pub(crate) fn redacted_note(&self, entry: Entry) -> Entry {
        let Some(redactor) = self.redactor() else { return entry };
        let (Note::Created { set, .. } | Note::Set { set, .. }) = Note::read(entry.as_bytes()) else {
            return entry;
        };
        let mut clean = Cow::Borrowed(entry.as_str());
        for (name, value) in SAID.iter().filter_map(|name| set.get_key_value(*name)) {
            let without = redacted_value(redactor, value);
            if without != *value {
                // As it stands there: notes are written by programs of ours, which write JSON in one way.
                let (was, is) = (format!("\"{name}\":{value}"), format!("\"{name}\":{without}"));
                clean = clean.replace(&was, &is).into();
            }
        }
        match clean {
            Cow::Borrowed(_) => entry,
            Cow::Owned(clean) => entry.with_bytes(clean.into()),
        }
    }

    /// Returns a change of metadata as it is to be made.
    pub(crate) fn redacted_change(&self, mut change: Change) -> Draft {
        let Some(redactor) = self.redactor().cloned() else { return Draft::Change(change) };
        Draft::Change(Box::new(move |metadata| {
            change(metadata);
            redact(&redactor, metadata);
        }))
    }

    /// Takes secrets out of what a session is called.
    pub(crate) fn redact_names(&self, metadata: &mut Metadata) {
        if let Some(redactor) = self.redactor() {
            redact(redactor, metadata);
        }
    }
}

fn redacted_value(redactor: &Redactor, value: &Value) -> Value {
    match value {
        Value::String(text) => redactor.redact(text).into(),
        Value::Array(values) => values.iter().map(|value| redacted_value(redactor, value)).collect(),
        value => value.clone(),
    }
}

fn redact(redactor: &Redactor, metadata: &mut Metadata) {
    let Metadata { name, first_prompt, agent_name, tags, .. } = metadata;
    for text in [name, first_prompt, agent_name].into_iter().flatten().chain(tags) {
        if let Cow::Owned(clean) = redactor.redact(text) {
            *text = clean;
        }
    }
}
