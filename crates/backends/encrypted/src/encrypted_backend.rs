//! The wrapper: what goes in is sealed, what comes out is opened.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use base64_simd::STANDARD;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Hints, Key, Known, Listed,
    LogKey, Position, Put, Rewrite, Space, Target,
};
use rethread_store::{BlobId, Entry, EntryId, Error, Kind, Line, Note, Result, SessionId, Stamp};

use crate::content;
use crate::keys::{FOLDER, Keys};
use crate::master_key::MasterKey;
use crate::names::Names;
use crate::seal::{OVERHEAD, Secret};

/// What stands around something sealed, so that a line is still a JSON object.
const OPENING: &str = "{\"sealed\":\"";
const CLOSING: &str = "\"}";
/// From how many bytes on another thread helps to open them.
const SHARE: usize = 1 << 18;
/// How many names are asked for at once.
const PAGE: usize = 10_000;

/// Sessions encrypted at rest, in another backend.
#[derive(Debug)]
pub struct EncryptedBackend<B> {
    inner: B,
    keys: Keys,
    documents: Secret,
    contents: Secret,
    names: Names,
    /// The names of contents from where a listing ended: they are in another order within.
    listing: Mutex<Option<(String, Vec<Listed>)>>,
}

impl<B: Backend> EncryptedBackend<B> {
    /// Wraps a backend. Nothing is read or made yet.
    pub fn new(inner: B, key: &MasterKey) -> Self {
        Self {
            inner,
            keys: Keys::new(key.derived("keys of sessions")),
            documents: key.derived("documents"),
            contents: key.derived("contents"),
            names: Names::new(&key.derived("names of contents")),
            listing: Mutex::default(),
        }
    }

    /// Erases a session's key, and with it the session: wherever there are copies of its log alone, nobody can read them
    /// any more. Forks keep it readable for whoever reads those. What is remembered of it goes too; contents go when
    /// nothing refers to them. Returns whether there was one.
    pub async fn erase(&self, session: &SessionId) -> Result<bool> {
        let erased = self.keys.erase(&self.inner, session).await?;
        for name in ["metadata", "listed"] {
            self.inner.remove(&Target::Document(Key::session(session.clone(), name)?)).await?;
        }
        Ok(erased)
    }

    fn opened(&self, key: &Key, document: Document) -> Result<Document> {
        let opened = text_of(&document.bytes).and_then(|sealed| decode(sealed.trim_ascii_end()));
        let opened = opened.and_then(|sealed| self.documents.open(sealed, key.to_string().as_bytes()));
        let bytes = opened.ok_or_else(|| match text_of(&document.bytes) {
            Some(_) => Error::Key("the store was encrypted with another key"),
            None => Error::Key("the store is not encrypted, and a key was given"),
        })?;
        Ok(Document { version: document.version, bytes: bytes.into() })
    }

    /// Returns the key to write a log with; `None` if it has none, which only a log that is empty may.
    async fn key_to_write(&self, log: &LogKey, at: Position, lines: &[Line]) -> Result<Option<Arc<Secret>>> {
        // At its beginning a log may be one that was removed, and has another key now.
        if at > 0 {
            return self.keys.to_write(&self.inner, &log.session).await;
        }
        let parent = lines.first().filter(|line| line.stamp().kind == Kind::Note).and_then(parent_of);
        self.keys.make(&self.inner, &log.session, parent.as_ref()).await.map(Some)
    }

    async fn open_lines(&self, log: &LogKey, lines: &[Line]) -> Result<Vec<Line>> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.keys.find(&self.inner, &log.session).await?;
        let opened = known.as_deref().map(|key| open_all(key, log, lines));
        if let Some(Ok(opened)) = opened {
            return Ok(opened);
        }
        // The session may have been removed and begun again by somebody else.
        let key = self.keys.look(&self.inner, &log.session).await?.or(known);
        let key = key.ok_or_else(|| erased(&log.session))?;
        open_all(&key, log, lines).map_err(|position| Error::Damaged {
            what: format!("record {position} of {log}"),
            reason: "it cannot be decrypted".into(),
        })
    }
}

#[warn(clippy::missing_trait_methods)]
#[async_trait]
impl<B: Backend> Backend for EncryptedBackend<B> {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let room = (inner.max_record - OPENING.len() - CLOSING.len()) / 4 * 3;
        Capabilities { max_record: room - OVERHEAD, ..inner }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        let found = self.inner.get(key).await?;
        found.map(|document| self.opened(key, document)).transpose()
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        let sealed = encode(&self.documents.seal(bytes, key.to_string().as_bytes())?);
        match self.inner.put(key, &sealed, expect).await? {
            Put::Conflict(Some(document)) => Ok(Put::Conflict(Some(self.opened(key, document)?))),
            put => Ok(put),
        }
    }

    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        if lines.is_empty() {
            return self.inner.append(log, at, lines, durability).await;
        }
        let Some(key) = self.key_to_write(log, at, lines).await? else {
            let next = self.inner.read(log, From::Last, 1).await?.next;
            return if next == at { Err(erased(&log.session)) } else { Ok(Append::Moved { next }) };
        };
        let sealed = lines.iter().map(|line| seal_line(&key, log, line)).collect::<Result<Vec<Line>>>()?;
        let appended = self.inner.append(log, at, &sealed, durability).await?;
        if at == 0 && !matches!(appended, Append::Moved { .. }) {
            // Somebody may have removed a session of that id just now, and its key only then.
            self.keys.keep(&self.inner, &log.session, &key).await?;
        }
        Ok(appended)
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        // Sealed lines are larger, and what is asked for is what they hold.
        let chunk = self.inner.read(log, from, max_bytes.saturating_add(max_bytes / 3)).await?;
        Ok(Chunk { lines: self.open_lines(log, &chunk.lines).await?, ..chunk })
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        let failed = Error::io("read the content of", blob.to_string());
        let mut sealing = content::Sealing::new(content, &self.contents, blob).map_err(failed)?;
        let mut checked = Checked { sealing: &mut sealing, blob, is_wrong: false };
        let put = self.inner.put_blob(&self.names.sealed(blob), &mut checked).await;
        if checked.is_wrong { Err(Error::WrongBlob(*blob)) } else { put }
    }

    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        if let Some((wrong, _)) = blobs.iter().find(|(blob, content)| BlobId::of(content) != *blob) {
            return Err(Error::WrongBlob(*wrong));
        }
        let seal = |(blob, content): &(BlobId, Bytes)| {
            let sealed = content::seal(content, &self.contents, blob)?;
            Ok((self.names.sealed(blob), Bytes::from(sealed)))
        };
        self.inner.put_blobs(&blobs.iter().map(seal).collect::<Result<Vec<_>>>()?).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        let name = self.names.sealed(blob);
        if range.is_empty() {
            let found = self.inner.get_blob(&name, 0..0).await?;
            return Ok(found.map(|_| Bytes::new()));
        }
        // From the beginning the salt comes along.
        let asked = content::sealed_range(&range);
        let is_beginning = asked.start == content::SALT;
        let asked = if is_beginning { 0..asked.end } else { asked };
        let Some(mut sealed) = self.inner.get_blob(&name, asked).await? else { return Ok(None) };
        let damaged =
            || Error::Damaged { what: format!("blob {blob}"), reason: "it cannot be decrypted".into() };
        let salt = match is_beginning {
            true => sealed.split_to(sealed.len().min(content::SALT as usize)),
            false => self.inner.get_blob(&name, 0..content::SALT).await?.ok_or_else(damaged)?,
        };
        let opened = content::open(&sealed, &range, (&self.contents, blob, &salt));
        let is_right = |plain: &Vec<u8>| {
            range.start > 0 || range.end <= plain.len() as u64 || BlobId::of(plain) == *blob
        };
        opened.filter(is_right).map(|plain| Some(plain.into())).ok_or_else(damaged)
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        self.inner.refresh_blob(&self.names.sealed(blob)).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        match space {
            Space::Sessions => self.inner.list(space, after, limit).await,
            Space::Documents => self.list_documents(after, limit).await,
            Space::Blobs => self.list_contents(after, limit).await,
        }
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        match target {
            Target::Document(_) => self.inner.remove(target).await,
            Target::Session(session) => {
                // Its key last: whoever is interrupted can still read what there is to remove.
                let removed = self.inner.remove(target).await?;
                self.keys.erase(&self.inner, session).await?;
                Ok(removed)
            }
            Target::Blob(blob) => self.inner.remove(&Target::Blob(self.names.sealed(blob))).await,
            Target::StaleBlob(blob, since) => {
                self.inner.remove(&Target::StaleBlob(self.names.sealed(blob), *since)).await
            }
        }
    }

    async fn settle(&self, log: &LogKey) -> Result<()> {
        self.inner.settle(log).await
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        self.inner.changed(log, since).await
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        self.inner.find(log, id).await
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        self.inner.stat(session).await
    }

    fn path(&self, log: &LogKey) -> Option<PathBuf> {
        self.inner.path(log)
    }

    async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
        let first = match &known.first {
            Some(first) => {
                let key = self.keys.to_write(&self.inner, &log.session).await?;
                Some(seal_line(&*key.ok_or_else(|| erased(&log.session))?, log, first)?)
            }
            None => None,
        };
        self.inner.rewrite(log, &Known { first, next: known.next }).await
    }

    async fn sweep(&self) -> Result<u64> {
        self.inner.sweep().await
    }

    fn hints(&self) -> Option<Hints> {
        // They name nothing but sessions, whose names are not sealed.
        self.inner.hints()
    }
}

impl<B: Backend> EncryptedBackend<B> {
    /// Lists documents without the keys among them.
    async fn list_documents(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let is_key = |listed: &Listed| listed.name.starts_with(FOLDER);
        let mut listed = self.inner.list(Space::Documents, after, limit).await?;
        while listed.iter().any(is_key) {
            listed.retain(|listed| !is_key(listed));
            // Right behind the last of them.
            let behind = FOLDER.replace('/', "0");
            let rest = limit.saturating_sub(listed.iter().filter(|it| it.name < behind).count());
            listed.retain(|listed| listed.name < behind);
            // Nothing is called that, and what is called so is behind it.
            listed.extend(self.inner.list(Space::Documents, Some(&behind), rest).await?);
        }
        Ok(listed)
    }

    /// Lists contents by their hashes. Within they are in another order, so all names are looked at, once.
    async fn list_contents(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let kept = self.listing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut rest = match (kept, after) {
            (Some((ended, rest)), Some(after)) if ended == after => rest,
            _ => {
                let mut all = self.all_contents().await?;
                all.retain(|listed| after.is_none_or(|after| listed.name.as_str() > after));
                all
            }
        };
        let later = rest.split_off(limit.min(rest.len()));
        if let Some(last) = rest.last().filter(|_| !later.is_empty()) {
            let kept = Some((last.name.clone(), later));
            *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        }
        Ok(rest)
    }

    async fn all_contents(&self) -> Result<Vec<Listed>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.inner.list(Space::Blobs, after.as_deref(), PAGE).await?;
            let is_end = page.len() < PAGE;
            after = page.last().map(|listed| listed.name.clone());
            all.extend(page.into_iter().filter_map(|listed| {
                let name = self.names.opened(&listed.name.parse().ok()?)?.to_string();
                Some(Listed { name, ..listed })
            }));
            if is_end {
                all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                return Ok(all);
            }
        }
    }
}

/// Content on its way, whose end is only given if it is what it was called.
struct Checked<'a, 'b> {
    sealing: &'a mut content::Sealing<'b>,
    blob: &'a BlobId,
    is_wrong: bool,
}

impl Read for Checked<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.sealing.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.sealing.name() != *self.blob {
            self.is_wrong = true;
            return Err(std::io::Error::other("the content is another one"));
        }
        Ok(read)
    }
}

fn erased(session: &SessionId) -> Error {
    Error::Damaged { what: format!("session {session}"), reason: "its key was erased".into() }
}

/// Returns the session that a fork inherits from.
fn parent_of(line: &Line) -> Option<SessionId> {
    match line.entry().read().ok()? {
        Note::Created { origin, .. } => origin.map(|origin| origin.session),
        _ => None,
    }
}

/// Returns what a line is sealed for: it can be read nowhere else.
fn place(log: &LogKey, stamp: &Stamp) -> String {
    let Stamp { position, parent, depth, kind, id, left, .. } = stamp;
    let kind = match kind {
        Kind::Entry => 'e',
        Kind::Note => 'n',
        Kind::Copy => 'c',
    };
    format!("{log} {position} {} {depth} {kind} {id} {left}", parent.map_or(-1, |parent| parent as i64))
}

fn seal_line(key: &Secret, log: &LogKey, line: &Line) -> Result<Line> {
    let sealed = key.seal(&line.body(), place(log, line.stamp()).as_bytes())?;
    Ok(Line::restored(encode(&sealed).into(), line.stamp().clone()))
}

/// Opens lines, on several threads if that is worth it. Returns the position of one that cannot be opened.
fn open_all(key: &Secret, log: &LogKey, lines: &[Line]) -> std::result::Result<Vec<Line>, Position> {
    let size: usize = lines.iter().map(|line| line.body().len()).sum();
    let hands = std::thread::available_parallelism().map_or(1, usize::from).min(size / SHARE).max(1);
    if hands == 1 {
        return open_some(key, log, lines);
    }
    std::thread::scope(|scope| {
        let mut shares = lines.chunks(lines.len().div_ceil(hands));
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || open_some(key, log, share))).collect();
        let mut all = open_some(key, log, own)?;
        for share in others {
            all.extend(share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Opens lines into one piece of memory: to get one for each would take longer than to open them.
fn open_some(key: &Secret, log: &LogKey, lines: &[Line]) -> std::result::Result<Vec<Line>, Position> {
    let bodies: Vec<Bytes> = lines.iter().map(Line::body).collect();
    let size = |body: &Bytes| body.len() / 4 * 3 + 3;
    let mut room: Vec<u8> = Vec::with_capacity(bodies.iter().map(size).sum());
    let mut places = Vec::with_capacity(lines.len());
    for (line, body) in lines.iter().zip(&bodies) {
        places.push(open_line(key, log, line, body, &mut room).ok_or(line.stamp().position)?);
    }
    let room = Bytes::from(room);
    let restored = |(line, place): (&Line, Range<usize>)| match place.is_empty() {
        true => line.clone(),
        false => Line::restored(room.slice(place), line.stamp().clone()),
    };
    Ok(lines.iter().zip(places).map(restored).collect())
}

/// Opens one of them behind the others, and returns where it is; nowhere if it was never sealed.
fn open_line(
    key: &Secret,
    log: &LogKey,
    line: &Line,
    body: &[u8],
    room: &mut Vec<u8>,
) -> Option<Range<usize>> {
    let Some(text) = text_of(body) else {
        // Whoever repairs a log does so without its key.
        let is_lost = |entry: Entry| matches!(entry.read(), Ok(Note::Lost { .. }));
        return (line.stamp().kind == Kind::Note && is_lost(line.entry())).then_some(0..0);
    };
    let begin = room.len();
    STANDARD.decode_append(text, room).ok()?;
    let opened = key.open_in_place(&mut room[begin..], place(log, line.stamp()).as_bytes())?;
    room.truncate(begin + opened);
    Some(begin..begin + opened)
}

fn encode(sealed: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(OPENING.len() + sealed.len() / 3 * 4 + 4 + CLOSING.len());
    text.extend_from_slice(OPENING.as_bytes());
    STANDARD.encode_append(sealed, &mut text);
    text.extend_from_slice(CLOSING.as_bytes());
    text
}

/// Returns what stands in the place of something sealed.
fn text_of(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(OPENING.as_bytes())?.trim_ascii_end().strip_suffix(CLOSING.as_bytes())
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode_to_vec(text).ok()
}
