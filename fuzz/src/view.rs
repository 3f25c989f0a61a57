//! The typed views of an entry.

use bytes::Bytes;
use rethread_store::view::{Block, Message};
use rethread_store::{Entry, Kind, Line, Stamp};

/// Looks at an entry that may be anything; its stamp, which is one more member of the same object, changes nothing.
pub fn view(data: &[u8]) {
    drop(look(data));
    let Ok(entry) = Entry::parse(Bytes::copy_from_slice(data)) else {
        return;
    };
    let seen = look(entry.as_bytes());
    let id = entry.id().clone();
    let stamp =
        Stamp { position: 3, parent: Some(2), depth: 3, kind: Kind::Entry, id, left: 0, unsettled: 0 };
    assert_eq!(look(Line::new(&entry, stamp).as_bytes()), seen, "a stamp is not part of what is said");
}

/// Returns everything that a view says.
fn look(bytes: &[u8]) -> Option<Vec<String>> {
    let message = Message::of(bytes)?;
    let members = (&message.uuid, &message.parent_uuid, &message.timestamp, &message.model);
    let mut seen = vec![format!("{} {members:?}", message.role.as_str()), message.text().into_owned()];
    seen.extend(message.tool_uses().map(|tool| format!("{} {} {}", tool.id, tool.name, tool.input)));
    seen.extend(message.tool_results().map(|result| result.text().into_owned()));
    seen.extend(message.blocks.iter().map(|block| match block {
        Block::Image(raw) | Block::Other(raw) => raw.get().to_owned(),
        other => format!("{other:?}"),
    }));
    Some(seen)
}
