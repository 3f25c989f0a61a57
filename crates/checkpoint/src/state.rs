//! What a path was at some moment.

use rethread_store::BlobId;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::name::Name;

/// What a path was at some moment.
///
/// `Absent` is only ever said after a certain "no such file": every other error is `Unknown`, because a rewind
/// removes what is known to have been absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub enum State {
    /// Something was there.
    Present(Present),
    /// Nothing was there, for certain.
    Absent,
    /// Nobody can say.
    Unknown {
        /// Why not.
        why: String,
    },
    /// Something was there that is never kept nor restored.
    Skipped {
        /// Why not.
        reason: String,
    },
}

/// Something that was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// A file.
    File(File),
    /// A symbolic link, never followed.
    Symlink(Target),
    /// A folder, without what is in it.
    Folder {
        /// Its permissions; unknown in what older stores recorded.
        mode: Option<u32>,
    },
}

/// Where a link points to, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(pub(crate) Name);

/// A file's content and permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The content's hash.
    pub hash: BlobId,
    /// How many bytes it has.
    pub size: u64,
    /// Its permissions, `rwx` only; unknown in what older stores recorded.
    pub mode: Option<u32>,
    /// How many names it had, if more than one.
    pub names: u64,
    /// Where in a pack the content is; a blob of its own if it is in none.
    pub place: Option<Place>,
}

/// Part of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The pack.
    pub pack: BlobId,
    /// Where in it the content begins.
    pub at: u64,
    /// How many bytes it takes there.
    pub length: u64,
}

impl State {
    /// Returns whether both say the same of content, kind and permissions, wherever the content is kept.
    /// What nobody knows is the same as nothing.
    pub fn same(&self, other: &State) -> bool {
        match (self, other) {
            (State::Absent, State::Absent) => true,
            (State::Present(one), State::Present(other)) => one.same(other),
            (State::Skipped { reason: one }, State::Skipped { reason: other }) => one == other,
            _ => false,
        }
    }

    /// Returns whether it can be made again: neither unknown nor skipped.
    pub fn is_certain(&self) -> bool {
        matches!(self, State::Present(_) | State::Absent)
    }

    /// Returns the file that it is, if it is one.
    pub fn file(&self) -> Option<&File> {
        match self {
            State::Present(Present::File(file)) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, State::Present(Present::Folder { .. }))
    }
}

impl Present {
    fn same(&self, other: &Present) -> bool {
        let fits = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
        match (self, other) {
            (Present::File(one), Present::File(other)) => {
                one.hash == other.hash && fits(one.mode, other.mode)
            }
            (Present::Symlink(one), Present::Symlink(other)) => one == other,
            (Present::Folder { mode: one }, Present::Folder { mode: other }) => fits(*one, *other),
            _ => false,
        }
    }
}

impl Target {
    /// Returns where it points to.
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(self.0.as_os_str())
    }
}

/// A state as it stands in a record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Present(WirePresent),
    Absent(bool),
    Unknown { why: String },
    Skipped { reason: String },
}

#[derive(Default, Serialize, Deserialize)]
struct WirePresent {
    #[serde(default)]
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<BlobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pack: Option<BlobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// What older stores kept, and did not say.
    #[default]
    File,
    Symlink,
    Folder,
}

impl From<State> for Wire {
    fn from(state: State) -> Wire {
        match state {
            State::Absent => Wire::Absent(true),
            State::Unknown { why } => Wire::Unknown { why },
            State::Skipped { reason } => Wire::Skipped { reason },
            State::Present(present) => Wire::Present(match present {
                Present::File(file) => WirePresent {
                    kind: Kind::File,
                    hash: Some(file.hash),
                    size: Some(file.size),
                    mode: file.mode,
                    names: (file.names > 1).then_some(file.names),
                    pack: file.place.map(|place| place.pack),
                    at: file.place.map(|place| place.at),
                    length: file.place.map(|place| place.length),
                    target: None,
                },
                Present::Symlink(target) => {
                    WirePresent { kind: Kind::Symlink, target: Some(target.0), ..WirePresent::default() }
                }
                Present::Folder { mode } => {
                    WirePresent { kind: Kind::Folder, mode, ..WirePresent::default() }
                }
            }),
        }
    }
}

impl TryFrom<Wire> for State {
    type Error = Error;

    fn try_from(wire: Wire) -> Result<State, Error> {
        // Permissions beyond rwx are never set, whatever a record says.
        let mode = |mode: Option<u32>| mode.map(|mode| mode & 0o777);
        // Whoever wrote this did not finish the thought; a rewind must not take it for an absent file.
        let unsaid = |what: &str| State::Unknown { why: format!("its record has no {what}") };
        Ok(match wire {
            Wire::Absent(true) => State::Absent,
            Wire::Absent(false) => unsaid("state"),
            Wire::Unknown { why } => State::Unknown { why },
            Wire::Skipped { reason } => State::Skipped { reason },
            Wire::Present(WirePresent { kind: Kind::Folder, mode: rwx, .. }) => {
                State::Present(Present::Folder { mode: mode(rwx) })
            }
            Wire::Present(WirePresent { kind: Kind::Symlink, target, .. }) => match target {
                Some(target) if is_target(target.as_bytes()) => {
                    State::Present(Present::Symlink(Target(target)))
                }
                _ => unsaid("target that a link can have"),
            },
            Wire::Present(WirePresent { kind: Kind::File, hash: None, .. }) => unsaid("hash"),
            Wire::Present(WirePresent { kind: Kind::File, size: None, .. }) => unsaid("size"),
            Wire::Present(WirePresent {
                kind: Kind::File,
                hash: Some(hash),
                size: Some(size),
                mode: rwx,
                names,
                pack,
                at,
                length,
                ..
            }) => {
                let place = match (pack, at, length) {
                    (Some(pack), Some(at), Some(length)) => Some(Place { pack, at, length }),
                    _ => None,
                };
                let (mode, names) = (mode(rwx), names.unwrap_or(1));
                State::Present(Present::File(File { hash, size, mode, names, place }))
            }
        })
    }
}

/// No system call could make any other.
fn is_target(target: &[u8]) -> bool {
    (1..4096).contains(&target.len()) && !target.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> State {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_state_reads_back_what_it_writes() {
        let hash = BlobId::of(b"x");
        let place = Some(Place { pack: BlobId::of(b"pack"), at: 7, length: 3 });
        let file = File { hash, size: 1, mode: Some(0o755), names: 2, place };
        let link = Present::Symlink(Target(Name::from(&b"../\xff"[..])));
        for state in [
            State::Absent,
            State::Unknown { why: "EACCES".into() },
            State::Skipped { reason: "a socket".into() },
            State::Present(Present::File(file)),
            State::Present(link),
            State::Present(Present::Folder { mode: Some(0o700) }),
        ] {
            assert_eq!(read(&serde_json::to_string(&state).unwrap()), state);
        }
    }

    #[test]
    fn what_an_older_store_recorded_is_understood() {
        let hash = BlobId::of(b"x");
        let state = read(&format!(r#"{{"present":{{"hash":"{hash}","size":1}}}}"#));
        assert_eq!(
            state,
            State::Present(Present::File(File { hash, size: 1, mode: None, names: 1, place: None }))
        );
        assert_eq!(read(r#"{"absent":true}"#), State::Absent);
    }

    #[test]
    fn half_a_state_is_unknown_and_never_absent() {
        for half in [
            r#"{"absent":false}"#,
            r#"{"present":{}}"#,
            r#"{"present":{"kind":"symlink"}}"#,
            r#"{"present":{"kind":"symlink","target":""}}"#,
        ] {
            assert!(matches!(read(half), State::Unknown { .. }), "{half}");
        }
    }

    #[test]
    fn setuid_is_forgotten_on_the_way_in() {
        let json = format!(r#"{{"present":{{"hash":"{}","size":1,"mode":3565}}}}"#, BlobId::of(b"x"));
        assert_eq!(read(&json).file().unwrap().mode, Some(3565 & 0o777));
    }
}
