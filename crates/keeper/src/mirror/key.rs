//! What the official SDKs call a session, and the session of ours that holds it.

use rethread_store::SessionId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::credentials::hex;

/// How many characters each part of an id has at most.
const PART: usize = 40;

/// A key of theirs: any texts of any length.
///
/// A session of ours is named after it: `sdk.PROJECT.SESSION`, or `sub.PROJECT.SESSION.SUBPATH`, so that what belongs
/// together stands together in a listing. A session id that is a UUID stands there as it is; everything else becomes a
/// hash. Two keys that share an id are as likely as two files that share a hash, and even then are told apart, for the
/// session itself says whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MirrorKey {
    pub(crate) namespace: String,
    pub(crate) project_key: String,
    pub(crate) session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subpath: Option<String>,
}

impl MirrorKey {
    /// Returns the name of the session that holds it.
    pub(crate) fn id(&self) -> SessionId {
        let name = match &self.subpath {
            None => format!("{}{}", sessions(&self.namespace, &self.project_key), part(&self.session_id)),
            Some(subpath) => format!("{}{}", self.subkeys(), hashed(&[subpath])),
        };
        let Ok(id) = name.parse() else { unreachable!("hex digits, dots, dashes, and few of them: {name}") };
        id
    }

    /// Returns how many bytes its texts have.
    pub(crate) fn size(&self) -> usize {
        let subpath = self.subpath.as_ref().map_or(0, String::len);
        self.namespace.len() + self.project_key.len() + self.session_id.len() + subpath
    }

    /// Returns how the names of everything beneath a session begin.
    pub(crate) fn subkeys(&self) -> String {
        let project = hashed(&[&self.namespace, &self.project_key]);
        format!("sub.{project}.{}.", part(&self.session_id))
    }
}

/// Returns how the names of a project's sessions begin.
pub(crate) fn sessions(namespace: &str, project_key: &str) -> String {
    format!("sdk.{}.", hashed(&[namespace, project_key]))
}

/// Returns the session id that the end of a name stands for, unless it is a hash.
pub(crate) fn plain(part: &str) -> Option<&str> {
    (!part.starts_with('_')).then_some(part)
}

fn part(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=PART).contains(&text.len()) && text.bytes().all(is_plain) {
        true => text.to_owned(),
        // Nothing plain begins like this.
        false => format!("_{}", &hashed(&[text])[1..]),
    }
}

fn hashed(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        // With its length, so that no two lists of texts look the same.
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    hex(&hasher.finalize())[..PART].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(namespace: &str, project: &str, session: &str, subpath: Option<&str>) -> MirrorKey {
        MirrorKey {
            namespace: namespace.into(),
            project_key: project.into(),
            session_id: session.into(),
            subpath: subpath.map(Into::into),
        }
    }

    #[test]
    fn every_key_has_a_name_of_its_own_however_odd_it_is() {
        let long = "x".repeat(100_000);
        let texts =
            ["", "a", "A", "a/b", "../..", "a.b", "_", "a\0", "ü", " ", "a b", &long, "ab", "\u{202e}"];
        let (mut names, mut keys) = (HashSet::new(), 0);
        for namespace in ["default", "a"] {
            for project in texts {
                for session in texts {
                    for subpath in [None, Some("a"), Some(""), Some("subagents/agent-1"), Some(long.as_str())]
                    {
                        let id = key(namespace, project, session, subpath).id();
                        assert!(id.as_str().len() <= 128);
                        // Where letters of either case are the same, names must differ all the same.
                        names.insert(id.as_str().to_lowercase());
                        keys += 1;
                    }
                }
            }
        }
        assert_eq!(names.len(), keys);
    }

    #[test]
    fn what_belongs_together_begins_alike_and_a_uuid_can_be_read_off() {
        let uuid = "0198f2c4-0000-7000-8000-000000000000";
        let main = key("default", "-home-me", uuid, None);
        let name = main.id().to_string();
        let end = name.strip_prefix(&sessions("default", "-home-me")).unwrap();
        assert_eq!(plain(end), Some(uuid));
        let sub = key("default", "-home-me", uuid, Some("subagents/agent-1"));
        assert!(sub.id().as_str().starts_with(&main.subkeys()));
        let odd = key("default", "-home-me", "Odd One", None).id().to_string();
        assert_eq!(plain(odd.rsplit('.').next().unwrap()), None);
    }
}
