//! What is in the database, and what a server must be.

use std::thread;

use pollster::block_on;
use rethread_store::backend::{Append, Backend as _, Durability, Expect, From, Key, Space};
use rethread_store::{BlobId, Error, Options, Store};
use rethread_testkit::Postgres;

use crate::kit::{entry, ids, installed, line, messages, on, server, store_on};

fn key() -> Key {
    Key::store("format").unwrap()
}

#[test]
fn nothing_is_made_by_reading() {
    let Some(server) = server() else { return };
    let database = server.database();
    let backend = on(&server.url(&database));
    assert!(block_on(backend.list(Space::Sessions, None, 9)).unwrap().is_empty());
    assert!(block_on(backend.get_blob(&BlobId::of(b"x"), 0..9)).unwrap().is_none());
    assert_eq!(server.sql(&database, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rethread'"), "0");
}

#[test]
fn many_that_begin_at_once_make_the_tables_once() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| block_on(on(&url).put(&key(), b"1", Expect::Any)).unwrap());
        }
    });
    assert_eq!(block_on(on(&url).get(&key())).unwrap().unwrap().bytes, "1");
}

#[test]
fn the_schema_of_another_program_is_left_alone() {
    let Some(server) = server() else { return };
    let database = server.database();
    server.sql(&database, "CREATE SCHEMA rethread CREATE TABLE bookmarks (url text)");
    let backend = on(&server.url(&database));
    let refused = block_on(backend.put(&key(), b"1", Expect::Any)).unwrap_err();
    assert!(refused.to_string().contains("was made by another program"), "{refused}");
    assert!(block_on(backend.get(&key())).is_err());
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'rethread'";
    assert_eq!(server.sql(&database, tables), "1");
}

/// Returns what every column is, and every index: a layout.
fn layout(server: &Postgres, database: &str) -> String {
    let columns = "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, is_identity
        FROM information_schema.columns WHERE table_schema = 'rethread' ORDER BY table_name, ordinal_position";
    let indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'rethread' ORDER BY indexname";
    let options = "SELECT relname, reloptions FROM pg_class
        WHERE relnamespace = 'rethread'::regnamespace AND relkind = 'r' ORDER BY relname";
    [columns, indexes, options].map(|sql| server.sql(database, sql)).join("\n")
}

#[test]
fn a_database_of_the_first_layout_is_read_and_written_and_becomes_that_of_this_release() {
    let Some(server) = server() else { return };
    let (first, fresh) = (server.database(), server.database());
    server.sql(&first, include_str!("fixtures/layout-1.sql"));
    let store = Store::new(on(&server.url(&first)), Options::default());
    let session = block_on(store.open(&"s".parse().unwrap())).unwrap();
    assert_eq!(ids(&session), ["u0", "u1", "u2"]);
    assert_eq!(block_on(session.metadata()).unwrap().name.as_deref(), Some("first"));
    let report = block_on(store.verify(session.id())).unwrap();
    assert!(report.is_ok(), "{report:?}");
    let content = block_on(store.backend().get_blob(&BlobId::of(b"content"), 0..99)).unwrap();
    assert_eq!(content.unwrap(), "content");
    session.append_and_wait(entry("u3")).unwrap();
    assert_eq!(ids(&session), ["u0", "u1", "u2", "u3"]);
    store.close().unwrap();
    store_on(&server.url(&fresh)).0.close().unwrap();
    // Were a migration changed that is out there, databases would differ by their age.
    assert_eq!(layout(server, &first), layout(server, &fresh));
}

#[test]
fn a_newer_layout_is_refused() {
    let Some(server) = server() else { return };
    let database = server.database();
    block_on(on(&server.url(&database)).put(&key(), b"1", Expect::Any)).unwrap();
    server.sql(&database, "UPDATE rethread.format SET version = 3");
    let backend = on(&server.url(&database));
    let (read, written) = (block_on(backend.get(&key())), block_on(backend.put(&key(), b"2", Expect::Any)));
    assert!(matches!(read, Err(Error::NewerFormat { known: 2, .. })), "{read:?}");
    assert!(matches!(written, Err(Error::NewerFormat { known: 2, .. })), "{written:?}");
    assert_eq!(server.sql(&database, "SELECT version FROM rethread.format"), "3", "it is left as it is");
}

#[test]
fn who_may_only_use_a_schema_can_have_it_made_by_somebody_else() {
    let Some(server) = server() else { return };
    let database = server.database();
    let role = format!("only_{database}");
    server.sql(&database, &format!("CREATE ROLE {role} LOGIN; CREATE SCHEMA rethread AUTHORIZATION {role}"));
    let backend = on(&server.url(&database).replace("rethread@", &format!("{role}@")));
    block_on(backend.put(&key(), b"1", Expect::Any)).unwrap();
    assert_eq!(block_on(backend.get(&key())).unwrap().unwrap().bytes, "1");
}

#[test]
fn what_is_appended_is_synced_whatever_the_default_is() {
    let Some(server) = server() else { return };
    let database = server.database();
    server.sql(&database, &format!("ALTER DATABASE {database} SET synchronous_commit = off"));
    let backend = on(&server.url(&database));
    block_on(backend.put(&key(), b"1", Expect::Any)).unwrap();
    // Whoever adds a line without it is refused.
    server.sql(
        &database,
        "CREATE FUNCTION check_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('synchronous_commit') <> 'on' THEN RAISE 'not synced'; END IF;
            RETURN new; END $$;
        CREATE TRIGGER check_it BEFORE INSERT ON rethread.lines FOR EACH ROW EXECUTE FUNCTION check_it()",
    );
    let appended = block_on(backend.append(&messages("s"), 0, &[line(0, "a")], Durability::Written)).unwrap();
    assert_eq!(appended, Append::Done { durability: Durability::Synced, found: Vec::new() });
}

#[test]
fn a_server_that_does_not_sync_is_refused() {
    let Some(server) = installed(Postgres::start(&["fsync=off"], &[])) else { return };
    let refused = block_on(on(&server.fresh()).put(&key(), b"1", Expect::Any)).unwrap_err();
    assert!(refused.to_string().contains("runs with fsync off"), "{refused}");
}

#[test]
fn a_record_that_was_damaged_is_named_and_the_others_are_read() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (store, session) = store_on(&server.url(&database));
    for number in 0..9 {
        session.append_and_wait(entry(&format!("u{number}"))).unwrap();
    }
    store.close().unwrap();
    server.sql(&database, "UPDATE rethread.lines SET bytes = '\\x00' WHERE position = 3");
    server.sql(&database, "DELETE FROM rethread.lines WHERE position IN (6, 9)");
    let store = Store::new(on(&server.url(&database)), Options::default());
    let report = block_on(store.verify(&"s".parse().unwrap())).unwrap();
    let told = format!("{report:?}");
    assert!(!report.is_ok() && told.contains("Nul") && told.contains("Missing"), "{told}");
    let backend = on(&server.url(&database));
    let read = |from| block_on(backend.read(&messages("s"), From::Position(from), 1 << 20)).unwrap();
    let (begin, end) = (read(0), read(9));
    let lost: Vec<_> = begin.damage.iter().chain(&end.damage).map(|damage| damage.lost.clone()).collect();
    assert_eq!((lost, begin.next, end.next), (vec![3..4, 6..7, 9..10], 9, 10));
}

#[test]
fn large_content_is_kept_in_parts_and_read_by_ranges() {
    let Some(server) = server() else { return };
    let database = server.database();
    let backend = on(&server.url(&database));
    let content: Vec<u8> = (0..(19 << 20) + 7_u32).map(|number| (number % 251) as u8).collect();
    let blob = BlobId::of(&content);
    // Twice: it takes the place of the first.
    for _ in 0..2 {
        block_on(backend.put_blob(&blob, &mut &content[..])).unwrap();
    }
    for range in [0..10, (1 << 20) - 3..(1 << 20) + 3, (19 << 20)..u64::MAX, (30 << 20)..u64::MAX] {
        let part = block_on(backend.get_blob(&blob, range.clone())).unwrap().unwrap();
        let end = (range.end as usize).min(content.len());
        assert_eq!(part, content[(range.start as usize).min(end)..end], "{range:?}");
    }
    // Content that is not what it is said to be leaves nothing behind.
    let wrong = block_on(backend.put_blob(&BlobId::of(b"else"), &mut &content[..]));
    assert!(matches!(wrong, Err(Error::WrongBlob(_))));
    assert_eq!(server.sql(&database, "SELECT count(*) FROM rethread.parts"), "20");
}

#[test]
fn content_that_was_damaged_is_healed_by_being_put_again() {
    let Some(server) = server() else { return };
    let database = server.database();
    let backend = on(&server.url(&database));
    let blob = BlobId::of(b"content");
    block_on(backend.put_blob(&blob, &mut &b"content"[..])).unwrap();
    server.sql(&database, "UPDATE rethread.parts SET bytes = '\\x00'");
    block_on(backend.put_blob(&blob, &mut &b"content"[..])).unwrap();
    assert_eq!(block_on(backend.get_blob(&blob, 0..99)).unwrap().unwrap(), "content");
}

#[test]
fn what_was_begun_long_ago_and_never_finished_is_swept() {
    let Some(server) = server() else { return };
    let database = server.database();
    let backend = on(&server.url(&database));
    let kept = BlobId::of(b"kept");
    block_on(backend.put_blob(&kept, &mut &b"kept"[..])).unwrap();
    server.sql(
        &database,
        "INSERT INTO rethread.blobs (modified) VALUES (now() - interval '2 hours'), (now());
        INSERT INTO rethread.parts SELECT id, 0, 'x' FROM rethread.blobs WHERE hash IS NULL",
    );
    assert_eq!(block_on(backend.sweep()).unwrap(), 1);
    assert_eq!(server.sql(&database, "SELECT count(*) FROM rethread.parts"), "2");
}
