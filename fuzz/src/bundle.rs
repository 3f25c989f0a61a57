//! A bundle from somewhere else: all of it comes in, or nothing.

use std::path::Path;

use rethread_store::{Error, Problem, SessionId};
use sha2::{Digest, Sha256};

use super::home::{Home, run};
use super::memory_disk::ROOT;
use super::travel;

/// Imports a file that may be anything.
pub fn bundle(data: &[u8]) {
    import(data);
}

/// Imports a file that may be anything and ends as a whole bundle does: no input gets its checksum right by chance.
pub fn sealed_bundle(data: &[u8]) {
    let mut content = data.to_vec();
    if !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    let records = content.iter().filter(|byte| **byte == b'\n').count() - 1;
    let hash: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    content.extend(format!("{{\"end\":true,\"records\":{records},\"sha256\":\"{hash}\"}}\n").into_bytes());
    import(&content);
}

fn import(data: &[u8]) {
    let home = Home::default();
    let store = home.store();
    let imported = run(store.import_bundle(&travel::file(data), None));
    let sessions = Path::new(ROOT).join("sessions");
    match imported {
        Ok(imported) => holds_together(&home, &imported.session_id, imported.records + imported.inherited),
        Err(Error::BadImport { .. } | Error::BadEntry(_) | Error::TooLarge { .. }) => {
            let left: Vec<_> =
                home.disk.files().into_keys().filter(|path| path.starts_with(&sessions)).collect();
            assert!(left.is_empty(), "a refused bundle leaves nothing: {left:?}");
        }
        Err(error) => panic!("{error:?}"),
    }
    store.close().expect("nothing waits");
}

fn holds_together(home: &Home, id: &SessionId, records: u64) {
    let store = home.store();
    let loaded = run(store.load(id));
    assert!(
        matches!(loaded, Ok(Some(_)) | Err(Error::Trashed(_))),
        "an imported session is there: {loaded:?}"
    );
    if let Ok(Some(session)) = loaded {
        run(session.messages()).expect("readable");
        run(session.all_branches()).expect("readable");
    }
    let report = run(store.verify(id)).expect("readable");
    assert!(report.records >= records, "all of it came in");
    let wrong = |problem: &&Problem| matches!(problem, Problem::Damage(..) | Problem::Metadata);
    assert_eq!(report.problems.iter().find(wrong), None);
    let again = run(store.import_bundle(&travel::file(b""), Some(id.clone())));
    assert!(again.is_err());
    let out = travel::exported(home, id).expect("what was imported can be exported");
    let there = Home::default();
    let copy = "copy".parse().expect("an id");
    let arrived =
        run(there.store().import_bundle(&travel::file(&out), Some(copy))).expect("and imported again");
    assert!(arrived.records >= records && arrived.inherited == 0);
}
