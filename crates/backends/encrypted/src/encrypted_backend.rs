//! The wrapper: what goes in is sealed, what comes out is opened.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use base64_simd::STANDARD;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Hints, Key, Known, Listed,
    LogKey, Position, Put, Rewrite, Space, Target, Unanswered, holds,
};
use rethread_store::{BlobId, EntryId, Error, Kind, Line, Note, Result, SessionId, Unseal};

use crate::content;
use crate::keys::{FOLDER, Held, Keys, Which};
use crate::master_key::MasterKey;
use crate::names::Names;
use crate::record::{self, Opener};
use crate::seal::Secret;

/// What stands around a sealed document, so that it is still a JSON object.
const OPENING: &str = "{\"sealed\":\"";
const CLOSING: &str = "\"}";
/// From how many bytes on another thread helps to open them.
const SHARE: usize = 1 << 18;
/// From how many bytes on whoever reads wants all there is, and soon: what can be opened is not summed up as well. Whoever
/// looks for damage reads in pieces.
const WHOLE: usize = 16 << 20;

/// Sessions encrypted at rest, in another backend.
#[derive(Debug)]
pub struct EncryptedBackend<B> {
    inner: B,
    keys: Keys,
    documents: Secret,
    contents: Secret,
    names: Names,
    /// As what lines were sealed: no other has ever sealed any so.
    unanswered: Unanswered<Vec<Line>>,
}

impl<B: Backend> EncryptedBackend<B> {
    /// Wraps a backend. Nothing is read or made yet.
    pub fn new(inner: B, key: &MasterKey) -> Self {
        Self {
            inner,
            keys: Keys::new(key.derived("keys of sessions")),
            documents: key.derived("documents"),
            contents: key.derived("contents"),
            names: Names::new(&key.derived("one-way names of contents"), &key.derived("names of contents")),
            unanswered: Unanswered::default(),
        }
    }

    /// Erases a session's key, and with it the session: wherever there are copies of its log alone, nobody can read them
    /// any more, nor the contents of files that no other session has: their hashes stood in it. What is remembered of it
    /// goes too; [`Store::gc`](rethread_store::Store::gc) clears away the rest. Returns whether there was one.
    ///
    /// Attached forks have the key, and go on reading through the session what they inherit. To take it from them too, see
    /// [`disinherit`](Self::disinherit).
    pub async fn erase(&self, session: &SessionId) -> Result<bool> {
        let erased = self.keys.erase(&self.inner, session, Which::Any).await?;
        self.keys.forget_replaced(&self.inner).await?;
        for name in ["metadata", "listed", "replica"] {
            self.inner.remove(&Target::Document(Key::session(session.clone(), name)?)).await?;
        }
        // What a listing remembered of all sessions is only a cache, and the next one makes it again.
        self.inner.remove(&Target::Document(Key::store("catalog")?)).await?;
        Ok(erased)
    }

    /// Takes a session's key from its forks. Those that have no copies of what they inherit lose it, so have
    /// [`Store::detach_forks`](rethread_store::Store::detach_forks) make some first. Returns from how many it was taken.
    pub async fn disinherit(&self, session: &SessionId) -> Result<u64> {
        let forks = self.keys.disinherit(&self.inner, session).await?;
        self.keys.forget_replaced(&self.inner).await?;
        Ok(forks)
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
    async fn key_to_write(&self, log: &LogKey, at: Position, lines: &[Line]) -> Result<Option<Held>> {
        // At its beginning a log may be one that was removed, and has another key now.
        if at > 0 {
            return self.keys.to_write(&self.inner, &log.session).await;
        }
        let parent = lines.first().filter(|line| line.stamp().kind == Kind::Note).and_then(parent_of);
        self.keys.make(&self.inner, &log.session, parent.as_ref()).await.map(Some)
    }

    /// Says what became of the key of a session that has records and no key.
    async fn without_key(&self, session: &SessionId) -> Result<Error> {
        Ok(match self.keys.is_erased(&self.inner, session).await? {
            true => Error::Erased(session.clone()),
            false => Error::Damaged { what: format!("session {session}"), reason: "it has no key".into() },
        })
    }

    /// Reads a log and has its records opened where they lie, where the place can do that; `None` if one cannot be opened.
    async fn read_unsealed_by_us(
        &self,
        log: &LogKey,
        from: Position,
        max_bytes: usize,
    ) -> Result<Option<Chunk>> {
        let Some(key) = self.keys.find(&self.inner, &log.session).await? else { return Ok(None) };
        let opener = Opener::new(key.of(log.name), max_bytes >= WHOLE);
        let chunk = self.inner.read_unsealed(log, from, max_bytes, &opener).await?;
        // Where something is wrong, checksums say what, as everywhere.
        let is_sound = |chunk: &Chunk| {
            let is_whole = chunk.damage.is_empty() && chunk.tail.is_none();
            !opener.has_failed() && (is_whole || !opener.is_proof())
        };
        Ok(chunk.filter(is_sound))
    }

    async fn open_lines(&self, log: &LogKey, lines: &[Line]) -> Result<Vec<Line>> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.keys.find(&self.inner, &log.session).await?;
        let opened = known.as_deref().map(|key| open_all(key.of(log.name), lines));
        if let Some(Ok(opened)) = opened {
            return Ok(opened);
        }
        // The session may have been removed and begun again by somebody else.
        let key = self.keys.look(&self.inner, &log.session).await?.or(known);
        let Some(key) = key else { return Err(self.without_key(&log.session).await?) };
        open_all(key.of(log.name), lines).map_err(|position| Error::Damaged {
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
        Capabilities { max_record: record::room_within(inner.max_record), knows_its_own: true, ..inner }
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
        self.add(log, None, at, lines, durability).await
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.add(log, Some(first), at, lines, durability).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        if let From::Position(position) = from
            && let Some(chunk) = self.read_unsealed_by_us(log, position, max_bytes).await?
        {
            return Ok(chunk);
        }
        let chunk = self.inner.read(log, from, max_bytes).await?;
        Ok(Chunk { lines: self.open_lines(log, &chunk.lines).await?, ..chunk })
    }

    async fn read_unsealed(
        &self,
        _: &LogKey,
        _: Position,
        _: usize,
        _: &dyn Unseal,
    ) -> Result<Option<Chunk>> {
        // What is sealed twice is opened by each in turn.
        Ok(None)
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
        match self.get_called(&self.names.sealed(blob), blob, range.clone()).await? {
            None => self.get_called(&self.names.earlier(blob), blob, range).await,
            found => Ok(found),
        }
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        Ok(self.inner.refresh_blob(&self.names.sealed(blob)).await?
            || self.inner.refresh_blob(&self.names.earlier(blob)).await?)
    }

    fn listed_as(&self, blob: &BlobId) -> Vec<BlobId> {
        let names = [self.names.sealed(blob), self.names.earlier(blob)];
        names.iter().flat_map(|name| self.inner.listed_as(name)).collect()
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
                self.keys.leave(&self.inner, session).await?;
                // Its key last: whoever is interrupted can still read what there is to remove.
                let removed = self.inner.remove(target).await?;
                self.keys.erase(&self.inner, session, Which::Leaving).await?;
                self.keys.forget_replaced(&self.inner).await?;
                Ok(removed)
            }
            Target::Blob(blob) => self.inner.remove(&Target::Blob(self.name_of(blob))).await,
            Target::StaleBlob(blob, since) => {
                self.inner.remove(&Target::StaleBlob(self.name_of(blob), *since)).await
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

    async fn is_erased(&self, session: &SessionId) -> Result<bool> {
        self.keys.is_erased(&self.inner, session).await
    }

    fn path(&self, log: &LogKey) -> Option<PathBuf> {
        self.inner.path(log)
    }

    async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
        let first = match &known.first {
            Some(first) => {
                let Some(held) = self.keys.to_write(&self.inner, &log.session).await? else {
                    return Err(self.without_key(&log.session).await?);
                };
                Some(record::seal(held.key.of(log.name), first)?)
            }
            None => None,
        };
        self.inner.rewrite(log, &Known { first, next: known.next }).await
    }

    async fn sweep(&self) -> Result<u64> {
        Ok(self.inner.sweep().await? + self.keys.sweep(&self.inner).await?)
    }

    fn change_at(&self, session: &SessionId, next: Position) -> Option<String> {
        self.inner.change_at(session, next)
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

    /// Adds lines where a log ends; to one that begins with some record, if one is named.
    async fn add(
        &self,
        log: &LogKey,
        first: Option<&EntryId>,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        if lines.is_empty() {
            return self.add_sealed(log, first, at, lines, durability).await;
        }
        let Some(held) = self.key_to_write(log, at, lines).await? else {
            let next = self.inner.read(log, From::Last, 1).await?.next;
            return match next == at {
                true => Err(self.without_key(&log.session).await?),
                false => Ok(Append::Moved { next }),
            };
        };
        let key = held.key.of(log.name);
        // What is tried again is sent as it was sealed, unless the session was begun anew with another key.
        let tried = self.unanswered.take(log, at, lines).filter(|sealed| record::open(key, sealed).is_ok());
        let is_tried = tried.is_some();
        let sealed = match tried {
            Some(sealed) => sealed,
            None => lines.iter().map(|line| record::seal(key, line)).collect::<Result<Vec<Line>>>()?,
        };
        let append = async {
            let mut appended = self.add_sealed(log, first, at, &sealed, durability).await?;
            if is_tried
                && matches!(appended, Append::Moved { .. })
                && holds(&self.inner, log, at, &sealed).await?
            {
                self.inner.settle(log).await?;
                let durability = self.inner.capabilities().durability;
                appended = Append::Done { durability, found: Vec::new() };
            }
            match appended {
                Append::Moved { .. } => {}
                // Somebody may have cleared away what was left of a session of that id just now.
                _ if at == 0 => self.keys.keep(&self.inner, &log.session, &held.key).await?,
                _ => self.keys.confirm(&self.inner, &log.session, &held).await?,
            }
            Ok(appended)
        };
        let appended = append.await;
        if appended.as_ref().is_err_and(Error::is_passing) {
            self.unanswered.add(log, at, lines, sealed);
        }
        appended
    }

    async fn add_sealed(
        &self,
        log: &LogKey,
        first: Option<&EntryId>,
        at: Position,
        sealed: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        match first {
            // Ids are not sealed.
            Some(first) => self.inner.append_to(log, first, at, sealed, durability).await,
            None => self.inner.append(log, at, sealed, durability).await,
        }
    }

    /// Lists contents without those that are not sealed.
    async fn list_contents(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let (mut contents, mut after) = (Vec::new(), after.map(str::to_owned));
        while contents.len() < limit {
            let asked = limit - contents.len();
            let page = self.inner.list(Space::Blobs, after.as_deref(), asked).await?;
            let is_end = page.len() < asked;
            after = page.last().map(|listed| listed.name.clone());
            let is_sealed = |listed: &Listed| listed.name.parse().is_ok_and(|name: BlobId| name.is_sealed());
            contents.extend(page.into_iter().filter(is_sealed));
            if is_end {
                break;
            }
        }
        Ok(contents)
    }

    /// Returns what a content is called, given its hash or what a listing calls it.
    fn name_of(&self, blob: &BlobId) -> BlobId {
        if blob.is_sealed() { *blob } else { self.names.sealed(blob) }
    }

    /// Returns part of the content of a hash, if there is one that is called so.
    async fn get_called(&self, name: &BlobId, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        if range.is_empty() {
            let found = self.inner.get_blob(name, 0..0).await?;
            return Ok(found.map(|_| Bytes::new()));
        }
        // From the beginning the salt comes along.
        let asked = content::sealed_range(&range);
        let is_beginning = asked.start == content::SALT;
        let asked = if is_beginning { 0..asked.end } else { asked };
        let Some(mut sealed) = self.inner.get_blob(name, asked).await? else { return Ok(None) };
        let damaged =
            || Error::Damaged { what: format!("blob {blob}"), reason: "it cannot be decrypted".into() };
        let salt = match is_beginning {
            true => sealed.split_to(sealed.len().min(content::SALT as usize)),
            false => self.inner.get_blob(name, 0..content::SALT).await?.ok_or_else(damaged)?,
        };
        let opened = content::open(&sealed, &range, (&self.contents, blob, &salt));
        let is_right = |plain: &Vec<u8>| {
            range.start > 0 || range.end <= plain.len() as u64 || BlobId::of(plain) == *blob
        };
        opened.filter(is_right).map(|plain| Some(plain.into())).ok_or_else(damaged)
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

/// Returns the session that a fork inherits from.
fn parent_of(line: &Line) -> Option<SessionId> {
    match line.entry().read().ok()? {
        Note::Created { origin, .. } => origin.map(|origin| origin.session),
        _ => None,
    }
}

/// Opens lines, on several threads if that is worth it. Returns the position of one that cannot be opened.
fn open_all(key: &Secret, lines: &[Line]) -> std::result::Result<Vec<Line>, Position> {
    let size: usize = lines.iter().map(|line| line.body().len()).sum();
    let hands = std::thread::available_parallelism().map_or(1, usize::from).min(size / SHARE).max(1);
    if hands == 1 {
        return record::open(key, lines);
    }
    std::thread::scope(|scope| {
        let mut shares = lines.chunks(lines.len().div_ceil(hands));
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || record::open(key, share))).collect();
        let mut all = record::open(key, own)?;
        for share in others {
            all.extend(share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
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
