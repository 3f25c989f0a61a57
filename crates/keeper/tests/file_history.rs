//! What Claude Code itself kept of files, shown beside what the keeper keeps.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rethread_testkit::{Fixture, cannot};
use serde_json::{Value, json};

use crate::kit::{Home, Kept, append, session, uuid};

const SECRET: &str = "the secret of somebody else";

/// A session in whose two turns Claude Code kept files: `code.txt` before both, `new.txt` before the first.
struct Worked {
    home: Home,
    id: String,
    project: PathBuf,
    transcript: PathBuf,
}

impl Worked {
    fn new() -> Self {
        let (home, id) = (Home::new(), session());
        let project = home.path().join("work");
        fs::create_dir_all(&project).unwrap();
        let transcript = home.conversation(&id, project.to_str().unwrap(), 4);
        let worked = Self { home, id, project, transcript };
        worked.keep("code@v1", "old\n");
        worked.keep("code@v2", "new\n");
        worked.snapshot(0, json!({ "code.txt": "code@v1", "new.txt": null }));
        worked.snapshot(2, json!({ "code.txt": "code@v2", "new.txt": "new@v1" }));
        worked.keep("new@v1", "fresh\n");
        fs::write(worked.project.join("code.txt"), "newer\n").unwrap();
        fs::write(worked.project.join("new.txt"), "fresh\n").unwrap();
        worked
    }

    fn kept(&self) -> PathBuf {
        self.home.claude().join("file-history").join(&self.id)
    }

    fn keep(&self, name: &str, content: &str) {
        fs::create_dir_all(self.kept()).unwrap();
        fs::write(self.kept().join(name), content).unwrap();
    }

    /// Says what was kept before a prompt.
    fn snapshot(&self, number: usize, files: Value) {
        let backups: serde_json::Map<String, Value> = files
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, name)| (path.clone(), json!({ "backupFileName": name, "version": 1 })))
            .collect();
        let message = uuid(&self.id, number);
        let line = json!({
            "type": "file-history-snapshot", "messageId": message, "isSnapshotUpdate": false,
            "snapshot": { "messageId": message, "trackedFileBackups": backups, "timestamp": "2026-11-15T10:00:00.000Z" },
        });
        append(&self.transcript, &format!("{line}\n"));
    }

    fn diff(&self, keeper: &Kept, part: &str, number: usize) -> Value {
        keeper.get(&format!("/sessions/{}/diff?{part}={}", self.id, uuid(&self.id, number))).good()
    }
}

/// Returns each path with what happened to it and how.
fn changes(page: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|it| (it["path"].as_str().unwrap(), it["action"].as_str().unwrap(), it["diff"].as_str()))
        .collect()
}

#[test]
fn what_the_real_cli_kept_of_files_is_listed_and_compared() {
    let Some(fixture) = Fixture::play_named("checkpointed") else { return cannot("there is no CLI") };
    let home = Home::new();
    let mut settings = home.settings();
    settings.claude_folder = Some(fixture.config.clone());
    let keeper = Kept::start(settings);
    let path = format!("/sessions/{}", fixture.session);
    let [first, second] = [1, 2].map(|number| format!("ffffffff-0000-4000-8000-00000000000{number}"));
    let listed = keeper.get(&format!("{path}/checkpoints")).good();
    assert_eq!(listed["items"], json!([]), "none of it can be taken back here");
    let [one, two] = &listed["claude_code"].as_array().unwrap()[..] else { panic!("{listed}") };
    let file = |path: &str, existed: bool| json!({ "path": path, "existed": existed });
    assert_eq!((&one["message"], &two["message"]), (&json!(first), &json!(second)));
    assert_eq!(one["files"], json!([file("code.txt", true), file("new.txt", false)]));
    assert_eq!(two["files"], json!([file("code.txt", true)]), "the other one was not changed again");
    let diff = |query: &str| keeper.get(&format!("{path}/diff?{query}")).good();
    let turn = diff(&format!("turn={first}"));
    assert_eq!(
        (&turn["kept_by"], &turn["items"][0]["source"]),
        (&json!("claude_code"), &json!("claude_code"))
    );
    let edit =
        |old: &str, new: &str| format!("--- a/code.txt\n+++ b/code.txt\n@@ -1 +1 @@\n-{old}\n+{new}\n");
    let made = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+fresh\n";
    let expected = [("code.txt", "changed", Some(&*edit("old", "new"))), ("new.txt", "created", Some(made))];
    assert_eq!(changes(&turn), expected);
    assert_eq!(
        changes(&diff(&format!("turn={second}"))),
        [("code.txt", "changed", Some(&*edit("new", "newer")))]
    );
    let expected =
        [("code.txt", "changed", Some(&*edit("old", "newer"))), ("new.txt", "created", Some(made))];
    assert_eq!(changes(&diff(&format!("since={first}"))), expected);
    assert_eq!(changes(&diff(&format!("since={first}&path=new.txt"))), expected[1..]);
    let rewind = keeper.post(&format!("{path}/rewind"), json!({ "to": first, "dry_run": true }));
    assert_eq!(rewind.status, 404, "nothing of it is touched from here");
}

#[test]
fn a_turn_ends_where_the_next_prompt_found_the_files_and_the_last_one_now() {
    let worked = Worked::new();
    let keeper = worked.home.keeper();
    let turn = worked.diff(&keeper, "turn", 0);
    assert_eq!(
        changes(&turn).iter().map(|(path, action, _)| (*path, *action)).collect::<Vec<_>>(),
        [("code.txt", "changed"), ("new.txt", "created")]
    );
    assert!(turn["items"][0]["diff"].as_str().unwrap().ends_with("-old\n+new\n"), "{turn}");
    let last = worked.diff(&keeper, "turn", 2);
    assert!(last["items"][0]["diff"].as_str().unwrap().ends_with("-new\n+newer\n"), "{last}");
    assert_eq!(changes(&last).len(), 1);
    fs::remove_file(worked.kept().join("code@v1")).unwrap();
    let gone = worked.diff(&keeper, "since", 0);
    assert_eq!(changes(&gone)[0], ("code.txt", "unknown", None), "what is gone is not taken for nothing");
    assert_eq!(changes(&worked.diff(&keeper, "turn", 1)), []);
}

/// Whoever can write a transcript could otherwise have any file of this machine shown.
#[test]
fn a_transcript_has_no_files_shown_but_those_of_its_directory_and_of_its_own_history() {
    let worked = Worked::new();
    let (home, other) = (worked.home.path(), worked.home.claude().join("file-history/other"));
    fs::create_dir_all(&other).unwrap();
    fs::create_dir_all(home.join("private")).unwrap();
    for place in [other.join("secret@v1"), home.join("private/secret"), home.join("secret")] {
        fs::write(place, SECRET).unwrap();
    }
    symlink(home.join("private"), worked.project.join("folder")).unwrap();
    symlink(home.join("secret"), worked.project.join("link")).unwrap();
    symlink(home.join("secret"), worked.kept().join("link@v1")).unwrap();
    let absolute = home.join("secret").to_str().unwrap().to_owned();
    worked.snapshot(
        0,
        json!({
            "../secret": null, "a/../../secret": null, absolute.as_str(): null, "folder/secret": null, "link": null,
            "one": "../other/secret@v1", "two": absolute.as_str(), "three": "link@v1", "four": "../../../secret",
            ".": "code@v1", "": "code@v1",
        }),
    );
    let keeper = worked.home.keeper();
    for part in ["turn", "since"] {
        let page = worked.diff(&keeper, part, 0);
        assert!(!page.to_string().contains(SECRET), "{page}");
        let shown: Vec<&str> = changes(&page).iter().map(|(path, ..)| *path).collect();
        assert!(shown.iter().all(|path| !path.contains("..") && !path.starts_with('/')), "{shown:?}");
        assert!(
            shown.contains(&"one") && shown.contains(&"link"),
            "what cannot be read is not hidden: {shown:?}"
        );
    }
    let listed = keeper.get(&format!("/sessions/{}/checkpoints", worked.id)).good();
    assert!(!listed.to_string().contains("../"), "{listed}");
}

#[test]
fn a_session_that_may_not_be_seen_has_no_file_history_either() {
    let worked = Worked::new();
    let mut settings = worked.home.settings();
    settings.allowed_roots = vec![worked.home.claude()];
    let keeper = Kept::start(settings);
    let turn = uuid(&worked.id, 0);
    for path in ["checkpoints".to_owned(), format!("diff?turn={turn}"), format!("diff?since={turn}")] {
        assert_eq!(keeper.get(&format!("/sessions/{}/{path}", worked.id)).status, 404, "{path}");
    }
}
