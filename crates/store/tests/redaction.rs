//! A store that takes secrets out lets none pass, whichever way an entry comes in.

use std::sync::Arc;

use rethread_store::backend::{From, LogKey, LogName};
use rethread_store::{
    Entry, FileBackend, MemoryBackend, NewSession, Options, Recorder, Recording, Redactor, Session, Store,
};

use crate::kit::run;

/// Opens nothing, and is put together here so that no scanner takes this file for a leak.
fn key() -> String {
    ["sk-", "ant-", "api03-aB3dE6gH9jK2mN5pQ8sT1vW4xY7z"].concat()
}

fn entry(number: usize) -> Entry {
    let line = format!(r#"{{"uuid":"u-{number}","role":"user","content":"with {} here"}}"#, key());
    Entry::parse(line).unwrap()
}

fn careful() -> Options {
    Options { redactor: Some(Arc::new(Redactor::new())), ..Options::default() }
}

/// Returns a log's entries as text.
fn text_of(session: &Session, log: LogName) -> String {
    let log = LogKey::new(session.id().clone(), log);
    let chunk = run(session.store().backend().read(&log, From::Position(0), usize::MAX)).unwrap();
    chunk.lines.iter().map(|line| String::from_utf8(line.as_bytes().to_vec()).unwrap() + "\n").collect()
}

#[test]
fn every_way_to_append_takes_secrets_out() {
    let store = Store::new(MemoryBackend::default(), careful());
    let session = run(store.create(NewSession::default())).unwrap();
    run(async {
        session.append(entry(1)).await?.await?;
        session.try_append(entry(2))?.await?;
        session.append_all(vec![entry(3), entry(4)]).await?.await?;
        session.append_and_save(entry(5), |_| ()).await?.await?;
        session.append_transcript(entry(6)).await?.await
    })
    .unwrap();
    session.append_and_wait(entry(7)).unwrap();
    let (messages, transcript) =
        (text_of(&session, LogName::Messages), text_of(&session, LogName::Transcript));
    assert_eq!(messages.matches("with [redacted anthropic-key] here").count(), 6, "{messages}");
    assert_eq!(transcript.matches("with [redacted anthropic-key] here").count(), 1, "{transcript}");
    assert!(!messages.contains(&key()) && !transcript.contains(&key()));
    let prompt = run(session.metadata()).unwrap().first_prompt.unwrap();
    assert_eq!(prompt, "with [redacted anthropic-key] here");
}

/// Once, names and tags went in as they were, and so did what copies and bundles brought of them.
#[test]
fn what_a_session_is_called_holds_no_secret_however_it_came_to_be_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = Store::new(FileBackend::new(folder.path().join("theirs")), Options::default());
    let ours = Store::new(FileBackend::new(folder.path().join("ours")), careful());
    let call = |store: &Store, id: &str| {
        let mut new = NewSession::at("/work").id(id.parse().unwrap()).name(format!("\"{}\"", key()));
        new.tags = vec![key()];
        new.extra.insert("whose".into(), key().into());
        let session = run(store.create(new)).unwrap();
        let rename = |metadata: &mut rethread_store::Metadata| metadata.name = Some(format!("a\n{}", key()));
        run(session.update(rename)).unwrap();
        run(async { session.append_and_save(entry(1), |it| it.tags.push(key() + "x")).await?.await })
            .unwrap();
        let fork = rethread_store::Fork::default().name(key()).id(format!("{id}-fork").parse().unwrap());
        run(session.fork(fork)).unwrap();
    };
    call(&ours, "own");
    call(&theirs, "copied");
    call(&theirs, "bundled");
    for id in ["copied", "copied-fork"] {
        run(theirs.replicate(&id.parse().unwrap(), &ours, &mut |_| {})).unwrap();
        let again = run(theirs.replicate(&id.parse().unwrap(), &ours, &mut |_| {})).unwrap();
        assert_eq!(again.records, 0, "{id}");
    }
    let bundle = folder.path().join("bundle");
    run(theirs.export(&"bundled".parse().unwrap(), &mut std::fs::File::create(&bundle).unwrap())).unwrap();
    run(ours.import_bundle(&bundle, None)).unwrap();
    for id in ["own", "own-fork", "copied", "copied-fork", "bundled"] {
        let session = run(ours.open(&id.parse().unwrap())).unwrap();
        let mut metadata = run(session.metadata()).unwrap();
        let whose = metadata.extra.remove("whose");
        assert_eq!(whose.is_some(), !id.ends_with("fork"), "{id}: what programs keep there stays as it is");
        let metadata = serde_json::to_string(&metadata).unwrap();
        assert!(
            !metadata.contains(&key()) && metadata.contains("[redacted anthropic-key]"),
            "{id}: {metadata}"
        );
        let log = text_of(&session, LogName::Messages);
        assert_eq!(log.matches(&key()).count(), usize::from(whose.is_some()), "{id}: {log}");
        assert!(run(ours.verify(session.id())).unwrap().is_ok(), "{id}");
    }
}

#[test]
fn saving_the_same_messages_again_is_no_new_branch() {
    let store = Store::new(MemoryBackend::default(), careful());
    let session = run(store.create(NewSession::default())).unwrap();
    let said: Vec<Entry> = (1..4).map(entry).collect();
    for _ in 0..2 {
        run(async { session.save(&said, |_| ()).await?.await }).unwrap();
    }
    assert_eq!(text_of(&session, LogName::Messages).matches("[redacted anthropic-key]").count(), 3);
}

#[test]
fn a_recorder_takes_secrets_out() {
    let store = Store::new(MemoryBackend::default(), careful());
    let recorder = run(Recorder::initialize(Some(store.clone()), Recording::default())).unwrap();
    drop(recorder.persist(entry(1)));
    run(recorder.flush()).unwrap();
    let session = run(store.open(recorder.id())).unwrap();
    let messages = text_of(&session, LogName::Messages);
    assert!(messages.contains("[redacted anthropic-key]") && !messages.contains(&key()), "{messages}");
}

#[test]
fn an_imported_bundle_leaves_its_secrets_behind() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = Store::new(FileBackend::new(folder.path().join("theirs")), Options::default());
    let session = run(theirs.create(NewSession::default())).unwrap();
    run(async { session.append(entry(1)).await?.await }).unwrap();
    let bundle = folder.path().join("bundle");
    let mut out = std::fs::File::create(&bundle).unwrap();
    run(theirs.export(session.id(), &mut out)).unwrap();
    let ours = Store::new(FileBackend::new(folder.path().join("ours")), careful());
    let imported = run(ours.import_bundle(&bundle, None)).unwrap();
    let there = run(ours.open(&imported.session_id)).unwrap();
    let messages = text_of(&there, LogName::Messages);
    assert!(messages.contains("[redacted anthropic-key]") && !messages.contains(&key()), "{messages}");
}
