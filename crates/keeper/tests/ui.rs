//! The page apart from its keeper: the same gate, logins of its own, and a token that stays where it is.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::time::{Duration, Instant};

use rethread_keeper::{UiSettings, route_table};
use rethread_testkit::Prompt;
use serde_json::json;

use crate::driving::{Desk, create, decide, texts, until_state, wait_for_request};
use crate::kit::{Home, Kept, Socket, append, line, session, uuid};
use crate::security::refuses_every_attack;

fn settings(kept: &Kept) -> UiSettings {
    let url = format!("http://{}", kept.host()).parse().unwrap();
    let home = kept.home.with_file_name("ui");
    let mut settings = UiSettings::new(home, url, kept.home.join("token"));
    settings.listen = "127.0.0.1:0".parse().unwrap();
    settings
}

fn apart(kept: &Kept) -> Kept {
    Kept::apart(settings(kept))
}

#[test]
fn every_route_of_a_page_apart_refuses_every_attack() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let ui = apart(&kept);
    refuses_every_attack(&ui, &kept.token, &id);
    // Its cookie is none of the keeper's, nor is the keeper's one of its own.
    let cookie = ui.cookie.clone().unwrap();
    let at_keeper = kept.ask("GET", "/api/v1/info", &[("Authorization", ""), ("Cookie", &cookie)], "");
    assert!(matches!(at_keeper.status, 401 | 429), "{at_keeper:?}");
    let renamed = kept.log_in().replace(&kept.address.port().to_string(), &ui.address.port().to_string());
    let here = ui.ask("GET", "/api/v1/info", &[("Cookie", &renamed)], "");
    assert!(matches!(here.status, 401 | 429), "{here:?}");
}

#[test]
fn a_stream_ends_with_the_login_it_was_opened_with() {
    let home = Home::new();
    let mut kept = home.keeper();
    let ui = apart(&kept);
    kept.cookie = Some(kept.log_in());
    // At the keeper itself, and through the page apart.
    for place in [&kept, &ui] {
        let mut socket = Socket::open(place);
        socket.say(json!({ "type": "hello" }));
        socket.until("welcome");
        assert_eq!(place.post("/auth/logout", json!({})).status, 204);
        let since = Instant::now();
        while socket.try_next().is_some() {}
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "it ended by itself only after {:?}",
            since.elapsed()
        );
    }
}

#[test]
fn a_page_apart_answers_what_its_keeper_answers() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 5);
    let kept = home.keeper();
    let ui = apart(&kept);
    let routes =
        ["/sessions", "/projects", "/directories", "/search?q=message", "/attention", "/openapi.json"];
    let own = ["", "/messages?limit=3", "/tree", "/subagents", "/problems", "/checkpoints"];
    let own = own.iter().map(|route| format!("/sessions/{id}{route}"));
    for route in routes.iter().map(|route| (*route).to_owned()).chain(own) {
        assert_eq!(ui.get(&route).good(), kept.get(&route).good(), "{route}");
    }
    let message = uuid(&id, 1);
    let raw = format!("/sessions/{id}/messages/{message}/raw");
    assert_eq!(ui.get(&raw).body, kept.get(&raw).body);
    // Refusals too, by the same names.
    let (here, there) = (ui.get("/sessions/no-such-one"), kept.get("/sessions/no-such-one"));
    assert_eq!((here.status, here.json()), (there.status, there.json()));
    // Changes arrive, and what happens is heard by long poll as well.
    let after = ui.get("/events?topics=all").good()["after"].as_str().unwrap().to_owned();
    assert_eq!(
        ui.patch(&format!("/sessions/{id}"), json!({ "name": "From afar" })).good()["name"],
        "From afar"
    );
    assert_eq!(kept.get(&format!("/sessions/{id}")).good()["name"], "From afar");
    let events = ui.get(&format!("/events?topics=all&wait=20&after={after}")).good();
    assert!(events["items"].to_string().contains("From afar"), "{events}");
    // The page itself comes from here, and nobody ends a keeper through it.
    assert_eq!(ui.ask("GET", "/", &[("Cookie", "")], "").body, kept.ask("GET", "/", &[], "").body);
    assert_eq!(ui.post("/stop", json!({})).status, 404);
    assert_eq!(kept.get("/info").status, 200);
}

#[test]
fn a_session_is_followed_and_a_request_is_approved_through_a_page_apart() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let ui = apart(&kept);
    let mut socket = Socket::open(&ui);
    socket.say(json!({ "type": "hello" }));
    assert_eq!(socket.until("welcome").1["v"], 1);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let file = desk.project().join("made.txt");
    let prompt = Prompt::new("Write it.").calls("Write", json!({ "file_path": file, "content": "made" }));
    let id = create(&ui, &desk, &prompt.says("It is there."));
    let (_, asked) = socket.until("attention.requested");
    let request = wait_for_request(&ui);
    assert_eq!(asked["data"]["shown"]["id"], request["shown"]["id"]);
    assert!(!file.try_exists().unwrap());
    assert_eq!(decide(&ui, &request, "allow").status, 200);
    socket.until("turn.completed");
    until_state(&ui, &id, "idle");
    assert_eq!(fs::read_to_string(&file).unwrap(), "made");
    assert_eq!(texts(&ui, &id), texts(&kept, &id));
    // A decision is one decision, whichever way it comes.
    assert_eq!(decide(&kept, &request, "deny").status, 409);
}

#[test]
fn the_keepers_token_never_leaves_a_page_apart() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let mut ui = apart(&kept);
    for (method, route) in route_table().into_iter().filter(|(_, route)| !route.ends_with("/stream")) {
        let place = route.replace("{id}", &id).replace("{uuid}", "u1").replace("{agent}", "a1");
        let answer = ui.ask(&method, &place, &[], "{}");
        let body = String::from_utf8_lossy(&answer.body);
        assert!(!body.contains(&kept.token) && !answer.head.contains(&kept.token), "{method} {route}");
        assert!(answer.header("set-cookie").is_none() || route.contains("/auth/"), "{method} {route}");
    }
    ui.end();
    for entry in fs::read_dir(&ui.home).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&entry).unwrap();
        assert!(!text.contains(&kept.token), "{}", entry.display());
    }
}

/// Its roots are narrower than the keeper's, and what is outside of them does not exist for its pages.
#[test]
fn a_page_apart_has_allowed_roots_of_its_own() {
    let home = Home::new();
    let (inside, outside) = (session(), session());
    let place = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    for name in ["work/api", "private"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    home.conversation(&inside, &place("work/api"), 2);
    home.conversation(&outside, &place("private"), 2);
    let kept = home.keeper();
    let mut settings = settings(&kept);
    settings.allowed_roots = vec![home.path().join("work")];
    let ui = Kept::apart(settings);
    // Whatever is asked, and by whichever route, nothing of the other session is said.
    for (method, route) in route_table().into_iter().filter(|(_, route)| !route.contains("/auth/")) {
        for id in [&outside, &inside] {
            let path = route.replace("{id}", id).replace("{uuid}", &uuid(id, 0)).replace("{agent}", "a1");
            let query = if route.ends_with("/search") { "?q=message" } else { "" };
            let body = json!({ "to": uuid(id, 0), "cwd": place("private") }).to_string();
            let answer = ui.ask(&method, &format!("{path}{query}"), &[], &body);
            let text = String::from_utf8_lossy(&answer.body);
            assert!(!text.contains(&place("private")) && !text.contains(&outside), "{method} {path}: {text}");
            let is_refused = (400..500).contains(&answer.status);
            assert!(is_refused || !path.contains(&outside), "{method} {path}: {}", answer.status);
        }
        // Restored, should the inner one have been deleted by the walk.
        if method == "DELETE" {
            ui.post(&format!("/sessions/{inside}/restore"), json!({}));
        }
    }
    assert_eq!(ui.get("/info").good()["sessions"], 1);
    assert_eq!(ui.get(&format!("/directories?path={}", place("private"))).status, 404);
    // Neither is it heard of, live or by long poll, nor when it goes.
    let after = ui.get("/events?topics=all").good()["after"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&ui);
    socket.subscribe("all", None);
    socket.until("caught_up");
    append(&home.transcript("-project", &outside), &line(&outside, &place("private"), 2));
    kept.until("the keeper has it", || {
        let told = kept.get(&format!("/events?topics=all&wait=5&after={after}")).good();
        told.to_string().contains(&uuid(&outside, 2)).then_some(())
    });
    kept.delete(&format!("/sessions/{outside}")).good();
    append(&home.transcript("-project", &inside), &line(&inside, &place("work/api"), 2));
    let (before, told) = socket.until("message.upsert");
    assert!(before.iter().all(|frame| !frame.to_string().contains(&outside)), "{before:?}");
    assert_eq!(told["data"]["uuid"], uuid(&inside, 2));
    let events = ui.get(&format!("/events?topics=all&wait=20&after={after}")).good().to_string();
    assert!(events.contains(&inside) && !events.contains(&outside), "{events}");
    // One of its own that goes is told of.
    kept.delete(&format!("/sessions/{inside}")).good();
    assert_eq!(socket.until("session.removed").1["data"]["session_id"], inside.as_str());
    // What another one deleted is not brought back through it.
    assert_eq!(ui.post(&format!("/sessions/{outside}/restore"), json!({})).status, 404);
    assert_eq!(kept.get(&format!("/sessions/{outside}")).status, 404);
}

#[test]
fn a_page_apart_says_when_its_keeper_is_gone_or_has_another_token_and_goes_on_by_itself() {
    let home = Home::new();
    let mut settings_of_keeper = home.settings();
    let mut kept = home.keeper();
    settings_of_keeper.listen = kept.address;
    let token_file = home.path().join("copied-token");
    fs::write(&token_file, &kept.token).unwrap();
    let mut settings = settings(&kept);
    settings.token_file.clone_from(&token_file);
    let ui = Kept::apart(settings);
    assert_eq!(ui.get("/info").status, 200);
    kept.end();
    let gone = ui.get("/info");
    assert_eq!((gone.status, gone.json()["code"].as_str()), (502, Some("keeper-unreachable")));
    assert!(gone.json()["hint"].as_str().unwrap().contains("rethread serve"));
    // It comes back with another token: said so, and as no logout of the page.
    fs::remove_file(kept.home.join("token")).unwrap();
    let kept = Kept::start(settings_of_keeper);
    let refused = ui.get("/info");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (502, Some("keeper-token")));
    fs::write(&token_file, &kept.token).unwrap();
    ui.get("/info");
    assert_eq!(ui.get("/info").status, 200);
}
