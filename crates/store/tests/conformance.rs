//! Every backend keeps the contract, and the suite notices one that does not.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pollster::block_on;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, LogName,
    Position, Put, Rewrite, Space, Target,
};
use rethread_store::{
    BlobId, EntryId, FileBackend, Line, MemoryBackend, OffBackend, Result, SessionId, conformance,
};
use tempfile::TempDir;

#[test]
fn memory_conforms() {
    block_on(conformance::backend(MemoryBackend::default));
}

#[test]
fn files_conform() {
    let roots = Roots::new();
    block_on(conformance::backend(|| FileBackend::new(roots.next())));
}

#[test]
fn files_conform_in_the_hands_of_two_processes() {
    let roots = Roots::new();
    block_on(conformance::handles(|| {
        let root = roots.next();
        (FileBackend::new(&root), FileBackend::new(root))
    }));
}

#[test]
fn a_boxed_backend_conforms() {
    let roots = Roots::new();
    block_on(conformance::backend(|| -> Box<dyn Backend> {
        Box::new(MemoryBackend::default())
    }));
    block_on(conformance::backend(|| -> Box<dyn Backend> {
        Box::new(FileBackend::new(roots.next()))
    }));
}

#[test]
fn a_shared_backend_conforms() {
    let roots = Roots::new();
    let memory = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::default()) };
    let files = || -> Arc<dyn Backend> { Arc::new(FileBackend::new(roots.next())) };
    block_on(conformance::backend(memory));
    block_on(conformance::backend(files));
    block_on(conformance::handles(|| twice(memory())));
    block_on(conformance::handles(|| twice(files())));
}

#[test]
fn a_slow_backend_conforms() {
    let roots = Roots::new();
    block_on(conformance::backend(|| {
        Altered::new(MemoryBackend::default(), How::Slow)
    }));
    block_on(conformance::backend(|| {
        Altered::new(FileBackend::new(roots.next()), How::Slow)
    }));
}

#[test]
fn a_pointer_forwards_every_method_to_the_backend_behind_it() {
    let counted = Arc::new(Altered::new(MemoryBackend::default(), How::Faithful));
    let shared = counted.clone();
    block_on(conformance::backend(move || {
        let fresh: Arc<dyn Backend> = Arc::new(MemoryBackend::default());
        let _ = fresh;
        Arc::new(Altered::new(MemoryBackend::default(), How::Faithful))
    }));
    drop(shared);
    let boxed: Box<dyn Backend> = Box::new(counted.clone());
    let log = LogKey::new("a".parse().unwrap(), LogName::Messages);
    block_on(async {
        boxed.settle(&log).await.unwrap();
        boxed.changed(&log, 0).await.unwrap();
        boxed.find(&log, &"id".parse().unwrap()).await.unwrap();
        boxed.stat(&log.session).await.unwrap();
        boxed.path(&log);
        boxed.rewrite(&log).await.unwrap();
        boxed.sweep().await.unwrap();
    });
    let calls = counted.calls();
    let once = ["changed", "find", "path", "rewrite", "settle", "stat", "sweep"];
    assert_eq!(calls, once.map(|name| (name, 1)).into());
}

#[test]
fn a_backend_that_keeps_nothing_is_turned_away() {
    let message = panic_of(|| block_on(conformance::backend(|| OffBackend)));
    assert!(
        message.starts_with("a backend that keeps nothing is exempt"),
        "{message}"
    );
}
