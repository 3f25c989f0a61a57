//! What an entry of the conversation says about where and by which model it was made.
//!
//! An entry's content is nearly all of it, and listing ten thousand sessions is mostly skipping over content. So a line
//! is read no further than to what is still wanted.

use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Text;

/// What is wanted of the conversation's last entries, and what of it was found.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    pub(crate) branch: Option<String>,
    pub(crate) model: Option<String>,
    /// The version of Claude Code that wrote the newest entry that says so.
    pub(crate) version: Option<String>,
    /// The line that is being read may name a model, and none is known.
    is_model_wanted: bool,
}

static MODEL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"model\":"));

impl Recent {
    /// Returns whether nothing is wanted any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.branch.is_some() && self.model.is_some()
    }

    /// Reads an entry that is older than those before it, until nothing is wanted any more. Returns whether it is one,
    /// as far as it was read.
    pub(crate) fn read(&mut self, line: &[u8]) -> bool {
        // Prompts and tools' results name none, and are not read on for it.
        self.is_model_wanted = self.model.is_none() && MODEL.find(line).is_some();
        if self.is_settled() {
            return true;
        }
        let mut reader = serde_json::Deserializer::from_slice(line);
        let whole = Entry(self).deserialize(&mut reader).is_ok();
        self.is_settled() || (whole && reader.end().is_ok())
    }

    /// Returns whether the line that is being read can tell no more.
    fn is_settled(&self) -> bool {
        self.branch.is_some() && (self.model.is_some() || !self.is_model_wanted)
    }

    pub(crate) fn take_branch(&mut self, branch: Option<Text<'_>>) {
        let branch = branch.map(|Text(text)| text.into_owned()).filter(|branch| !branch.is_empty());
        self.branch = self.branch.take().or(branch);
    }

    pub(crate) fn take_model(&mut self, model: Option<Text<'_>>) {
        let is_real = |model: &String| !model.is_empty() && model != "<synthetic>";
        let model = model.map(|Text(text)| text.into_owned()).filter(is_real);
        self.model = self.model.take().or(model);
    }

    /// Takes a version, if it is one: nothing else depends on that.
    fn take_version(&mut self, version: &RawValue) {
        self.version = self.version.take().or_else(|| serde_json::from_str(version.get()).ok());
    }

    /// An error, which is the only way to stop reading.
    fn stop_if_settled<E: Error>(&self) -> Result<(), E> {
        if self.is_settled() { Err(E::custom("nothing is wanted any more")) } else { Ok(()) }
    }
}

/// The members of an entry.
struct Entry<'a>(&'a mut Recent);

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        while let Some(name) = members.next_key::<Text<'de>>()? {
            match name.as_str() {
                "gitBranch" => self.0.take_branch(members.next_value()?),
                "version" => self.0.take_version(members.next_value()?),
                "message" => members.next_value_seed(Message(self.0))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
            self.0.stop_if_settled()?;
        }
        Ok(())
    }
}

/// The members of an entry's message, which may be null.
struct Message<'a>(&'a mut Recent);

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Message<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        while let Some(name) = members.next_key::<Text<'de>>()? {
            match name.as_str() {
                "model" => self.0.take_model(members.next_value()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
            self.0.stop_if_settled()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Option<String>, Option<String>, bool) {
        let mut recent = Recent::default();
        let is_entry = lines.iter().all(|line| recent.read(line.as_bytes()));
        (recent.branch, recent.model, is_entry)
    }

    #[test]
    fn branch_and_model_are_found_in_whatever_order_they_stand() {
        let expected = (Some("main".to_owned()), Some("opus".to_owned()), true);
        let first = r#"{"gitBranch":"main","message":{"model":"opus","content":"x"}}"#;
        let last = r#"{"message":{"content":[{"model":"of a tool"}],"model":"opus"},"gitBranch":"main"}"#;
        assert_eq!(read(&[first]), expected);
        assert_eq!(read(&[last]), expected);
        let apart = [r#"{"gitBranch":"main","message":null}"#, r#"{"message":{"model":"opus"}}"#];
        assert_eq!(read(&apart), expected);
    }

    #[test]
    fn what_is_newer_counts_and_what_nobody_said_does_not() {
        let newer = r#"{"gitBranch":"new","message":{"model":"<synthetic>"}}"#;
        let older = r#"{"gitBranch":"old","message":{"model":"opus \ud83d"}}"#;
        assert_eq!(read(&[newer, older]), (Some("new".into()), Some("opus \u{fffd}".into()), true));
        assert_eq!(read(&[r#"{"gitBranch":"","message":{"model":""}}"#]), (None, None, true));
    }

    #[test]
    fn a_line_that_breaks_off_before_all_is_known_is_no_entry() {
        for line in [r#"{"message":{"content":"x"#, r#"["gitBranch"]"#, "", "null"] {
            assert!(!Recent::default().read(line.as_bytes()), "{line}");
        }
    }
}
