//! What sessions did to files, and where new ones may begin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Moment, Settings, Window};
use rethread_keeper::COMPANION;
use rethread_store::NewSession;
use serde_json::{Value, json};

use crate::kit::{Home, Kept, session, uuid};

/// A session whose first turn changed a file, made one and removed one, with a person's edit before it.
fn worked(home: &Home) -> String {
    let (id, project) = (session(), home.path().join("work"));
    fs::create_dir_all(project.join("src")).unwrap();
    home.conversation(&id, project.to_str().unwrap(), 2);
    let store = home.store();
    let at = |name: &str| project.join(name);
    fs::write(at("old.txt"), "old\n").unwrap();
    let companion = block_on(store.create(NewSession::at(&project).id(id.parse().unwrap()))).unwrap();
    let mark = |metadata: &mut rethread_store::Metadata| {
        metadata.extra.insert(COMPANION.into(), json!(true));
    };
    block_on(companion.update(mark)).unwrap();
    let checkpoints = block_on(Checkpointer::open(&companion, &project, Settings::default())).unwrap();
    let moment = || Moment::of(uuid(&id, 0).parse().unwrap());
    block_on(checkpoints.tree(moment(), Window::Idle)).unwrap();
    fs::write(at("notes.txt"), "a person's\n").unwrap();
    block_on(checkpoints.tree(moment(), Window::Idle)).unwrap();
    fs::write(at("src/new.txt"), "one\ntwo\n").unwrap();
    fs::remove_file(at("old.txt")).unwrap();
    fs::write(at("picture"), [0; 64]).unwrap();
    block_on(checkpoints.tree(moment().tool("toolu_1"), Window::Tools)).unwrap();
    store.close().unwrap();
    id
}

fn diff(kept: &Kept, id: &str, query: &str) -> Value {
    kept.get(&format!("/sessions/{id}/diff?{query}")).good()
}

fn paths(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect()
}

#[test]
fn a_turn_and_a_tool_call_show_what_they_did_to_files() {
    let home = Home::new();
    let id = worked(&home);
    let kept = home.keeper();
    let turn = diff(&kept, &id, &format!("turn={}", uuid(&id, 0)));
    assert_eq!(paths(&turn), ["old.txt", "picture", "src/new.txt"], "the person's file is none of it");
    assert_eq!((&turn["kept_by"], diff(&kept, &id, "tool=toolu_1")), (&json!("rethread"), turn.clone()));
    let item =
        |path: &str| turn["items"].as_array().unwrap().iter().find(|it| it["path"] == path).unwrap().clone();
    let new = item("src/new.txt");
    assert_eq!(
        (&new["action"], &new["insertions"], &new["deletions"]),
        (&json!("created"), &json!(2), &json!(0))
    );
    assert_eq!(new["diff"], "--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert_eq!(
        (&item("old.txt")["action"], &item("old.txt")["source"]),
        (&json!("removed"), &json!("window"))
    );
    assert_eq!((&item("picture")["action"], &item("picture")["diff"]), (&json!("created"), &Value::Null));
    let only = diff(&kept, &id, &format!("turn={}&path=src", uuid(&id, 0)));
    assert_eq!(paths(&only), ["src/new.txt"]);
    assert_eq!(paths(&diff(&kept, &id, &format!("turn={}&path=sr", uuid(&id, 0)))), Vec::<&str>::new());
    let since = diff(&kept, &id, &format!("since={}", uuid(&id, 0)));
    assert_eq!(paths(&since), ["notes.txt", "old.txt", "picture", "src/new.txt"]);
    assert_eq!(paths(&diff(&kept, &id, "turn=nobody")), Vec::<&str>::new());
}

#[test]
fn a_diff_is_of_exactly_one_thing_and_of_sessions_that_may_be_seen() {
    let home = Home::new();
    let id = worked(&home);
    let bare = session();
    home.conversation(&bare, "/tmp", 2);
    let kept = home.keeper();
    for (query, status) in
        [("", 400), ("turn=a&tool=b", 400), ("checkpoint=nowhere", 404), ("since=a%00b", 404)]
    {
        assert_eq!(kept.get(&format!("/sessions/{id}/diff?{query}")).status, status, "{query}");
    }
    assert_eq!(
        diff(&kept, &bare, "turn=x"),
        json!({ "root": null, "kept_by": null, "items": [], "incomplete": [] })
    );
    drop(kept);
    let mut settings = home.settings();
    settings.allowed_roots = vec![home.claude()];
    let kept = Kept::start(settings);
    assert_eq!(kept.get(&format!("/sessions/{id}/diff?tool=toolu_1")).status, 404);
}

/// A root with folders, a file, and links that lead out of it.
fn rooted(home: &Home) -> rethread_keeper::Settings {
    let root = home.path().join("work");
    for name in ["api/.git", "web/src", ".hidden", "docs"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::create_dir_all(home.path().join("private/inner")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    symlink(home.path().join("private"), root.join("link")).unwrap();
    let mut settings = home.settings();
    settings.allowed_roots = vec![root];
    settings
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn directories_are_listed_within_the_roots_and_links_lead_nowhere() {
    let home = Home::new();
    let kept = Kept::start(rooted(&home));
    let root = home.path().join("work").canonicalize().unwrap();
    let get = |path: &str| kept.get(&format!("/directories?path={}", root.join(path).display()));
    let top = kept.get("/directories").good();
    assert_eq!((names(&top), &top["parent"]), (vec!["api", "docs", "web"], &Value::Null));
    assert_eq!(top["path"], root.to_str().unwrap());
    assert_eq!(
        (&top["items"][0]["repository"], &top["items"][1]["repository"]),
        (&json!(true), &json!(false))
    );
    let web = get("web").good();
    assert_eq!((names(&web), &web["parent"]), (vec!["src"], &top["path"]));
    assert_eq!(web["items"][0]["path"], root.join("web/src").to_str().unwrap());
    for outside in ["link", "link/inner", "..", "../private", "file", "nothing", "web/../../private"] {
        assert_eq!(get(outside).status, 404, "{outside}");
    }
    for outside in ["/", "/etc", "relative", "", "%00"] {
        assert_eq!(kept.get(&format!("/directories?path={outside}")).status, 404, "{outside}");
    }
    let hidden = kept.get("/directories?hidden=true").good();
    assert_eq!(names(&hidden), [".hidden", "api", "docs", "web"]);
}

#[test]
fn directories_come_in_pages_and_several_roots_are_where_one_begins() {
    let home = Home::new();
    let mut settings = rooted(&home);
    settings.allowed_roots.push(home.path().join("private"));
    let kept = Kept::start(settings);
    let beginnings = kept.get("/directories").good();
    let roots: Vec<String> = ["work", "private"]
        .map(|name| home.path().join(name).canonicalize().unwrap().to_str().unwrap().to_owned())
        .into();
    assert_eq!(
        (names(&beginnings), &beginnings["path"]),
        (roots.iter().map(String::as_str).collect(), &Value::Null)
    );
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = kept.get(&format!("/directories?path={}&limit=2{cursor}", roots[0])).good();
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["api", "docs", "web"]);
}

#[test]
fn without_roots_one_begins_where_the_keeper_was_told() {
    let home = Home::new();
    let mut settings = rooted(&home);
    settings.allowed_roots.clear();
    settings.start = home.path().join("work");
    let kept = Kept::start(settings);
    let top = kept.get("/directories").good();
    assert_eq!(names(&top), ["api", "docs", "web"]);
    assert_eq!(top["parent"], home.path().canonicalize().unwrap().to_str().unwrap());
    assert!(names(&kept.get("/directories?path=/").good()).contains(&"tmp"));
}

#[test]
fn a_rewind_takes_no_path_that_is_not_beneath_its_directory() {
    let home = Home::new();
    let id = worked(&home);
    let kept = home.keeper();
    let outside = home.path().join("outside");
    fs::write(&outside, "mine\n").unwrap();
    for odd in ["", ".", "..", "../outside", "src/../../outside", "/etc/passwd", "a\0b", ".git/config"] {
        for list in ["force", "leave"] {
            let body = json!({ "to": uuid(&id, 0), "dry_run": true, list: [odd] });
            let refused = kept.post(&format!("/sessions/{id}/rewind"), body);
            let code = refused.json()["code"].clone();
            assert_eq!((refused.status, code), (400, json!("bad-request")), "{list} {odd:?}");
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    let plan = json!({ "to": uuid(&id, 0), "dry_run": true, "leave": ["old.txt"] });
    let plan = kept.post(&format!("/sessions/{id}/rewind"), plan).good();
    assert!(!plan["steps"].to_string().contains("old.txt"), "{plan}");
}
