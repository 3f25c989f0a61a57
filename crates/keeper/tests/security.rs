//! The security baseline, point by point, with the attacks it is there for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use rethread_keeper::{Agent, Error, Running, route_table};
use serde_json::json;

use crate::kit::{Home, Kept, session};

/// Fills in what a route's path leaves open.
fn path(route: &str, id: &str) -> String {
    route
        .replace("{id}", id)
        .replace("{uuid}", "u1")
        .replace("{agent}", "a1")
        .replace("{namespace}", "team")
        .replace("{name}", "n1")
}

/// What no path may name: the way out of a folder, the end of a text, a whole path, another home.
const ODD_NAMES: [&str; 19] = [
    "..",
    "../..",
    "../../../../etc/passwd",
    "..%2f",
    "..%2f..%2fetc%2fpasswd",
    "..%2F..%2Fetc",
    "%2e%2e",
    "%2e%2e%2fetc",
    "%2E%2E/%2e%2e/etc",
    "..%5c..",
    "a%5cb",
    "%00",
    "a%00.jsonl",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "a%20b",
    "native:",
    "other:x",
    "-%2d/",
];

/// Returns what a route's path leaves open.
fn parameters(route: &str) -> Vec<&str> {
    route.split('/').filter(|part| part.starts_with('{')).collect()
}

fn is_open(method: &str, route: &str) -> bool {
    matches!(route, "/" | "/healthz" | "/api/v1/healthz" | "/assets/{file}")
        || (method, route) == ("POST", "/api/v1/auth/exchange")
}

/// Point 15: every route that there is, against every attack.
#[test]
fn every_route_refuses_every_attack() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    refuses_every_attack(&kept, &kept.token, &id);
}

/// Attacks every route that there is; `token` is the one that would come in at the keeper.
pub(crate) fn refuses_every_attack(kept: &Kept, token: &str, id: &str) {
    let table = route_table();
    assert!(table.len() > 20, "{table:?}");
    let ours = format!("http://{}", kept.host());
    let (large, larger) = ("x".repeat(9 << 20), "x".repeat(65 << 20));
    for (method, route) in &table {
        let (open, mutates) = (is_open(method, route), method != "GET");
        let place = path(route, id);
        let ask = |headers: &[(&str, &str)]| kept.ask(method, &place, headers, "{}").status;
        let refused = |status: u16| matches!(status, 401 | 429);
        for host in
            ["evil.example", "127.0.0.1.evil.example:80", "localhost", "localhost:1", "169.254.1.1", ""]
        {
            let status = ask(&[("Host", host)]);
            assert!(
                status == 421 || host.is_empty() && status == 400,
                "{method} {route} Host {host:?}: {status}"
            );
        }
        for (name, value) in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Origin", "http://localhost"),
            ("Origin", "http://localhost.evil.example"),
        ] {
            assert_eq!(ask(&[(name, value)]), 403, "{method} {route} {name}: {value}");
        }
        if !open || mutates {
            for site in ["cross-site", "same-site", "anything"] {
                assert_eq!(ask(&[("Sec-Fetch-Site", site)]), 403, "{method} {route} {site}");
            }
        }
        if !open {
            for given in ["", "Bearer 00", token] {
                let headers = &[("Authorization", given), ("Cookie", "")];
                let status = ask(headers);
                assert!(refused(status), "{method} {route} {headers:?}: {status}");
            }
            let cookie = format!("rethread-{}=forged", kept.address.port());
            let status = ask(&[("Authorization", ""), ("Cookie", &cookie), ("Origin", &ours)]);
            assert!(refused(status), "{method} {route} with a forged cookie: {status}");
        }
        if mutates {
            let simple = [("Content-Type", "text/plain"), ("X-Rethread", "")];
            let page = ("Origin", ours.as_str());
            assert_eq!(ask(&[page, simple[1]]), 403, "{method} {route} without the header");
            assert_eq!(ask(&[page, simple[0]]), 415, "{method} {route} as text");
            let body = if place.ends_with("/append") { &larger } else { &large };
            let status = kept.ask(method, &place, &[page], body).status;
            assert_eq!(status, 413, "{method} {route} with a large body");
        }
        for name in parameters(route) {
            let long = "a".repeat(300);
            for odd in ODD_NAMES.into_iter().chain([long.as_str()]) {
                let attacked = path(&route.replace(name, odd), id);
                let answer = kept.ask(method, &attacked, &[], "{}");
                assert!((400..500).contains(&answer.status), "{method} {attacked}: {answer:?}");
            }
        }
        let query = format!("{place}?token={token}");
        let status = kept.ask(method, &query, &[("Authorization", ""), ("Cookie", "")], "{}").status;
        assert!((400..500).contains(&status), "{method} {route} with a token in its query: {status}");
    }
    // Nobody attacked successfully, and whoever has the token still comes in.
    assert_eq!(kept.get("/sessions").status, 200);
}

/// The page's files are the only ones: whatever a path says, no other file is read.
#[test]
fn no_way_leads_from_the_pages_files_to_others() {
    let home = Home::new();
    let kept = home.keeper();
    let ways = ["/", "/assets/", "/assets/x/", "/api/v1/", "/api/v1/assets/"];
    let targets = ["etc/passwd", "etc%2fpasswd", "Cargo.toml", "index.html", "package.json"];
    let ups = [
        "../",
        "../../",
        "../../../../../../../../",
        "..%2f",
        "..%2f..%2f..%2f..%2f..%2f..%2f",
        "%2e%2e/%2e%2e/",
        "..%5c",
        "..\\",
        "/",
        "//",
        "%2f",
        "./",
        ".%00./",
        "%252e%252e%252f",
    ];
    for way in ways {
        for up in ups {
            for target in targets {
                let path = format!("{way}{up}{target}");
                let answer = kept.ask("GET", &path, &[], "");
                assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.head);
                assert!(answer.body.len() < 1000, "{path}: {}", String::from_utf8_lossy(&answer.body));
            }
        }
    }
    assert_eq!(kept.ask("GET", "/assets/index.html%00.js", &[], "").status, 404);
}

/// Point 7, on every kind of answer.
#[test]
fn every_answer_tells_the_browser_what_it_must_not_do() {
    let home = Home::new();
    let kept = home.keeper();
    let answers = [
        kept.get("/info"),
        kept.get("/nowhere"),
        kept.ask("GET", "/", &[("Authorization", "")], ""),
        kept.ask("GET", "/healthz", &[("Authorization", "")], ""),
        kept.ask("GET", "/api/v1/info", &[("Authorization", "")], ""),
        kept.ask("GET", "/api/v1/info", &[("Host", "evil")], ""),
        kept.ask("PUT", "/api/v1/info", &[], "{}"),
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{answer:?}");
        assert!(policy.ends_with("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(!answer.head.to_lowercase().contains("access-control-"), "{}", answer.head);
    }
    assert_eq!(answers.map(|answer| answer.status), [200, 404, 200, 200, 401, 421, 405]);
}

/// Point 1: what listens, and for whom.
#[test]
fn a_keeper_listens_on_the_loopback_only_and_its_files_are_its_owners() {
    let home = Home::new();
    let kept = home.keeper();
    assert!(kept.address.ip().is_loopback());
    for (name, mode) in
        [("socket", 0o600), ("token", 0o600), ("address", 0o600), ("audit.jsonl", 0o600), (".", 0o700)]
    {
        let metadata = fs::metadata(kept.home.join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
    assert_eq!(kept.token.len(), 64);
    let mut settings = Home::new().settings();
    settings.listen = "0.0.0.0:0".parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(Running::start(settings));
    assert!(matches!(refused, Err(Error::NotLoopback(_))), "{refused:?}");
    // A second keeper on the same home would be a second truth.
    let second = runtime.block_on(Running::start(home.settings()));
    assert!(
        matches!(second, Err(Error::RunsAlready { what: "keeper", pid }) if pid == std::process::id()),
        "{second:?}"
    );
}

/// Point 1: even if the file system let another user in.
#[test]
fn another_user_is_refused_at_the_socket() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can be somebody else: not tested");
    }
    let home = Home::new();
    let kept = home.keeper();
    for (place, mode) in [(home.path(), 0o755), (&kept.home, 0o755), (&kept.home.join("socket"), 0o666)] {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(kept.local("GET", "/api/v1/info", "").status, 200);
    let answer = std::thread::scope(|scope| {
        let as_nobody = scope.spawn(|| {
            // Of this thread alone.
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            kept.local("GET", "/api/v1/info", "")
        });
        as_nobody.join().unwrap()
    });
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(!String::from_utf8_lossy(&answer.body).contains("epoch"), "{answer:?}");
}

/// Point 2: a page of an attacker's whose name suddenly leads to us.
#[test]
fn dns_rebinding_meets_a_name_that_is_not_ours() {
    let home = Home::new();
    let kept = home.keeper();
    let port = kept.address.port();
    let rebound = format!("attacker.example:{port}");
    let answer = kept.ask("GET", "/", &[("Host", &rebound), ("Authorization", "")], "");
    assert_eq!((answer.status, answer.json()["code"].as_str()), (421, Some("unknown-host")));
    for own in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        format!("LOCALHOST:{port}"),
    ] {
        assert_eq!(kept.ask("GET", "/api/v1/info", &[("Host", &own)], "").status, 200, "{own}");
    }
    // A name in the path's place does not help either.
    let request =
        format!("GET http://evil.example/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", kept.host());
    assert_eq!(kept.say(request.as_bytes()).status, 421);
    let twice =
        format!("GET / HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nConnection: close\r\n\r\n", kept.host());
    assert!(matches!(kept.say(twice.as_bytes()).status, 400 | 421));
}

/// Points 3 and 6: a WebSocket that another page opens.
#[test]
fn a_cross_site_websocket_is_refused_before_it_is_one() {
    let home = Home::new();
    let kept = home.keeper();
    let cookie = kept.log_in();
    let ours = format!("http://{}", kept.host());
    let open = |headers: &[(&str, &str)]| {
        let upgrade = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut head = "GET /api/v1/stream HTTP/1.1\r\n".to_owned();
        let host = kept.host();
        let usual: &[(&str, &str)] =
            if headers.iter().any(|(name, _)| *name == "Host") { &[] } else { &[("Host", &host)] };
        for (name, value) in upgrade.iter().chain(usual).chain(headers) {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = std::net::TcpStream::connect(kept.address).unwrap();
        std::io::Write::write_all(&mut stream, format!("{head}\r\n").as_bytes()).unwrap();
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        String::from_utf8_lossy(&first[9..12]).parse::<u16>().unwrap()
    };
    let bearer = format!("Bearer {}", kept.token);
    assert_eq!(open(&[("Cookie", &cookie), ("Origin", &ours)]), 101);
    assert_eq!(open(&[("Authorization", &bearer)]), 101);
    assert_eq!(open(&[("Cookie", &cookie)]), 403, "a page says where it comes from");
    assert_eq!(open(&[("Cookie", &cookie), ("Origin", "http://evil.example")]), 403);
    assert_eq!(open(&[("Cookie", &cookie), ("Origin", "null")]), 403);
    assert_eq!(open(&[("Authorization", &bearer), ("Origin", "http://evil.example")]), 403);
    assert_eq!(open(&[("Cookie", &cookie), ("Origin", &ours), ("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(open(&[("Cookie", &cookie), ("Origin", &ours), ("Host", "evil.example")]), 421);
    assert_eq!(open(&[("Origin", &ours)]), 401);
}

fn exchange(kept: &Kept, code: &str) -> crate::kit::Answer {
    let ours = format!("http://{}", kept.host());
    let headers = [("Authorization", ""), ("Origin", ours.as_str())];
    kept.ask("POST", "/api/v1/auth/exchange", &headers, &json!({ "code": code }).to_string())
}

/// Point 4: the way in for a browser.
#[test]
fn a_code_logs_a_browser_in_once_and_secrets_stay_out_of_logs() {
    let home = Home::new();
    let mut kept = home.keeper();
    let cookie = kept.log_in();
    let ours = format!("http://{}", kept.host());
    let code = kept.boot.split_once("#boot=").unwrap().1.to_owned();
    assert_eq!(exchange(&kept, &code).status, 401, "a code is good for one use");
    let page = |kept: &Kept, path: &str| {
        kept.ask("GET", path, &[("Authorization", ""), ("Cookie", &cookie)], "").status
    };
    assert_eq!(page(&kept, "/api/v1/sessions"), 200);
    // Changes need more than a cookie.
    let change = |headers: &[(&str, &str)]| kept.ask("POST", "/api/v1/auth/logout", headers, "{}").status;
    assert_eq!(change(&[("Authorization", ""), ("Cookie", &cookie)]), 403);
    assert_eq!(change(&[("Authorization", ""), ("Cookie", &cookie), ("Origin", &ours)]), 204);
    assert_eq!(page(&kept, "/api/v1/sessions"), 401, "logged out");
    let again = kept.local("POST", "/api/v1/auth/boot", "{}").good();
    let code = again["url"].as_str().unwrap().split_once("#boot=").unwrap().1.to_owned();
    assert_eq!(exchange(&kept, &code).status, 204);
    kept.end();
    for name in ["audit.jsonl", "logins.json"] {
        let text = fs::read_to_string(kept.home.join(name)).unwrap();
        for secret in [&kept.token, &code, &cookie] {
            assert!(!text.contains(secret.as_str()), "{name} holds a secret");
        }
    }
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert!(
        audit.contains("\"login\"") && audit.contains("\"login-failed\"") && audit.contains("\"logout\""),
        "{audit}"
    );
}

/// Point 5: guessing.
#[test]
fn guessing_gets_slow_and_whoever_knows_the_token_does_not_notice() {
    let home = Home::new();
    let kept = home.keeper();
    let guess = || kept.ask("GET", "/api/v1/info", &[("Authorization", "Bearer 1234")], "");
    let answers: Vec<u16> = (0..40).map(|_| guess().status).collect();
    assert_eq!((answers[0], answers[39]), (401, 429));
    assert!(guess().header("retry-after").is_some());
    assert_eq!(kept.get("/info").status, 200);
    // Neither does the disk fill up.
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert_eq!(audit.matches("\"unauthenticated\"").count(), 20, "{audit}");
    assert_eq!(audit.matches("\"too-many-failures\"").count(), 20, "{audit}");
}

#[test]
fn failed_logins_are_written_down_until_they_are_slowed_down() {
    let home = Home::new();
    let kept = home.keeper();
    let answers: Vec<u16> = (0..60).map(|_| exchange(&kept, "guessed").status).collect();
    assert_eq!((answers[0], answers[59]), (401, 429));
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert_eq!(audit.matches("\"login-failed\"").count(), 20, "{audit}");
    assert_eq!(audit.lines().count(), 20, "{audit}");
}

#[test]
fn a_wrong_token_is_written_down_whatever_else_was_refused_before() {
    let home = Home::new();
    let kept = home.keeper();
    for _ in 0..30 {
        assert_eq!(kept.ask("GET", "/api/v1/sessions", &[("authorization", "")], "").status, 401);
    }
    let wrong = [("authorization", "Bearer 0000")];
    assert_eq!(kept.ask("GET", "/api/v1/info", &wrong, "").status, 401);
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert_eq!(audit.matches("/api/v1/sessions").count(), 20, "{audit}");
    assert_eq!(audit.matches("/api/v1/info").count(), 1, "{audit}");
}

/// Checks that a session is not there, by every route that names one, with what would be right if it were.
#[track_caller]
fn is_nowhere(kept: &Kept, id: &str) {
    let named = route_table().into_iter().filter(|(_, route)| route.contains("/sessions/{id}"));
    let undo = ("POST".to_owned(), format!("/api/v1/rewinds/{id}.{}/undo", crate::kit::uuid(id, 0)));
    for (method, route) in named.chain([undo]) {
        for home in ["", "native:", "stored:"] {
            let message = crate::kit::uuid(id, 0);
            let place = route.replace("{id}", &format!("{home}{id}")).replace("{uuid}", &message);
            let query = match route.rsplit('/').next() {
                Some("bytes") => "?offset=0".to_owned(),
                Some("diff") => format!("?turn={message}"),
                _ => String::new(),
            };
            let body = match route.rsplit('/').next() {
                Some("turns") => {
                    let parts = json!([{ "type": "text", "text": "hello" }]);
                    json!({ "client_message_id": "8f529643-98e0-4045-abbb-6f2887e6ce71", "parts": parts })
                }
                Some("rewind") => json!({ "to": message, "dry_run": true }),
                Some("lease") => json!({ "action": "take_over" }),
                Some("{id}") if method == "PATCH" => json!({ "name": "mine" }),
                _ => json!({}),
            };
            let answer = kept.ask(&method, &format!("{place}{query}"), &[], &body.to_string());
            let text = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, 404, "{method} {place}{query}: {text}");
        }
    }
    assert_eq!(kept.get(&format!("/sketches?sessions={id}")).good()["items"], json!([]));
    assert_eq!(kept.get(&format!("/search?q=message&session={id}")).good()["items"], json!([]));
    assert_eq!(kept.get(&format!("/attention?session={id}")).good()["items"], json!([]));
}

/// Point 9: files that are not what they seem.
#[test]
fn a_symlinked_transcript_does_not_exist() {
    let home = Home::new();
    let (shown, linked, within, sub) = (session(), session(), session(), session());
    home.conversation(&shown, "/tmp", 2);
    // Somebody else's file, a whole folder of them, and a subagent's.
    let secret = home.path().join("secret.jsonl");
    fs::write(&secret, crate::kit::line(&linked, "/tmp", 0)).unwrap();
    symlink(&secret, home.transcript("-project", &linked)).unwrap();
    fs::create_dir_all(home.path().join("elsewhere")).unwrap();
    fs::write(
        home.path().join("elsewhere").join(format!("{within}.jsonl")),
        crate::kit::line(&within, "/tmp", 0),
    )
    .unwrap();
    symlink(home.path().join("elsewhere"), home.claude().join("projects/-linked")).unwrap();
    let folder = home.conversation(&sub, "/tmp", 2).with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    symlink(&secret, folder.join("agent-a1.jsonl")).unwrap();
    let kept = home.keeper();
    let ids: Vec<String> = kept.get("/sessions").good()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["session_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.contains(&shown) && ids.contains(&sub) && ids.len() == 2, "{ids:?}");
    for hidden in [&linked, &within] {
        is_nowhere(&kept, hidden);
    }
    assert_eq!(kept.get(&format!("/sessions/{sub}/messages?agent=a1")).status, 404);
    assert_eq!(kept.get(&format!("/sessions/{sub}/subagents")).good()["items"], json!([]));
    let found = kept.get(&format!("/search?q={linked}")).good();
    assert_eq!(found["items"], json!([]));
    // Swapped after it was listed: neither read nor told.
    let after = kept.get("/events?topics=all").good()["after"].as_str().unwrap().to_owned();
    let path = home.transcript("-project", &shown);
    let link = home.path().join("link");
    symlink(&secret, &link).unwrap();
    fs::rename(&link, &path).unwrap();
    crate::kit::append(&secret, &crate::kit::line(&linked, "/tmp", 1));
    crate::kit::append(&home.transcript("-project", &sub), &crate::kit::line(&sub, "/tmp", 2));
    is_nowhere(&kept, &shown);
    let told = kept.until("others are told of", || {
        let events = kept.get(&format!("/events?topics=all&wait=5&after={after}")).good().to_string();
        events.contains(&crate::kit::uuid(&sub, 2)).then_some(events)
    });
    assert!(!told.contains(&linked), "{told}");
    // Nobody has written to what the links lead to, nor put anything in their place.
    let lines = [0, 1].map(|number| crate::kit::line(&linked, "/tmp", number)).concat();
    assert_eq!(fs::read_to_string(&secret).unwrap(), lines);
    for link in [path, home.transcript("-project", &linked), home.claude().join("projects/-linked")] {
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{}", link.display());
    }
}

/// Point 9: what lies beside a transcript is hostile as well.
#[test]
fn what_lies_beside_a_transcript_leads_nowhere_and_keeps_nobody_waiting() {
    let home = Home::new();
    let secret = home.path().join("secret.json");
    let said = r#"{"customTitle":"SECRET","description":"SECRET","agentType":"SECRET","sessionId":"SECRET","pid":1}"#;
    fs::write(&secret, said).unwrap();
    let linked = |place: &Path| symlink(&secret, place).unwrap();
    let piped = |place: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    fs::create_dir_all(home.claude().join("sessions")).unwrap();
    let mut ids = Vec::new();
    for put in [&linked as &dyn Fn(&Path), &piped] {
        let (id, cwd) = (session(), home.path().join(format!("project-{}", ids.len())));
        fs::create_dir(&cwd).unwrap();
        let beside = home.conversation(&id, cwd.to_str().unwrap(), 2).with_extension("");
        fs::create_dir_all(beside.join("subagents")).unwrap();
        fs::write(beside.join("subagents/agent-a1.jsonl"), "").unwrap();
        put(&beside.join("custom-title.json"));
        put(&beside.join("archived.json"));
        put(&beside.join("subagents/agent-a1.meta.json"));
        put(&home.claude().join(format!("sessions/{}.json", ids.len() + 1)));
        put(&cwd.join(".git"));
        ids.push(id);
    }
    // A whole folder of subagents that is elsewhere.
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("agent-outsider.jsonl"), "").unwrap();
    fs::write(elsewhere.join("agent-outsider.meta.json"), said).unwrap();
    let far = session();
    let beside = home.conversation(&far, "/tmp", 2).with_extension("");
    fs::create_dir_all(&beside).unwrap();
    symlink(&elsewhere, beside.join("subagents")).unwrap();
    ids.push(far);
    let kept = home.keeper();
    for id in &ids {
        for place in ["", "/subagents", "/messages"] {
            let answer = kept.get(&format!("/sessions/{id}{place}")).good().to_string();
            assert!(!answer.contains("SECRET") && !answer.contains("outsider"), "{place}: {answer}");
        }
    }
    let listed = kept.get("/sessions").good();
    assert_eq!(listed["items"].as_array().unwrap().len(), ids.len(), "{listed}");
    // Whoever follows has not been held up: what comes later is seen.
    let late = session();
    home.conversation(&late, "/tmp", 2);
    kept.until("it is seen", || (kept.get(&format!("/sessions/{late}")).status == 200).then_some(()));
}

/// Point 14: the folder itself may be a link.
#[test]
fn the_configured_folder_may_be_a_link() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/tmp", 2);
    symlink(home.claude(), home.path().join("link")).unwrap();
    let mut settings = home.settings();
    settings.claude_folder = Some(home.path().join("link"));
    let kept = Kept::start(settings);
    assert_eq!(kept.get(&format!("/sessions/{id}/messages")).good()["items"].as_array().unwrap().len(), 2);
}

/// Point 9: what lies outside of the allowed roots is not there, whichever way one asks.
#[test]
fn sessions_outside_the_allowed_roots_do_not_exist() {
    let home = Home::new();
    let (inside, outside, beside) = (session(), session(), session());
    let root = home.path().join("work");
    for name in ["work/api", "private", "workshop"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    symlink(home.path().join("private"), root.join("link")).unwrap();
    let place = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    home.conversation(&inside, &place("work/api"), 2);
    home.conversation(&outside, &place("private"), 2);
    home.conversation(&beside, &place("workshop"), 2);
    let store = home.store();
    let stored = pollster::block_on(store.create(rethread_store::NewSession::at(home.path()))).unwrap();
    store.close().unwrap();
    // An earlier keeper, without these roots, died while something waited there.
    let asked = json!({
        "shown": { "id": "asked-outside", "session_id": outside, "cwd": place("private"), "tool_name": "Bash", "input": { "command": "rm -rf /" } },
        "digest": "d", "state": "pending", "tool_use_id": "t", "requested_at": "2026-11-15T10:00:00Z", "hidden_characters": false, "suggestions": [],
    });
    fs::create_dir_all(home.path().join("keeper")).unwrap();
    fs::write(home.path().join("keeper/attention.jsonl"), format!("{asked}\n")).unwrap();
    let mut settings = home.settings();
    settings.allowed_roots = vec![root];
    settings.agent = Some(Agent { program: "/bin/false".into(), environment: Vec::new() });
    let kept = Kept::start(settings);
    let listed = kept.get("/sessions").good();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["items"][0]["session_id"], inside.as_str());
    for hidden in [&outside, &beside, stored.id().as_str()] {
        is_nowhere(&kept, hidden);
    }
    // Neither does a session begin there, by whichever name, nor does anything there wait for a decision.
    let begins = |cwd: &str| kept.post("/sessions", json!({ "cwd": cwd, "prompt": "hello" }));
    for cwd in ["private", "workshop", "work/../private", "work/link", "work/api/../../private"] {
        let answer = begins(&place(cwd));
        assert_eq!((answer.status, answer.json()["code"].as_str()), (404, Some("not-found")), "{cwd}");
        assert_eq!(kept.get(&format!("/directories?path={}", place(cwd))).status, 404, "{cwd}");
    }
    assert_eq!(begins("/").status, 404);
    assert_eq!(kept.get("/attention").good()["items"], json!([]));
    let decision = json!({ "decision": "allow", "shown_digest": "d" });
    assert_eq!(kept.post("/attention/asked-outside/decision", decision).status, 404);
    let epoch = kept.get("/events").good()["after"].as_str().unwrap().split(':').next().unwrap().to_owned();
    let told = kept.get(&format!("/events?topics=all&after={epoch}:0")).good().to_string();
    assert!(!told.contains("rm -rf"), "{told}");
    assert_eq!(kept.get("/search?q=message").good()["items"].as_array().unwrap().len(), 2);
    assert_eq!(kept.get("/projects").good()["items"].as_array().unwrap().len(), 1);
    // Nor is it heard of.
    let after = kept.get("/events?topics=all").good()["after"].as_str().unwrap().to_owned();
    crate::kit::append(
        &home.transcript("-project", &outside),
        &crate::kit::line(&outside, &place("private"), 2),
    );
    crate::kit::append(
        &home.transcript("-project", &inside),
        &crate::kit::line(&inside, &place("work/api"), 2),
    );
    let events = kept.get(&format!("/events?topics=all&wait=20&after={after}")).good();
    assert!(events.to_string().contains(&inside) && !events.to_string().contains(&outside), "{events}");
}

/// Point 14, and the fault of Claudekeeper and its peers: what anybody may ask for says nothing.
#[test]
fn what_needs_no_login_tells_nothing() {
    let home = Home::new();
    let id = session();
    home.conversation(&id, "/home/ada/secret-project", 2);
    let kept = home.keeper();
    for (method, route) in route_table().into_iter().filter(|(method, route)| is_open(method, route)) {
        let answer = kept.ask(&method, &route, &[("Authorization", "")], "{}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !text.contains("ada") && !text.contains(&id) && !text.contains("claude/projects"),
            "{route}: {text}"
        );
    }
    assert_eq!(kept.ask("GET", "/healthz", &[("Authorization", "")], "").body, b"ok");
}

/// Point 2: a name that is allowed is allowed with our port, as a browser says it.
#[test]
fn a_name_that_is_allowed_is_one_with_the_keepers_port_and_with_no_other() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.allowed_hosts = vec!["dev.box".into()];
    let kept = Kept::start(settings);
    let port = kept.address.port();
    let status = |host: &str| kept.ask("GET", "/api/v1/info", &[("Host", host)], "").status;
    assert_eq!([status("dev.box"), status(&format!("dev.box:{port}"))], [200, 200]);
    assert_eq!([status("dev.box:1"), status("other.box"), status(&format!("x.dev.box:{port}"))], [421; 3]);
}

#[test]
fn a_login_through_a_proxy_with_tls_is_never_shown_in_the_open() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.allowed_hosts = vec!["sessions.example.org".into()];
    let kept = Kept::start(settings);
    let code = kept.boot.split_once("#boot=").unwrap().1;
    let body = json!({ "code": code }).to_string();
    let headers =
        [("Authorization", ""), ("Host", "sessions.example.org"), ("Origin", "https://sessions.example.org")];
    let answer = kept.ask("POST", "/api/v1/auth/exchange", &headers, &body);
    assert_eq!(answer.status, 204, "{}", answer.head);
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"), "{}", answer.head);
}
