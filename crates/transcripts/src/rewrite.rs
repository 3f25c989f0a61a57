//! An entry written again for another session: what has to change is changed, the rest stays byte for byte.

use serde_json::{Value, json};

use crate::object::Object;
use crate::text::lossy;

/// What changes in an entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewrite<'a> {
    /// The session that it is in now.
    pub(crate) session: &'a str,
    /// What it follows, if that is something else than it says.
    pub(crate) parent: Option<Option<String>>,
    /// The session that it was taken from.
    pub(crate) forked_from: Option<&'a str>,
}

impl Rewrite<'_> {
    /// Returns an entry as it is in the new session; `None` if it is no entry.
    pub(crate) fn of(&self, raw: &[u8]) -> Option<Vec<u8>> {
        let json = lossy(raw);
        let object = Object::of(&json)?;
        let uuid = object.string("uuid");
        let mut members: Vec<(String, String)> = Vec::new();
        for (name, value) in object.members() {
            let value = match (name, &self.parent) {
                ("sessionId", _) => json!(self.session).to_string(),
                ("parentUuid", Some(parent)) => json!(parent).to_string(),
                ("forkedFrom", _) if self.forked_from.is_some() => continue,
                _ => value.get().to_owned(),
            };
            members.push((Value::from(name).to_string(), value));
        }
        if let (Some(session), Some(uuid)) = (self.forked_from, uuid) {
            let from = json!({ "sessionId": session, "messageUuid": uuid });
            members.push(("\"forkedFrom\"".into(), from.to_string()));
        }
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
        Some(format!("{{{}}}", members.join(",")).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_to_change_is_changed() {
        let raw = br#"{"parentUuid":"p","new":[1.0,1e3,"\u00e9"],"uuid":"u","sessionId":"old","x":{"sessionId":"old"}}"#;
        let rewrite = Rewrite { session: "new", parent: Some(None), forked_from: Some("old") };
        let expected = r#"{"parentUuid":null,"new":[1.0,1e3,"\u00e9"],"uuid":"u","sessionId":"new","x":{"sessionId":"old"},"forkedFrom":{"sessionId":"old","messageUuid":"u"}}"#;
        assert_eq!(String::from_utf8(rewrite.of(raw).unwrap()).unwrap(), expected);
        assert!(rewrite.of(b"null").is_none());
    }
}
