//! Contents of files: what they are called, who can open them, and when nobody can any more.

use std::fs;
use std::path::{Path, PathBuf};

use pollster::block_on;
use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_store::backend::{Backend, From, LogKey, LogName, Space};
use rethread_store::{
    BlobId, Cleaning, Entry, Error, FileBackend, MemoryBackend, Options, Result, Session, Store,
};

use crate::{SECRET, ZERO, begin, erase, files_with, folder, store_at};

/// Puts content into a store and refers to it in a session's checkpoints.
fn keep(store: &Store, session: &Session, content: &str) -> BlobId {
    let blob = BlobId::of(content.as_bytes());
    block_on(store.backend().put_blob(&blob, &mut content.as_bytes())).unwrap();
    let record = format!(r#"{{"id":"c1","changes":[{{"hash":"{blob}"}}]}}"#);
    block_on(session.append_checkpoint(Entry::parse(record).unwrap())).unwrap();
    blob
}

#[test]
fn what_nobody_refers_to_is_cleared_away_and_what_somebody_does_stays() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    let blobs: Vec<BlobId> = (0..40)
        .map(|number| {
            let content = format!("content {number}");
            let blob = BlobId::of(content.as_bytes());
            block_on(store.backend().put_blob(&blob, &mut content.as_bytes())).unwrap();
            blob
        })
        .collect();
    let record = format!(r#"{{"id":"c1","changes":[{{"hash":"{}"}}]}}"#, blobs[7]);
    block_on(session.append_checkpoint(Entry::parse(record).unwrap())).unwrap();
    let listed: Vec<String> = (0..)
        .scan(None::<String>, |after, _| {
            let page = block_on(store.backend().list(Space::Blobs, after.as_deref(), 3)).unwrap();
            *after = page.last().map(|listed| listed.name.clone());
            (!page.is_empty()).then_some(page)
        })
        .flatten()
        .map(|listed| listed.name)
        .collect();
    let name = |blob: &BlobId| store.backend().listed_as(blob)[0].to_string();
    let mut names: Vec<String> = blobs.iter().map(name).collect();
    names.sort();
    assert_eq!(listed, names, "in pages");
    let cleaning = Cleaning { blobs_after: ZERO, grace: ZERO, ..Cleaning::default() };
    for _ in 0..2 {
        block_on(store.gc(&cleaning)).unwrap();
    }
    let left = block_on(store.backend().list(Space::Blobs, None, 99)).unwrap();
    assert_eq!(left.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), [name(&blobs[7])]);
}

#[test]
fn a_content_that_was_changed_cut_or_put_in_anothers_place_is_an_error() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
    let contents = ["one content", "another one"];
    let [one, other] = contents.map(|content| {
        let blob = BlobId::of(content.as_bytes());
        block_on(backend.put_blob(&blob, &mut content.as_bytes())).unwrap();
        blob
    });
    let files = || {
        let mut files = files_with(&folder.join("blobs"), b"");
        files.sort();
        files
    };
    let read = |blob: &BlobId| {
        let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
        block_on(backend.get_blob(blob, 0..99))
    };
    assert_eq!((files().len(), read(&one).unwrap().unwrap()), (2, contents[0].into()));
    let kept: Vec<(PathBuf, Vec<u8>)> =
        files().into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    let neither_is_right = |what: &str, changed: &[(PathBuf, Vec<u8>)]| {
        changed.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let found = [&one, &other].map(&read);
        let wrong = found.iter().zip(contents).filter(|(found, content)| match found {
            Ok(found) => found.as_deref() != Some(content.as_bytes()),
            Err(_) => false,
        });
        assert_eq!(wrong.count(), 0, "{what}: {found:?}");
        assert!(found.iter().any(Result::is_err), "{what} is not noticed");
        kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    };
    let (path, bytes) = &kept[0];
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        neither_is_right(&format!("byte {at}"), &[(path.clone(), flipped)]);
        neither_is_right(&format!("a cut at {at}"), &[(path.clone(), bytes[..at].to_vec())]);
    }
    neither_is_right(
        "that they were exchanged",
        &[(kept[0].0.clone(), kept[1].1.clone()), (kept[1].0.clone(), kept[0].1.clone())],
    );
}

#[test]
fn a_sealed_name_is_nobodys_to_give() {
    let backend = EncryptedBackend::new(MemoryBackend::default(), &MasterKey::generate().unwrap());
    let (blob, forged) = (BlobId::of(b"right"), BlobId::sealed(*BlobId::of(b"right").as_hash()));
    for refused in [
        block_on(backend.put_blobs(&[(forged, b"wrong"[..].into())])),
        block_on(backend.put_blob(&forged, &mut &b"wrong"[..])),
    ] {
        assert!(matches!(refused, Err(Error::WrongBlob(_))), "{refused:?}");
    }
    assert!(!block_on(backend.refresh_blob(&blob)).unwrap());
}

/// Once, a name could be turned back into the hash that the content's key follows from, so that whoever had the master key
/// could read what an erased session had kept, for as long as it or a copy of it was there.
#[test]
fn nobody_learns_from_a_store_what_an_erased_session_kept_though_it_is_still_there() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let (talk, other) = (begin(&store, "talk"), begin(&store, "other"));
    let erased = keep(&store, &talk, SECRET);
    let (shared, _) = (keep(&store, &talk, "both have it"), keep(&store, &other, "both have it"));
    let files = || files_with(&folder.join("blobs"), b"").len();
    store.close().unwrap();
    erase(&folder, &key, "talk");
    let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
    assert_eq!(files(), 2, "both are still there");
    // Whatever can be opened with the master key: records, documents, names of contents.
    let mut learnt: Vec<Vec<u8>> = Vec::new();
    for session in block_on(backend.list(Space::Sessions, None, 99)).unwrap() {
        for log in LogName::ALL {
            let log = LogKey::new(session.name.parse().unwrap(), log);
            match block_on(backend.read(&log, From::Position(0), usize::MAX)) {
                Ok(chunk) => learnt.extend(chunk.lines.iter().map(|line| line.body().to_vec())),
                Err(error) => assert!(matches!(error, Error::Erased(_)), "{error}"),
            }
        }
    }
    for document in block_on(backend.list(Space::Documents, None, 99)).unwrap() {
        learnt.extend(
            block_on(backend.get(&document.name.parse().unwrap())).unwrap().map(|it| it.bytes.to_vec()),
        );
    }
    for content in block_on(backend.list(Space::Blobs, None, 99)).unwrap() {
        let name: BlobId = content.name.parse().unwrap();
        assert_eq!(block_on(backend.get_blob(&name, 0..99)).unwrap(), None, "a name is no hash");
        learnt.push(content.name.into_bytes());
    }
    let knows = |blob: &BlobId| {
        let text = blob.to_string();
        learnt.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    assert!(knows(&shared), "the other session still has it");
    assert!(!knows(&erased));
    // Only whoever knows the hash already is told that there is such a content.
    assert!(block_on(backend.get_blob(&erased, 0..99)).unwrap().is_some());
    let store = Store::new(backend, Options::default());
    let cleaning = Cleaning { blobs_after: ZERO, grace: ZERO, ..Cleaning::default() };
    let cleaned = block_on(store.gc(&cleaning)).unwrap();
    assert_eq!(cleaned.blobs, [store.backend().listed_as(&erased)[0]]);
    assert_eq!(files(), 1);
}

/// A store of an earlier build, with a key of its own.
const EARLIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/names-that-could-be-turned-back");
const KEY_OF_EARLIER: &str = "e0Nkt/2gI3BOcC3RcrokigqxoyYv2iA11b41OF5ccJY=";

#[test]
fn contents_of_an_earlier_build_are_read_kept_and_cleared_away_like_others() {
    let folder = folder();
    copy(Path::new(EARLIER), &folder);
    let key: MasterKey = KEY_OF_EARLIER.parse().unwrap();
    let store = store_at(&folder, &key);
    let content = b"as it was before names told nothing\n";
    let blob = BlobId::of(content);
    let read = || block_on(store.backend().get_blob(&blob, 0..99)).unwrap();
    assert_eq!(read().as_deref(), Some(&content[..]));
    assert!(block_on(store.backend().refresh_blob(&blob)).unwrap());
    let cleaning = Cleaning { blobs_after: ZERO, grace: ZERO, ..Cleaning::default() };
    assert_eq!(block_on(store.gc(&cleaning)).unwrap().blobs, []);
    assert_eq!(read().as_deref(), Some(&content[..]));
    block_on(store.delete(&"talk".parse().unwrap())).unwrap();
    block_on(store.purge(&"talk".parse().unwrap())).unwrap();
    assert_eq!(block_on(store.gc(&cleaning)).unwrap().blobs.len(), 2);
    assert_eq!(read(), None);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => {
                fs::create_dir_all(&to).unwrap();
                copy(&entry.path(), &to);
            }
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}
