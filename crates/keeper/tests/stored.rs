//! Sessions in a store, read as native ones are.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rethread_store::{Entry, Fork, NewSession, Session};
use serde_json::{Value, json};

use crate::kit::{Home, Kept, Socket, line, session};

fn say(session: &Session, uuids: &[&str]) {
    for (number, uuid) in uuids.iter().enumerate() {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let entry = json!({ "uuid": uuid, "role": role, "content": format!("what {uuid} says") });
        session.append_and_wait(Entry::parse(entry.to_string()).unwrap()).unwrap();
    }
}

fn uuids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["uuid"].as_str().unwrap()).collect()
}

/// A store with a conversation `old` of six, of which the last two were left for two others, and a fork of it.
fn branched(home: &Home) {
    let store = home.store();
    pollster::block_on(async {
        let old = store.create(NewSession::at("/tmp").id("old".parse().unwrap())).await.unwrap();
        say(&old, &["a", "b", "c", "d", "left1", "left2"]);
        old.select(&"d".parse().unwrap()).await.unwrap();
        say(&old, &["e", "f"]);
        let fork = Fork::default().at("e".parse().unwrap()).id("fork".parse().unwrap());
        let fork = old.fork(fork).await.unwrap();
        say(&fork, &["x", "y", "z"]);
    });
    store.close().unwrap();
}

#[test]
fn a_fork_in_a_store_is_paged_from_its_first_inherited_message_to_its_own_last() {
    let home = Home::new();
    branched(&home);
    let kept = home.keeper();
    let page = |query: &str| kept.get(&format!("/sessions/fork/messages?limit=3{query}")).good();
    let last = page("");
    assert_eq!((uuids(&last), &last["page"]["total"]), (vec!["x", "y", "z"], &json!(8)));
    assert_eq!(last["page"]["after"], json!(null));
    let (mut seen, mut before) =
        (vec!["x".to_owned(), "y".into(), "z".into()], last["page"]["before"].clone());
    while let Some(cursor) = before.as_str() {
        let earlier = page(&format!("&before={cursor}"));
        seen.splice(0..0, uuids(&earlier).into_iter().map(str::to_owned));
        before = earlier["page"]["before"].clone();
    }
    let all = ["a", "b", "c", "d", "e", "x", "y", "z"];
    assert_eq!(seen, all);
    // From the beginning, by numbers, which a page uses where it knows no id yet.
    let (mut seen, mut after) = (Vec::new(), json!("0:"));
    while let Some(cursor) = after.as_str() {
        let later = page(&format!("&after={cursor}"));
        seen.extend(uuids(&later).into_iter().map(str::to_owned));
        after = later["page"]["after"].clone();
    }
    assert_eq!(seen, all[1..]);
    for (query, expected) in [
        ("&before=2:", &all[..2]),
        ("&before=7:", &all[4..7]),
        ("&around=4:", &all[3..6]),
        ("&around=x", &all[4..7]),
        ("&around=a", &all[..3]),
    ] {
        assert_eq!(uuids(&page(query)), expected, "{query}");
    }
    assert_eq!(kept.get("/sessions/fork/messages?before=nobody").status, 404);
}

#[test]
fn a_position_in_a_fork_tells_exactly_what_the_fork_itself_has_got_since() {
    let home = Home::new();
    let store = home.store();
    let fork = pollster::block_on(async {
        let old = store.create(NewSession::at("/tmp").id("old".parse().unwrap())).await.unwrap();
        say(&old, &["a", "b", "c", "d", "e", "f"]);
        let fork = Fork::default().at("f".parse().unwrap()).id("fork".parse().unwrap());
        old.fork(fork).await.unwrap()
    });
    let kept = home.keeper();
    let position = |page: &Value| page["head"]["position"].as_str().unwrap().to_owned();
    let page = |query: &str| kept.get(&format!("/sessions/fork/messages?{query}")).good();
    // Inherited messages have places of another log, which say nothing of this one's.
    let begun = position(&page(""));
    say(&fork, &["x"]);
    let middle = position(&page("before=d"));
    say(&fork, &["y"]);
    for (since, expected) in [(&begun, vec!["x", "y"]), (&middle, vec!["y"])] {
        for branch in ["", "&branch=all"] {
            let news = page(&format!("after={since}{branch}"));
            assert_eq!(
                (uuids(&news), &news["page"]["reset"]),
                (expected.clone(), &json!(false)),
                "{since}{branch}"
            );
            let nothing = page(&format!("after={}{branch}", position(&news)));
            assert_eq!(uuids(&nothing), [""; 0]);
            assert_eq!(position(&nothing), position(&news));
        }
    }
    let void = page(&format!("after={begun}&limit=1"));
    assert_eq!((uuids(&void), &void["page"]["reset"]), (vec!["y"], &json!(true)));
}

#[test]
fn every_branch_of_a_stored_session_can_be_read_and_stands_in_its_tree() {
    let home = Home::new();
    branched(&home);
    let kept = home.keeper();
    let all = kept.get("/sessions/old/messages?branch=all").good();
    assert_eq!(uuids(&all), ["a", "b", "c", "d", "left1", "left2", "e", "f"]);
    let page = kept.get("/sessions/old/messages?branch=all&limit=2&before=e").good();
    assert_eq!((uuids(&page), &page["page"]["before"]), (vec!["left1", "left2"], &json!("left1")));
    let active = kept.get("/sessions/old/messages").good();
    assert_eq!((uuids(&active), &active["page"]["total"]), (vec!["a", "b", "c", "d", "e", "f"], &json!(6)));
    let tree = kept.get("/sessions/old/tree").good();
    let branch = |leaf: &str, active: bool, leaves_at: Value| json!({ "leaf": leaf, "active": active, "messages": 6, "leaves_at": leaves_at });
    assert_eq!(tree["branches"], json!([branch("f", true, json!(null)), branch("left2", false, json!("d"))]));
    let tree = kept.get("/sessions/fork/tree").good();
    assert_eq!((tree["branches"].as_array().unwrap().len(), &tree["parent"]), (1, &json!("old")));
}

#[test]
fn a_search_finds_what_stored_sessions_and_subagents_say() {
    let home = Home::new();
    branched(&home);
    let native = session();
    let path = home.conversation(&native, "/tmp", 2);
    let agents = path.with_extension("").join("subagents");
    std::fs::create_dir_all(&agents).unwrap();
    let said = line(&native, "/tmp", 7).replace("message 7 of", "an errand of");
    std::fs::write(agents.join("agent-a7.jsonl"), said).unwrap();
    let kept = home.keeper();
    let find = |kept: &Kept, query: &str| kept.get(&format!("/search?{query}")).good()["items"].clone();
    let found = find(&kept, "q=what+x+says");
    assert_eq!(
        (&found[0]["session_id"], &found[0]["home"], &found[0]["message"]),
        (&json!("fork"), &json!("stored"), &json!("x"))
    );
    assert_eq!(find(&kept, "q=what+e+says").as_array().unwrap().len(), 2, "in the session and in its fork");
    assert_eq!(find(&kept, "q=what+e+says&session=stored:old").as_array().unwrap().len(), 1);
    assert_eq!(find(&kept, "q=what+x+says&role=assistant"), json!([]));
    let found = find(&kept, "q=errand");
    assert_eq!((&found[0]["session_id"], &found[0]["agent_id"]), (&json!(native), &json!("a7")));
    // What was found stays found where a subagent's file is a link, which is not followed, and it is said that not all was read.
    std::os::unix::fs::symlink("/etc/passwd", agents.join("agent-a8.jsonl")).unwrap();
    drop(kept);
    let kept = home.keeper();
    let page = kept.get("/search?q=message").good();
    assert_eq!((page["items"].as_array().unwrap().len(), &page["more"]), (2, &json!(true)));
}

#[test]
fn whoever_lists_after_the_first_event_of_a_session_finds_it() {
    let home = Home::new();
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let store = home.store();
    let new = pollster::block_on(store.create(NewSession::at("/tmp"))).unwrap();
    say(&new, &["a", "b"]);
    let (before, _) = socket.until("message.upsert");
    let kinds: Vec<&Value> = before.iter().map(|event| &event["type"]).collect();
    assert!(kinds.contains(&&json!("session.created")), "{kinds:?}");
    store.close().unwrap();
}
