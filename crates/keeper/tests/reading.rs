//! Lists, pages, single lines, and what can be done to a session without driving it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use rethread_store::{Entry, Fork, ForkKind, NewSession};
use serde_json::{Value, json};

use crate::kit::{Home, Kept, append, line, session, uuid};

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["session_id"].as_str().unwrap().to_owned()).collect()
}

fn uuids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["uuid"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_page_through_every_session_once_in_any_order() {
    let home = Home::new();
    let mut all: Vec<String> = (0..23).map(|_| session()).collect();
    for (number, id) in all.iter().enumerate() {
        let path = home.conversation(id, if number % 2 == 0 { "/tmp/even" } else { "/tmp/odd" }, 2);
        let time = std::time::UNIX_EPOCH
            + std::time::Duration::from_secs(1_700_000_000 + (number as u64 * 7919) % 23);
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let kept = home.keeper();
    for sort in ["updated", "created"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = kept.get(&format!("/sessions?limit=5&sort={sort}{cursor}")).good();
            seen.extend(ids(&page));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        if sort == "updated" {
            let newest = kept.get(&format!("/sessions/{}", seen[0])).good();
            assert_eq!(newest["updated_at"], "2023-11-14T22:13:42Z");
        }
        seen.sort();
        all.sort();
        assert_eq!(seen, all, "{sort}");
    }
    let even = kept.get("/sessions?project=/tmp/even&limit=100").good();
    assert_eq!(ids(&even).len(), 12);
    assert_eq!(ids(&kept.get(&format!("/sessions?q={}", all[3])).good()), [all[3].clone()]);
    assert_eq!(ids(&kept.get("/sessions?state=running").good()).len(), 0);
    assert_eq!(kept.get("/sessions?cursor=nonsense").status, 400);
    assert_eq!(kept.get("/sessions?limit=many").status, 400);
}

/// Claudekeeper's faults 2, 3 and 4: folders computed by half a rule, everything read for every call, branches inline.
#[test]
fn a_conversation_is_paged_from_either_end_without_its_abandoned_branches() {
    let home = Home::new();
    let id = session();
    let path = home.transcript("-home-ada-my-dotted-project", &id);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let cwd = "/home/ada/my.dotted_project";
    let mut text: String = (0..40).map(|number| line(&id, cwd, number)).collect();
    // An abandoned branch after the tenth message: 40 goes on from there, then 41 from the 39th.
    let stray = line(&id, cwd, 40).replace(&uuid(&id, 39), &uuid(&id, 9));
    let on = line(&id, cwd, 41).replace(
        &format!("\"parentUuid\":\"{}\"", uuid(&id, 40)),
        &format!("\"parentUuid\":\"{}\"", uuid(&id, 39)),
    );
    text += &stray;
    text += &on;
    fs::write(&path, text).unwrap();
    let kept = home.keeper();
    let last = kept.get(&format!("/sessions/{id}/messages?limit=15")).good();
    let expected =
        |numbers: std::ops::Range<usize>| numbers.map(|number| uuid(&id, number)).collect::<Vec<_>>();
    let mut end = expected(26..40);
    end.push(uuid(&id, 41));
    assert_eq!(uuids(&last), end);
    assert_eq!(last["page"]["total"], 41);
    let before = last["page"]["before"].as_str().unwrap();
    let middle = kept.get(&format!("/sessions/{id}/messages?limit=15&before={before}")).good();
    assert_eq!(uuids(&middle), expected(11..26));
    let by_id = kept.get(&format!("/sessions/{id}/messages?limit=15&before={}", uuid(&id, 26))).good();
    assert_eq!(uuids(&by_id), uuids(&middle));
    let after = middle["page"]["after"].as_str().unwrap();
    assert_eq!(uuids(&kept.get(&format!("/sessions/{id}/messages?limit=15&after={after}")).good()), end);
    let around = kept.get(&format!("/sessions/{id}/messages?limit=5&around={}", uuid(&id, 7))).good();
    assert_eq!(uuids(&around), expected(5..10));
    let all = kept.get(&format!("/sessions/{id}/messages?limit=500&branch=all")).good();
    assert_eq!(uuids(&all).len(), 42);
    let tree = kept.get(&format!("/sessions/{id}/tree")).good();
    let branches = tree["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 2);
    let abandoned = branches.iter().find(|branch| branch["active"] == false).unwrap();
    assert_eq!((&abandoned["leaf"], &abandoned["leaves_at"]), (&json!(uuid(&id, 40)), &json!(uuid(&id, 9))));
    let raw = kept.get(&format!("/sessions/{id}/messages/{}/raw", uuid(&id, 40)));
    assert_eq!(raw.body, stray.trim_end().as_bytes());
    assert_eq!(kept.get(&format!("/sessions/{id}/messages/{}/raw", uuid(&id, 77))).status, 404);
    assert_eq!(kept.get(&format!("/sessions/{id}/messages?before=nobody")).status, 404);
}

#[test]
fn a_position_tells_what_came_since_and_when_it_cannot_be_told() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 6);
    let position = {
        let kept = home.keeper();
        kept.get(&format!("/sessions/{id}/messages")).good()["head"]["position"].as_str().unwrap().to_owned()
    };
    append(&path, &(6..13).map(|number| line(&id, "/tmp", number)).collect::<String>());
    append(&path, "{\"half\":");
    // Another keeper, which has never heard of the first one's events.
    let kept = home.keeper();
    let (mut seen, mut after) = (Vec::new(), position.clone());
    loop {
        let page = kept.get(&format!("/sessions/{id}/messages?limit=3&after={after}")).good();
        assert_eq!(page["page"]["reset"], false);
        seen.extend(uuids(&page));
        after = page["head"]["position"].as_str().unwrap().to_owned();
        if page["page"]["after"].is_null() {
            break;
        }
    }
    assert_eq!(seen, (6..13).map(|number| uuid(&id, number)).collect::<Vec<_>>());
    let other = home.path().join("other");
    fs::write(&other, line(&id, "/tmp", 0)).unwrap();
    fs::rename(&other, &path).unwrap();
    let page = kept.get(&format!("/sessions/{id}/messages?after={position}")).good();
    assert_eq!((&page["page"]["reset"], uuids(&page)), (&json!(true), vec![uuid(&id, 0)]));
}

#[test]
fn both_homes_are_listed_side_by_side_and_a_bare_id_means_the_native_one() {
    let home = Home::new();
    let (both, only) = (session(), "only-stored");
    home.conversation(&both, "/tmp", 2);
    let store = home.store();
    for id in [both.as_str(), only] {
        let begun = pollster::block_on(store.create(NewSession::at("/tmp").id(id.parse().unwrap()))).unwrap();
        for number in 0..7 {
            let entry = json!({ "uuid": format!("s{number}"), "role": "user", "content": format!("stored {number}") });
            begun.append_and_wait(Entry::parse(entry.to_string()).unwrap()).unwrap();
        }
    }
    store.close().unwrap();
    let kept = home.keeper();
    let listed = kept.get("/sessions").good();
    assert_eq!(ids(&listed).len(), 3);
    assert_eq!(kept.get(&format!("/sessions/{both}")).good()["home"], "native");
    assert_eq!(kept.get(&format!("/sessions/stored:{both}")).good()["home"], "stored");
    assert_eq!(kept.get(&format!("/sessions/native:{only}")).status, 404);
    let page = kept.get(&format!("/sessions/{only}/messages?limit=3")).good();
    assert_eq!(uuids(&page), ["s4", "s5", "s6"]);
    let before = page["page"]["before"].as_str().unwrap();
    let page = kept.get(&format!("/sessions/{only}/messages?limit=3&before={before}")).good();
    assert_eq!(uuids(&page), ["s1", "s2", "s3"]);
    let after = page["page"]["after"].as_str().unwrap();
    let page = kept.get(&format!("/sessions/{only}/messages?limit=50&after={after}")).good();
    assert_eq!(uuids(&page), ["s4", "s5", "s6"]);
    // Whoever follows a link to a message gets a page with it.
    for (around, limit, expected) in [
        ("s0", 3, vec!["s0", "s1", "s2"]),
        ("s1", 3, vec!["s0", "s1", "s2"]),
        ("s3", 3, vec!["s2", "s3", "s4"]),
        ("s3", 4, vec!["s1", "s2", "s3", "s4"]),
        ("s6", 3, vec!["s5", "s6"]),
        ("s4", 1, vec!["s4"]),
        ("s0", 1, vec!["s0"]),
    ] {
        let page = kept.get(&format!("/sessions/{only}/messages?limit={limit}&around={around}")).good();
        assert_eq!(uuids(&page), expected, "{limit} around {around}");
    }
    let raw = kept.get(&format!("/sessions/{only}/messages/s2/raw"));
    assert_eq!(raw.json()["content"], "stored 2");
    let renamed = kept
        .patch(&format!("/sessions/{only}"), json!({ "name": "Of the store", "tags": ["a", "b"] }))
        .good();
    assert_eq!((&renamed["name"], &renamed["tags"]), (&json!("Of the store"), &json!(["a", "b"])));
    let deleted = kept.delete(&format!("/sessions/{only}")).good();
    assert_eq!(kept.get(&format!("/sessions/{only}")).status, 404);
    let undo = deleted["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(kept.post(undo, json!({})).good()["name"], "Of the store");
}

#[test]
fn a_native_session_is_renamed_tagged_archived_deleted_and_restored() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let changed =
        kept.patch(&format!("/sessions/{id}"), json!({ "name": "The parser", "tags": ["later"] })).good();
    assert_eq!((&changed["name"], &changed["tags"]), (&json!("The parser"), &json!(["later"])));
    assert!(fs::read_to_string(&path).unwrap().contains("\"customTitle\":\"The parser\""));
    assert_eq!(kept.patch(&format!("/sessions/{id}"), json!({ "archived": true })).good()["archived"], true);
    assert_eq!(ids(&kept.get("/sessions").good()).len(), 0);
    assert_eq!(ids(&kept.get("/sessions?archived=true").good()), std::slice::from_ref(&id));
    assert_eq!(kept.patch(&format!("/sessions/{id}"), json!({ "colour": "red" })).status, 400);
    // All of it is done, or nothing.
    let half = json!({ "name": "Another", "tags": ["a", "b"] });
    assert_eq!(kept.patch(&format!("/sessions/{id}"), half).status, 400);
    assert_eq!(kept.get(&format!("/sessions/{id}")).good()["name"], "The parser");
    assert_eq!(kept.patch(&format!("/sessions/{id}"), json!({ "name": " " })).status, 400);
    let deleted = kept.delete(&format!("/sessions/{id}")).good();
    assert!(!path.try_exists().unwrap() && kept.get(&format!("/sessions/{id}")).status == 404);
    assert_eq!(kept.delete(&format!("/sessions/{id}")).status, 404);
    let undo = deleted["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(kept.post(undo, json!({})).good()["name"], "The parser");
    assert!(path.try_exists().unwrap());
    let audit = kept.get("/audit").good();
    let what: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert!(what.contains(&"delete") && what.contains(&"restore"), "{what:?}");
}

#[test]
fn a_session_that_another_program_makes_is_seen_at_once() {
    let home = Home::new();
    let kept = home.keeper();
    assert_eq!(ids(&kept.get("/sessions").good()).len(), 0);
    let id = session();
    home.conversation(&id, "/tmp", 3);
    kept.until("the new session is listed", || {
        ids(&kept.get("/sessions").good()).contains(&id).then_some(())
    });
    fs::remove_file(home.transcript("-project", &id)).unwrap();
    kept.until("it is gone", || ids(&kept.get("/sessions").good()).is_empty().then_some(()));
}

#[test]
fn a_keeper_without_claude_code_and_without_sessions_says_what_is_missing() {
    let home = Home::new();
    fs::remove_dir_all(home.claude()).unwrap();
    let kept = home.keeper();
    let info = kept.get("/info").good();
    assert_eq!((&info["sessions"], &info["agent"]["program"]), (&json!(0), &Value::Null));
    assert!(info["agent"]["missing"].as_str().unwrap().contains("npm install"), "{info}");
    assert_eq!(kept.get("/sessions").good()["items"], json!([]));
    assert_eq!(kept.get("/doctor").status, 200);
}

#[test]
fn without_claude_code_everything_is_read_and_sending_says_what_to_install() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    assert_eq!(uuids(&kept.get(&format!("/sessions/{id}/messages")).good()).len(), 2);
    let prompt = json!({ "client_message_id": uuid(&id, 9), "parts": [{ "type": "text", "text": "x" }] });
    for refused in [
        kept.post("/sessions", json!({ "cwd": "/tmp" })),
        kept.post(&format!("/sessions/{id}/turns"), prompt),
    ] {
        assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("no-agent")));
        assert!(refused.json()["hint"].as_str().unwrap().contains("npm install"), "{refused:?}");
    }
}

#[test]
fn the_same_key_twice_is_one_session_and_one_that_came_to_nothing_is_begun_anew() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.agent = Some(rethread_keeper::Agent { program: "/bin/false".into(), environment: Vec::new() });
    let mut kept = Kept::start(settings.clone());
    let begin = |kept: &Kept, key: &str, prompt: &str| {
        let body = json!({ "cwd": home.path(), "prompt": prompt }).to_string();
        kept.ask("POST", "/api/v1/sessions", &[("Idempotency-Key", key)], &body)
    };
    let id = |kept: &Kept, key: &str| begin(kept, key, "").good()["session_id"].as_str().unwrap().to_owned();
    let first = id(&kept, "a");
    assert_eq!(id(&kept, "a"), first);
    assert_ne!(id(&kept, "b"), first);
    for _ in 0..2 {
        let failed = begin(&kept, "c", "Begin.");
        assert_eq!(
            (failed.status, failed.json()["code"].as_str()),
            (502, Some("agent-failed")),
            "{failed:?}"
        );
    }
    // The answer may have been lost with the keeper that gave it.
    kept.end();
    let kept = Kept::start(settings);
    assert_eq!(id(&kept, "a"), first);
    assert_eq!(kept.get("/sessions").good()["items"].as_array().unwrap().len(), 2);
}

/// Claudekeeper's faults 1 and 6: new sessions had no id, and the name and mode given to them were lost.
#[test]
fn a_session_that_has_not_begun_has_its_id_and_outlives_the_keeper() {
    let home = Home::new();
    let begin = || {
        let mut settings = home.settings();
        settings.agent =
            Some(rethread_keeper::Agent { program: "/bin/false".into(), environment: Vec::new() });
        Kept::start(settings)
    };
    let mut kept = begin();
    let new = json!({ "cwd": home.path(), "name": "Later", "model": "m" });
    let id = kept.post("/sessions", new).good()["session_id"].as_str().unwrap().to_owned();
    kept.patch(&format!("/sessions/{id}"), json!({ "name": "Much later" })).good();
    kept.end();
    let kept = begin();
    let card = kept.get(&format!("/sessions/{id}")).good();
    assert_eq!(
        (&card["state"], &card["name"], &card["model"]),
        (&json!("pending"), &json!("Much later"), &json!("m"))
    );
    assert_eq!(card["cwd"], home.path().canonicalize().unwrap().to_str().unwrap());
    // It can be deleted, and that can be taken back.
    let deleted = kept.delete(&format!("/sessions/{id}")).good();
    assert_eq!(kept.get(&format!("/sessions/{id}")).status, 404);
    let undo = deleted["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(kept.post(undo, json!({})).good()["name"], "Much later");
    // Once it has a transcript, that is what counts.
    home.conversation(&id, home.path().to_str().unwrap(), 2);
    kept.until("it has begun", || {
        (kept.get(&format!("/sessions/{id}")).good()["state"] == "idle").then_some(())
    });
    assert_eq!(fs::read_to_string(kept.home.join("pending.json")).unwrap(), "{}");
}

#[test]
fn a_text_is_found_in_every_conversation_with_its_place() {
    let home = Home::new();
    let (one, other) = (session(), session());
    home.conversation(&one, "/tmp/one", 4);
    let path = home.conversation(&other, "/tmp/other", 4);
    let quoted = line(&other, "/tmp/other", 4).replace("message 4 of", "say \\\"Grüße Zorn\\\" of");
    append(&path, &quoted);
    let kept = home.keeper();
    let found = kept.get("/search?q=%22gr%C3%BC%C3%9Fe%20zorn%22").good();
    let hit = &found["items"][0];
    assert_eq!((&hit["session_id"], &hit["message"]), (&json!(other), &json!(uuid(&other, 4))));
    let [from, to] = [0, 1].map(|at| hit["ranges"][0][at].as_u64().unwrap() as usize);
    let snippet: String = hit["snippet"].as_str().unwrap().chars().skip(from).take(to - from).collect();
    assert_eq!(snippet, "\"Grüße Zorn\"");
    let everywhere = kept.get("/search?q=message&limit=500").good();
    assert_eq!(everywhere["items"].as_array().unwrap().len(), 8);
    let one_project = kept.get("/search?q=message&project=/tmp/one&role=assistant").good();
    assert_eq!(one_project["items"].as_array().unwrap().len(), 2);
    assert_eq!(kept.get("/search?q=x").status, 400);
    // Nothing of it is written in JSON as it is: that once was looked for without end in the first line without it.
    let odd = kept.get("/search?q=%C3%BC%C3%9F").good();
    assert_eq!((odd["items"].as_array().unwrap().len(), &odd["items"][0]["session_id"]), (1, &json!(other)));
}

#[test]
fn the_description_fits_the_routes() {
    let description: Value = serde_json::from_str(&rethread_keeper::openapi()).unwrap();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let home = Home::new();
    let kept = home.keeper();
    assert_eq!(kept.ask("GET", "/api/v1/openapi.json", &[], "").json(), description);
    for (_, route) in
        rethread_keeper::route_table().iter().filter(|(_, it)| it.starts_with("/api/") && it.contains("{"))
    {
        assert!(description["paths"][route].is_object(), "{route}");
    }
}

#[test]
fn messages_are_counted_in_the_background_and_the_counts_are_known_to_the_next_keeper() {
    let home = Home::new();
    let counted = session();
    let path = home.conversation(&counted, "/tmp", 7);
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    fs::File::options().append(true).open(path).unwrap().set_modified(long_ago).unwrap();
    let kept = home.keeper();
    let count = |id: &str| kept.get(&format!("/sessions/{id}")).good()["message_count"].clone();
    assert_eq!(count(&counted), Value::Null);
    let begun = std::time::Instant::now();
    while count(&counted).is_null() {
        assert!(begun.elapsed().as_secs() < 60, "it is never counted");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(count(&counted), 7);
    drop(kept);
    let kept = home.keeper();
    assert_eq!(kept.get(&format!("/sessions/{counted}")).good()["message_count"], 7);
}

/// Claudekeeper's fault 8: the folder of a deleted session's subagents stayed behind.
#[test]
fn a_deleted_session_leaves_nothing_of_its_subagents_behind() {
    let home = Home::new();
    let id = session();
    let transcript = home.conversation(&id, "/tmp", 3);
    let beside = transcript.with_extension("");
    let agent = beside.join("subagents/agent-a1.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&agent, crate::kit::line(&id, "/tmp", 0)).unwrap();
    let kept = home.keeper();
    assert_eq!(kept.get(&format!("/sessions/{id}/subagents")).good()["items"].as_array().unwrap().len(), 1);
    let undo = kept.delete(&format!("/sessions/{id}")).good()["undo"].as_str().unwrap().to_owned();
    let left: Vec<_> = fs::read_dir(transcript.parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    for route in ["", "/subagents", "/messages?agent=a1"] {
        assert_eq!(kept.get(&format!("/sessions/{id}{route}")).status, 404, "{route}");
    }
    // All of it comes back.
    kept.post(undo.strip_prefix("/api/v1").unwrap(), json!({})).good();
    assert_eq!(fs::read_to_string(&agent).unwrap(), crate::kit::line(&id, "/tmp", 0));
    assert_eq!(
        kept.get(&format!("/sessions/{id}/messages?agent=a1")).good()["items"].as_array().unwrap().len(),
        1
    );
}

/// A subagent of a stored session is a child of it; nobody reads it through another session.
#[test]
fn what_a_subagent_of_a_stored_session_said_is_read_through_that_session() {
    let (home, [own, other]) = (Home::new(), [session(), session()]);
    let store = home.store();
    let said = |text: &str| {
        let entry = json!({ "uuid": format!("u-{}", text.len()), "role": "user", "content": text });
        Entry::parse(entry.to_string()).unwrap()
    };
    for id in [&own, &other] {
        let begun = pollster::block_on(store.create(NewSession::at("/tmp").id(id.parse().unwrap()))).unwrap();
        begun.append_and_wait(said("of the session itself")).unwrap();
        for agent in ["a1", "a2"].iter().filter(|_| id == &own) {
            let mut fork = Fork::of_kind(ForkKind::Child).id(format!("agent-{agent}").parse().unwrap());
            fork = fork.agent("explorer");
            fork.name = Some(format!("looks for {agent}"));
            let child = pollster::block_on(begun.fork(fork)).unwrap();
            child.append_and_wait(said(&format!("of its subagent {agent}"))).unwrap();
        }
    }
    store.close().unwrap();
    let kept = home.keeper();
    let listed = kept.get(&format!("/sessions/{own}/subagents")).good();
    let told = |at: usize| (&listed["items"][at]["agent_id"], &listed["items"][at]["description"]);
    assert_eq!(told(0), (&json!("a1"), &json!("looks for a1")), "{listed}");
    assert_eq!((told(1).0, &listed["items"][1]["agent_type"]), (&json!("a2"), &json!("explorer")));
    let page = kept.get(&format!("/sessions/{own}/messages?agent=a2")).good();
    let contents: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|it| &it["content"]).collect();
    assert_eq!((contents, &page["items"][0]["agent_id"]), (vec![&json!("of its subagent a2")], &json!("a2")));
    let whole = kept.get(&format!("/sessions/{own}/messages")).good();
    assert_eq!(whole["items"][0]["content"], "of the session itself");
    for (id, agent) in [(&other, "a1"), (&own, "a3"), (&own, other.as_str()), (&own, ".."), (&own, "%2f")] {
        assert_eq!(kept.get(&format!("/sessions/{id}/messages?agent={agent}")).status, 404, "{agent}");
    }
    assert_eq!(kept.get(&format!("/sessions/{other}/subagents")).good()["items"], json!([]));
}
