//! Names in order.

use jiff::Timestamp;
use rethread_store::backend::{Listed, LogName, Space};
use rethread_store::{Result, SessionId};

use crate::bucket::{Bucket, Entry, FULL_PAGE, Start};
use crate::documents;
use crate::layout::{self, BLOBS, DOCUMENTS, SESSIONS};

/// How many objects a session usually has.
const USUAL: usize = 6;

pub(crate) async fn list(
    bucket: &Bucket,
    space: Space,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Listed>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    match space {
        Space::Sessions => sessions(bucket, after, limit).await,
        Space::Documents => {
            let name = |key: &str| key.strip_prefix(DOCUMENTS).map(|name| name.replace('.', "/"));
            named(bucket, DOCUMENTS, after, limit, name).await
        }
        Space::Blobs => {
            let name = |key: &str| key.strip_prefix(BLOBS).map(str::to_owned);
            named(bucket, BLOBS, after, limit, name).await
        }
    }
}

/// Returns what `list` says of one session.
pub(crate) async fn stat(bucket: &Bucket, session: &SessionId) -> Result<Option<Listed>> {
    let mut found = None;
    for entry in all(bucket, &layout::session(session)).await? {
        add(&mut found, session.as_str(), &entry);
    }
    Ok(found.map(Found::listed))
}

/// Returns everything whose name begins with a text.
pub(crate) async fn all(bucket: &Bucket, prefix: &str) -> Result<Vec<Entry>> {
    let (mut entries, mut from) = (Vec::new(), Start::Beginning);
    loop {
        let page = bucket.list(prefix, &from, FULL_PAGE).await?;
        entries.extend(page.entries);
        match page.next {
            Some(next) => from = next,
            None => return Ok(entries),
        }
    }
}

async fn named(
    bucket: &Bucket,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
    name: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    // Where to begin is as much of it as can stand in a name; the rest is looked at where that is.
    let begin = |after: &str| Start::After(format!("{prefix}{}", plain(&after.replace('/', "."))));
    let mut from = after.map_or(Start::Beginning, begin);
    loop {
        let page = bucket.list(prefix, &from, limit - listed.len()).await?;
        // What has no bytes was cleared away.
        for entry in page.entries.into_iter().filter(|entry| entry.size > 0 && !documents::is_blank(entry)) {
            let name = name(&entry.key).filter(|name| after.is_none_or(|after| name.as_str() > after));
            let Some(name) = name else { continue };
            listed.push(Listed { name, change: String::new(), modified: entry.modified });
        }
        match page.next {
            Some(next) if listed.len() < limit => from = next,
            _ => return Ok(listed),
        }
    }
}

/// Returns as much of a text as can stand in a name.
fn plain(text: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    &text[..text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len())]
}

async fn sessions(bucket: &Bucket, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
    let mut listed: Vec<Listed> = Vec::new();
    let mut found: Option<Found> = None;
    // A dollar comes after the mark that ends an id, and before whatever an id can go on with.
    let begin = |after: &str| Start::After(format!("{SESSIONS}{}$", plain(after)));
    let mut from = after.map_or(Start::Beginning, begin);
    loop {
        let most = limit.saturating_sub(listed.len()).saturating_add(1).saturating_mul(USUAL);
        let page = bucket.list(SESSIONS, &from, most).await?;
        for entry in &page.entries {
            let name = entry.key.strip_prefix(SESSIONS).and_then(|rest| rest.split_once('!'));
            let Some((name, _)) = name.filter(|(name, _)| after.is_none_or(|after| *name > after)) else {
                continue;
            };
            if let Some(whole) = found.take_if(|found| found.name != name) {
                listed.push(whole.listed());
            }
            add(&mut found, name, entry);
        }
        match page.next {
            Some(next) if listed.len() < limit => from = next,
            Some(_) => break,
            None => {
                listed.extend(found.take().map(Found::listed));
                break;
            }
        }
    }
    listed.truncate(limit);
    Ok(listed)
}

/// A session of which some objects were seen.
struct Found {
    name: String,
    messages: Option<(Timestamp, String)>,
    log: Option<Timestamp>,
    document: Option<Timestamp>,
}

fn add(found: &mut Option<Found>, name: &str, entry: &Entry) {
    let found = found.get_or_insert_with(|| Found {
        name: name.to_owned(),
        messages: None,
        log: None,
        document: None,
    });
    let file = entry.key.rsplit_once('!').map_or("", |(_, file)| file);
    let time = Some(entry.modified);
    match file.strip_suffix(".log") {
        Some(log) if log == LogName::Messages.as_str() => {
            // Most servers list the tag; where one does not, the time and the size tell states apart.
            let untagged = || format!("{}-{}", entry.modified.as_millisecond(), entry.size);
            let change = entry.etag.as_deref().map_or_else(untagged, change_of);
            found.messages = Some((entry.modified, change));
        }
        Some(_) => found.log = found.log.max(time),
        None => found.document = found.document.max(time),
    }
}

/// Returns what a state of a log is called in listings. Not all servers put a tag in quotes there.
pub(crate) fn change_of(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

impl Found {
    fn listed(self) -> Listed {
        let (messages, change) = self.messages.unzip();
        let modified = messages.or(self.log).or(self.document).unwrap_or(Timestamp::UNIX_EPOCH);
        Listed { name: self.name, change: change.unwrap_or_default(), modified }
    }
}
