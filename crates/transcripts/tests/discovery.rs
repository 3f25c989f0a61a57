//! Sessions are found wherever they are, whatever state they are in.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rethread_testkit::{Fixture, Home, Prompt, Reply, cannot, not_in_this_version};
use rethread_transcripts::{ClaudeFolder, Directory, Health, ListOptions, Session, folder_name};
use serde_json::json;

fn list(config: &Path) -> Vec<Session> {
    ClaudeFolder::new(config).list(&ListOptions::default()).unwrap().sessions
}

fn one<'a>(sessions: &'a [Session], id: &str) -> &'a Session {
    sessions.iter().find(|session| session.session_id == id).unwrap()
}

#[test]
fn folders_are_named_as_the_cli_names_them() {
    let Some(home) = Home::new() else { return cannot("Claude Code cannot be installed") };
    let base = home.path().canonicalize().unwrap();
    let filled = |length: usize| {
        // A component may have 255 bytes at most, so that a long path needs two.
        let path = base.join("n".repeat(100));
        let missing = length - path.to_str().unwrap().len() - 1;
        path.join("m".repeat(missing))
    };
    let folders: Vec<PathBuf> = vec![
        base.join("with.dots and spaces_"),
        base.join("漢字 🎉 ünï"),
        base.join("-dash-"),
        filled(200),
        filled(201),
        filled(240),
    ];
    // Long names were not cut from the beginning.
    let known = if home.program().is_at_least("2.1.100") { folders.len() } else { folders.len() - 2 };
    let folders = &folders[..known];
    for (number, folder) in folders.iter().enumerate() {
        fs::create_dir_all(folder).unwrap();
        let id = format!("00000000-0000-4000-8000-{number:012}");
        home.claude().session(&id).inside(folder).asked(Prompt::new("Where am I?"));
        let theirs = home.transcript(&id).parent().unwrap().file_name().unwrap().to_owned();
        assert_eq!(folder_name(folder.to_str().unwrap()), theirs.to_str().unwrap());
    }
    let sessions = list(&home.config());
    for (number, folder) in folders.iter().enumerate() {
        let session = one(&sessions, &format!("00000000-0000-4000-8000-{number:012}"));
        assert_eq!((session.cwd.as_ref(), session.directory), (Some(folder), Directory::Present));
    }
}

#[test]
fn a_worktree_is_listed_with_its_repository() {
    let Some(fixture) = Fixture::named("worktree") else {
        return not_in_this_version("there is no such fixture");
    };
    let sessions = list(&fixture.config);
    let project = fixture.home.project();
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session.project.as_ref() == Some(&project)), "{sessions:#?}");
    // Older versions write the branch that the repository itself is on.
    let is_new = fixture.home.program().is_at_least("2.1.300");
    let branch = if is_new { "worktree-side" } else { "main" };
    assert_eq!(one(&sessions, &fixture.session).git_branch.as_deref(), Some(branch));
}

#[test]
fn a_fork_and_its_origin_know_each_other() {
    let Some(fixture) = Fixture::named("forked") else {
        return not_in_this_version("there is no such fixture");
    };
    let sessions = list(&fixture.config);
    let origin = sessions.iter().find(|session| session.session_id != fixture.session).unwrap();
    let fork = one(&sessions, &fixture.session);
    assert_eq!(fork.forked_from.as_ref(), Some(&origin.session_id));
    assert_eq!((&origin.forks, &origin.forked_from), (&vec![fork.session_id.clone()], &None));
}

#[test]
fn a_session_is_live_as_long_as_its_process_and_no_longer() {
    let Some(home) = Home::new() else { return cannot("Claude Code cannot be installed") };
    if !home.program().is_at_least("2.1.100") {
        return not_in_this_version("this version of Claude Code has no register of processes");
    }
    let id = "33333333-3333-4333-8333-333333333333";
    let prompt = Prompt::new("Wait").reply(Reply::text("never").hanging());
    let mut child = home.claude().session(id).start(prompt);
    home.api().wait_for(1);
    let deadline = SystemTime::now() + Duration::from_secs(60);
    let is_live = || list(&home.config()).iter().any(|session| session.live.is_some());
    while !is_live() {
        assert!(SystemTime::now() < deadline, "it was never live");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let files: Vec<_> = fs::read_dir(home.config().join("sessions")).unwrap().collect();
    assert!(!files.is_empty(), "a killed process leaves its file in the register");
    assert!(!is_live());
}

/// A folder with sessions of one prompt each, a second apart; the last is the newest.
fn made_up(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-p");
    fs::create_dir_all(&project).unwrap();
    for number in 0..count {
        let prompt = json!({
            "parentUuid": null, "type": "user", "uuid": format!("u{number}"), "cwd": "/nonexistent/p",
            "timestamp": "2026-02-09T10:00:00.000Z", "message": { "role": "user", "content": format!("Prompt {number}") },
        });
        write(&project, number, format!("{prompt}\n"));
    }
    folder
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn write(project: &Path, number: usize, text: impl AsRef<[u8]>) -> PathBuf {
    let path = project.join(format!("{}.jsonl", id(number)));
    fs::write(&path, text).unwrap();
    let at = SystemTime::now() - Duration::from_secs(10_000 - number as u64);
    fs::File::options().append(true).open(&path).unwrap().set_modified(at).unwrap();
    path
}

#[test]
fn no_damage_keeps_a_session_out_of_the_list() {
    let folder = made_up(1);
    let project = folder.path().join("projects/-p");
    let whole = fs::read_to_string(project.join(format!("{}.jsonl", id(0)))).unwrap();
    write(&project, 1, "");
    write(&project, 2, "\0\0\0\0");
    write(&project, 3, format!("{whole}{}", &whole[..40]));
    write(&project, 4, "{\"type\":\"mode\",\"mode\":\"normal\"}\n");
    let locked = write(&project, 5, &whole);
    fs::remove_file(&locked).unwrap();
    std::os::unix::fs::symlink(project.join("nowhere"), &locked).unwrap();
    fs::create_dir(project.join(format!("{}.jsonl", id(6)))).unwrap();
    fs::write(project.join("agent-1.jsonl"), &whole).unwrap();
    let sessions = list(folder.path());
    let health: Vec<_> = sessions.iter().map(|it| (it.session_id.clone(), it.health)).collect();
    let expected =
        [(4, Health::Sound), (3, Health::Torn), (2, Health::Garbage), (1, Health::Empty), (0, Health::Sound)];
    assert_eq!(health, expected.map(|(number, health)| (id(number), health)));
    assert_eq!(sessions[4].directory, Directory::Vanished);
    assert_eq!(sessions[4].project.as_deref(), Some(Path::new("/nonexistent/p")));
}

#[test]
fn an_index_changes_nothing_but_the_time_it_takes() {
    let folder = made_up(50);
    let index = folder.path().join("cache/index");
    let claude = ClaudeFolder::new(folder.path());
    let with = || claude.list(&ListOptions::default().index(&index)).unwrap().sessions;
    let project = folder.path().join("projects/-p");
    assert_eq!(with(), list(folder.path()));
    assert!(index.is_file());
    assert_eq!(with(), list(folder.path()));
    // One grows, one is replaced, one goes, one comes.
    let named = "{\"type\":\"custom-title\",\"customTitle\":\"A name\",\"sessionId\":\"x\"}\n";
    let grown = fs::read_to_string(project.join(format!("{}.jsonl", id(7)))).unwrap() + named;
    write(&project, 7, grown);
    write(&project, 8, "{\"type\":\"user\",\"uuid\":\"z\",\"message\":{\"content\":\"Another one\"}}\n");
    fs::remove_file(project.join(format!("{}.jsonl", id(9)))).unwrap();
    write(&project, 50, named);
    assert_eq!(with(), list(folder.path()));
    assert_eq!(one(&with(), &id(7)).name.as_deref(), Some("A name"));
    assert_eq!(one(&with(), &id(8)).first_prompt.as_deref(), Some("Another one"));
    let kept = fs::read(&index).unwrap();
    for at in 0..kept.len() {
        let mut damaged = kept.clone();
        damaged[at] ^= 1;
        fs::write(&index, damaged).unwrap();
        assert_eq!(with(), list(folder.path()), "byte {at} is another one");
    }
    for damage in [&b""[..], b"nonsense", &kept[..kept.len() / 2]] {
        fs::write(&index, damage).unwrap();
        assert_eq!(with(), list(folder.path()), "{damage:?}");
    }
}

/// A look at a file that has grown may need more of its beginning than the one before it.
#[test]
fn an_index_changes_no_name_when_a_session_goes_on_without_writing_it_again() {
    let folder = made_up(1);
    let index = folder.path().join("cache/index");
    let claude = ClaudeFolder::new(folder.path());
    let path = folder.path().join("projects/-p").join(format!("{}.jsonl", id(0)));
    let said = |version: &str| {
        let filler = "x".repeat(2000);
        format!(
            "{{\"parentUuid\":\"a\",\"type\":\"assistant\",\"version\":\"{version}\",\"gitBranch\":\"main\",\"message\":{{\"model\":\"claude\",\"content\":\"{filler}\"}}}}\n"
        )
    };
    let asked = "{\"type\":\"user\",\"uuid\":\"a\",\"cwd\":\"/a\",\"message\":{\"content\":\"hi\"}}\n";
    let named = "{\"type\":\"custom-title\",\"customTitle\":\"Mine\",\"sessionId\":\"x\"}\n";
    let again = "{\"type\":\"last-prompt\",\"lastPrompt\":\"hi\",\"sessionId\":\"x\"}\n";
    // At 12 KiB, beyond what the first look reads of the beginning.
    let new = said("2.1.325");
    let whole = [asked, &new.repeat(6), named, &new.repeat(90), again, named].concat();
    let mut seconds = 100;
    let mut list_both = |text: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        // Not so lately that nobody would remember it.
        seconds -= 10;
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(seconds)).unwrap();
        let with = claude.list(&ListOptions::default().index(&index)).unwrap().sessions;
        assert_eq!(with, list(folder.path()));
        with[0].name.clone()
    };
    fs::write(&path, "").unwrap();
    assert_eq!(list_both(&whole).as_deref(), Some("Mine"));
    assert_eq!(list_both(&said("2.0.0").repeat(40)).as_deref(), Some("Mine"));
}

#[test]
fn messages_are_counted_when_somebody_asks_for_it() {
    let folder = made_up(3);
    let index = folder.path().join("cache/index");
    let claude = ClaudeFolder::new(folder.path());
    let counts = || {
        let listing = claude.list(&ListOptions::default().index(&index)).unwrap();
        listing.sessions.iter().map(|session| session.message_count).collect::<Vec<_>>()
    };
    assert_eq!(counts(), [None; 3]);
    let mut patience = [true, true, false].into_iter();
    let counted = claude.count(&index, || patience.next().unwrap()).unwrap();
    assert_eq!((counted, counts()), (2, vec![Some(1), Some(1), None]));
    assert_eq!(claude.count(&index, || true).unwrap(), 1);
    assert_eq!(counts(), [Some(1); 3]);
}

#[test]
fn a_limit_gives_the_newest() {
    let folder = made_up(5);
    let newest = ClaudeFolder::new(folder.path()).list(&ListOptions::default().limit(2)).unwrap().sessions;
    assert_eq!(newest, list(folder.path())[..2]);
    assert_eq!(newest[0].session_id, id(4));
}

/// The time of a file is anybody's to set, and a clock may have been wrong.
#[test]
fn a_file_of_a_far_year_is_listed_like_any_other() {
    let folder = made_up(2);
    let path = folder.path().join("projects/-p").join(format!("{}.jsonl", id(0)));
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(12_000_000_000);
    fs::File::options().append(true).open(&path).unwrap().set_modified(far).unwrap();
    let options = ListOptions::default().index(folder.path().join("index"));
    let sessions = ClaudeFolder::new(folder.path()).list(&options).unwrap().sessions;
    assert_eq!(sessions.iter().map(|it| it.session_id.clone()).collect::<Vec<_>>(), [id(0), id(1)]);
}

/// An origin is known by a text that the file gives; it once was taken for a place in the list.
#[test]
fn a_fork_of_a_session_that_is_called_by_a_number_is_a_fork_of_nobody_here() {
    let folder = made_up(1);
    let project = folder.path().join("projects/-p");
    for (number, origin) in [(1, "0"), (2, "7000")] {
        let from = json!({ "sessionId": origin, "messageUuid": "u" });
        let entry = json!({ "parentUuid": null, "type": "user", "uuid": format!("v{number}"), "forkedFrom": from,
            "message": { "content": "Go on" } });
        write(&project, number, format!("{entry}\n"));
    }
    let sessions = list(folder.path());
    assert_eq!(one(&sessions, &id(1)).forked_from.as_deref(), Some("0"));
    assert_eq!(one(&sessions, &id(2)).forked_from.as_deref(), Some("7000"));
    assert!(sessions.iter().all(|session| session.forks.is_empty()), "{sessions:#?}");
}

/// A folder of a project that was copied has the same sessions once more.
#[test]
fn of_two_sessions_with_one_id_the_newer_is_meant() {
    let folder = made_up(1);
    let projects = folder.path().join("projects");
    let whole = fs::read(projects.join("-p").join(format!("{}.jsonl", id(0)))).unwrap();
    let names = ["-a", "-z", "-b", "-y", "-k"];
    names.iter().for_each(|name| fs::create_dir(projects.join(name)).unwrap());
    // Each of them once, because folders come in whatever order.
    for newest in names {
        for name in names {
            write(&projects.join(name), usize::from(name == newest), &whole);
            fs::rename(
                projects.join(name).join(format!("{}.jsonl", id(usize::from(name == newest)))),
                projects.join(name).join(format!("{}.jsonl", id(0))),
            )
            .unwrap();
        }
        let found = ClaudeFolder::new(folder.path()).find(&id(0)).unwrap();
        assert_eq!(found, projects.join(newest).join(format!("{}.jsonl", id(0))));
        assert_eq!(found, list(folder.path())[0].path);
    }
}

/// Claude Code writes where it worked behind what it was asked, and a first prompt may be a whole log, or an image.
#[test]
fn a_first_prompt_of_any_length_is_no_reason_not_to_know_where_a_session_worked() {
    let folder = made_up(0);
    let project = folder.path().join("projects/-p");
    let image = json!({ "type": "image", "source": { "type": "base64", "data": "A".repeat(700_000) } });
    let contents = [
        json!("x".repeat(100_000)),
        json!("x".repeat(1_000_000)),
        json!([image, { "type": "text", "text": "What is this?" }]),
    ];
    for (number, content) in contents.iter().enumerate() {
        let prompt = json!({
            "parentUuid": null, "type": "user", "message": { "role": "user", "content": content }, "uuid": "u",
            "timestamp": "2026-02-09T10:00:00.000Z", "cwd": "/nonexistent/p", "version": "2.1.325",
        });
        let answer =
            json!({ "parentUuid": "u", "type": "assistant", "uuid": "v", "message": { "content": [] } });
        write(&project, number, format!("{prompt}\n{}", format!("{answer}\n").repeat(2000)));
    }
    let sessions = list(folder.path());
    for session in &sessions {
        assert_eq!(session.cwd.as_deref(), Some(Path::new("/nonexistent/p")), "{}", session.session_id);
        assert!(session.created_at.is_some(), "{}", session.session_id);
    }
    let asked = |number: usize| one(&sessions, &id(number)).first_prompt.clone().unwrap();
    assert!(asked(0).starts_with("xxx") && asked(1).starts_with("xxx"));
    assert_eq!(asked(2), "What is this?");
}
