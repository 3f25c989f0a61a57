//! Names that come from outside: ids, the names of documents, and the URLs of stores.

use std::fmt::{Debug, Display};
use std::path::{Component, Path};
use std::str::FromStr;

use rethread_store::backend::{Key, LogKey, LogName};
use rethread_store::{BlobId, EntryId, Schemes, SessionId};

/// Parses a name that may be anything: what is taken is printed as it came and stays in its folder.
pub fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    same::<BlobId>(&text);
    same::<EntryId>(&text);
    if let Some(id) = same::<SessionId>(&text) {
        stays_inside(id.as_str(), 1);
        for name in ["metadata", &text] {
            if let Ok(key) = Key::session(id.clone(), name) {
                stays_inside(&key.to_string(), 3);
                same::<Key>(&key.to_string()).expect("its own text form");
            }
        }
    }
    if let Some(key) = same::<Key>(&text) {
        stays_inside(&key.to_string(), 3);
    }
    if let Ok(key) = Key::store(&text) {
        stays_inside(&key.to_string(), 2);
    }
    for url in [text.to_string(), format!("file:{text}"), format!("memory:{text}")] {
        if let Ok(backend) = Schemes::default().open(&url) {
            let log = LogKey::new("s".parse().expect("an id"), LogName::Messages);
            let end = Path::new("sessions/s/messages.jsonl");
            assert!(backend.path(&log).is_none_or(|path| path.ends_with(end)), "{url:?}");
        }
    }
}

fn same<T: FromStr<Err: Debug> + Display>(text: &str) -> Option<T> {
    let name: T = text.parse().ok()?;
    assert_eq!(name.to_string(), text);
    Some(name)
}

fn stays_inside(path: &str, depth: usize) {
    let parts: Vec<Component> = Path::new(path).components().collect();
    assert!(
        parts.len() <= depth && parts.iter().all(|part| matches!(part, Component::Normal(_))),
        "{path:?}"
    );
    assert!(!path.contains(['\0', '\\']) && !path.starts_with('.'), "{path:?}");
}
