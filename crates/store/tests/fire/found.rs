//! What fuzzing found, told as facts: the inputs themselves are in `fuzz/corpus`.

use rethread_store::{Entry, Kind, Line, Session, Stamp};

use crate::kit::{Home, conversation, entry_id, message, run};

fn appended(session: &Session, entry: Entry) -> u64 {
    run(async { session.append(entry).await.unwrap().await }).unwrap().records[0].position
}

#[test]
fn an_index_that_lost_its_end_does_not_bring_an_older_entry_of_the_same_id_back() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    let again = appended(&session, message(2));
    store.close().unwrap();
    let index = home.session_folder(session.id()).join("messages.index");
    let whole = std::fs::read(&index).unwrap();
    let mut blank = whole.clone();
    blank[8 * again as usize..].fill(0);
    for (what, bytes) in [("cut", &whole[..8 * again as usize]), ("zeroed", &blank), ("gone", &[])] {
        std::fs::write(&index, bytes).unwrap();
        let session = run(home.open().open(session.id())).unwrap();
        let chain = run(session.messages_up_to(&entry_id("u2"))).unwrap();
        assert_eq!(chain.records.last().unwrap().position, again, "{what}");
    }
}

#[test]
fn a_stray_position_makes_no_index_that_fits_into_no_memory() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 2);
    store.close().unwrap();
    let id = entry_id("stray");
    let stamp = Stamp {
        position: 1 << 38,
        parent: Some(2),
        depth: 3,
        kind: Kind::Entry,
        id: id.clone(),
        left: 0,
        unsettled: 0,
    };
    let stray = Line::new(&Entry::parse(r#"{"uuid":"stray"}"#).unwrap(), stamp);
    let whole = std::fs::read(home.log(session.id())).unwrap();
    std::fs::write(home.log(session.id()), [&whole, stray.as_bytes(), b"\n"].concat()).unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    assert_eq!(appended(&session, message(9)), (1 << 38) + 1);
    let index = std::fs::metadata(home.session_folder(session.id()).join("messages.index")).unwrap();
    assert!(index.len() < 1 << 20, "{} bytes", index.len());
    assert_eq!(run(session.messages_up_to(&id)).unwrap().records.last().unwrap().position, 1 << 38);
}
