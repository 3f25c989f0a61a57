//! The watcher against a model: whatever happens to files, each entry comes once, in order.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rethread_transcripts::{Change, ClaudeFolder, Event, From, Means, Watch};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a subscriber knows, by its own files.
#[derive(Default)]
struct Subscriber {
    files: HashMap<PathBuf, Vec<String>>,
    /// How often each file began anew or went.
    undone: HashMap<PathBuf, usize>,
    /// The files that were told of since it last knew what there is: thousands are not compared for each change of one.
    changed: HashSet<PathBuf>,
}

impl Subscriber {
    fn take(&mut self, change: Change) {
        self.changed.insert(change.path.clone());
        match change.event {
            Event::Added { raw, .. } => {
                self.files.entry(change.path).or_default().push(String::from_utf8(raw).unwrap())
            }
            Event::Restarted => {
                *self.undone.entry(change.path.clone()).or_default() += 1;
                self.files.insert(change.path, Vec::new());
            }
            Event::Removed => {
                *self.undone.entry(change.path.clone()).or_default() += 1;
                self.files.remove(&change.path);
            }
        }
    }

    /// Waits until what it knows is what there is.
    fn wait_for(&mut self, changes: &Receiver<Change>, expected: &HashMap<PathBuf, Vec<String>>) {
        self.changed.extend(expected.keys().chain(self.files.keys()).cloned());
        self.wait_for_changed(changes, expected);
    }

    /// Waits until it knows what there is in those files that changed since it last did.
    fn wait_for_changed(&mut self, changes: &Receiver<Change>, expected: &HashMap<PathBuf, Vec<String>>) {
        let begun = Instant::now();
        loop {
            while let Ok(change) = changes.try_recv() {
                self.take(change);
            }
            let files = &self.files;
            // A file without entries is as good as none.
            let known = |path: &PathBuf| files.get(path).filter(|lines| !lines.is_empty());
            let there = |path: &PathBuf| expected.get(path).filter(|lines| !lines.is_empty());
            self.changed.retain(|path| known(path) != there(path));
            if self.changed.is_empty() {
                return;
            }
            match changes.recv_timeout(Duration::from_millis(50)) {
                Ok(change) => self.take(change),
                Err(RecvTimeoutError::Timeout) => {
                    let wrong = self.changed.iter().map(|path| (path, files.get(path), expected.get(path)));
                    let wrong: Vec<_> = wrong.take(3).collect();
                    assert!(begun.elapsed() < PATIENCE, "file, known and there: {wrong:#?}");
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the watch ended"),
            }
        }
    }
}

fn line(rng: &mut Rng) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{:x}\",\"text\":\"{}\"}}",
        rng.u64(..),
        "x".repeat(rng.usize(..300))
    )
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Does anything at all to files of so many names in six folders, so many things at once, and keeps book of what is in
/// them. Returns how many there were in the end.
fn play(seed: u64, names: usize, at_once: usize, means: Means) -> usize {
    let mut rng = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let projects = folder.path().join("projects");
    fs::create_dir_all(projects.join("-a")).unwrap();
    let (send, changes) = channel();
    let take = move |change| drop(send.send(change));
    let watch = Watch::all(&ClaudeFolder::new(folder.path()), From::Beginning, means, take).unwrap();
    let mut subscriber = Subscriber::default();
    let mut model: HashMap<PathBuf, Vec<String>> = HashMap::new();
    let mut half: HashMap<PathBuf, String> = HashMap::new();
    let mut undone: HashMap<PathBuf, usize> = HashMap::new();
    for step in 0..20 * names {
        let project = projects.join(["-a", "-b", "-c"][rng.usize(..3)]);
        let place = if rng.u8(..4) == 0 { project.join("s1/subagents") } else { project };
        fs::create_dir_all(&place).unwrap();
        let path = place.join(format!("{}.jsonl", rng.usize(..names)));
        subscriber.changed.insert(path.clone());
        match rng.u8(..10) {
            0..=5 => {
                let lines: Vec<String> = (0..rng.usize(1..4)).map(|_| line(&mut rng)).collect();
                let rest = half.remove(&path);
                // Whoever appends after a torn line begins with a newline.
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                append(&path, &(if rest.is_some() { "\n" } else { "" }.to_owned() + &text));
                model.entry(path).or_default().extend(lines);
            }
            6 if !half.contains_key(&path) => {
                let torn = "{\"type\":\"user\",\"uu".to_owned();
                append(&path, &torn);
                model.entry(path.clone()).or_default();
                half.insert(path, torn);
            }
            7 if path.is_file() => {
                fs::remove_file(&path).unwrap();
                *undone.entry(path.clone()).or_default() += 1;
                model.remove(&path);
                half.remove(&path);
            }
            8 if path.is_file() => {
                // A file that is cut and grows again at once may be longer than before.
                let lines: Vec<String> = (0..rng.usize(1..9)).map(|_| line(&mut rng)).collect();
                fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
                *undone.entry(path.clone()).or_default() += 1;
                model.insert(path.clone(), lines);
                half.remove(&path);
            }
            _ if path.is_file() => {
                let aside = path.with_extension("tmp");
                let new = line(&mut rng);
                fs::write(&aside, format!("{new}\n")).unwrap();
                fs::rename(&aside, &path).unwrap();
                *undone.entry(path.clone()).or_default() += 1;
                model.insert(path.clone(), vec![new]);
                half.remove(&path);
            }
            _ => {}
        }
        if step % at_once == 0 {
            subscriber.wait_for_changed(&changes, &model);
        }
    }
    subscriber.wait_for(&changes, &model);
    drop(watch);
    assert!(changes.try_recv().is_err(), "nothing comes after the end, and nothing twice");
    for (path, times) in subscriber.undone {
        // Whoever begins a file anew without need delivers all of it twice.
        assert!(
            times <= undone.get(&path).copied().unwrap_or(0),
            "{} began anew for nothing",
            path.display()
        );
    }
    model.len()
}

const LOOKING: Means = Means::Looking { every: Duration::from_millis(5) };

#[test]
fn whatever_happens_to_files_each_entry_comes_once_and_in_order() {
    for seed in 0..8 {
        play(seed, 3, 7, Means::Best);
    }
}

#[test]
fn looking_every_so_often_finds_the_same() {
    for seed in 100..104 {
        play(seed, 3, 7, LOOKING);
    }
}

/// One after the other: two would take each other's time.
#[test]
fn of_thousands_of_files_each_entry_comes_once_and_in_order() {
    for (seed, at_once, means) in [(8, 7, Means::Best), (9, 5000, Means::Best), (104, 500, LOOKING)] {
        let files = play(seed, 500, at_once, means);
        assert!(files >= 2000, "only {files} files were there at once");
    }
}

/// The kernel keeps some thousand notices and drops the rest, with one last notice that it did.
#[test]
fn lost_notices_lose_no_entry() {
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap_or_default();
    let kept: usize = kept.trim().parse().unwrap_or(16_384);
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-a");
    fs::create_dir_all(&project).unwrap();
    let (send, changes) = channel();
    let (gate, closed) = channel::<()>();
    let take = move |change| {
        // Until the gate is open, nobody reads notices.
        let _ = closed.recv();
        drop(send.send(change));
    };
    let _watch = Watch::all(&ClaudeFolder::new(folder.path()), From::Now, Means::Best, take).unwrap();
    let paths = [project.join("a.jsonl"), project.join("b.jsonl")];
    let mut model: HashMap<PathBuf, Vec<String>> = HashMap::new();
    // By turns, because the kernel keeps equal notices in a row as one.
    for number in 0..kept + 100 {
        let line = format!("{{\"uuid\":\"{number}\"}}");
        append(&paths[number % 2], &format!("{line}\n"));
        model.entry(paths[number % 2].clone()).or_default().push(line);
    }
    drop(gate);
    Subscriber::default().wait_for(&changes, &model);
}

/// All entries of a session end alike, so that the end of the last one said nothing about which it was.
#[test]
fn a_file_that_is_written_over_without_a_change_of_length_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let entry = |number: u32| format!("{{\"uuid\":\"{number}\",\"cwd\":\"/{}\"}}", "x".repeat(150));
    append(&path, &format!("{}\n", entry(1)));
    let (send, changes) = channel();
    let take = move |change| drop(send.send(change));
    let _watch = Watch::one(&path, From::Beginning, Means::Best, take).unwrap();
    let mut subscriber = Subscriber::default();
    subscriber.wait_for(&changes, &HashMap::from([(path.clone(), vec![entry(1)])]));
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(format!("{}\n", entry(2)).as_bytes()).unwrap();
    subscriber.wait_for(&changes, &HashMap::from([(path, vec![entry(2)])]));
}

#[test]
fn one_session_is_followed_from_where_a_reader_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    append(&path, "{\"n\":1}\n{\"n\":2}\n{\"n\"");
    let (send, changes) = channel();
    let _watch =
        Watch::one(&path, From::Offset(8), Means::Best, move |change| drop(send.send(change))).unwrap();
    append(&folder.path().join("other.jsonl"), "{\"n\":9}\n");
    append(&path, ":3}\n");
    let next = || match changes.recv_timeout(PATIENCE).unwrap().event {
        Event::Added { span, raw } => (span.offset, String::from_utf8(raw).unwrap()),
        event => panic!("{event:?}"),
    };
    assert_eq!([next(), next()], [(8, "{\"n\":2}".into()), (16, "{\"n\":3}".into())]);
}

/// Runs a test of this binary again, in a namespace with limits of its own; `None` where there is no such thing.
fn within_limits(limit: &str, test: &str) -> Option<std::process::Output> {
    let own = std::env::current_exe().unwrap();
    let script = format!("echo {limit} && exec \"$0\" --exact {test} --nocapture");
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", &script]).arg(own).env("RETHREAD_LIMITED", "1");
    let output = command.output().ok()?;
    let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
    (!refused).then_some(output)
}

fn is_limited() -> bool {
    std::env::var_os("RETHREAD_LIMITED").is_some()
}

/// They have no crate in common that it would belong in.
#[test]
fn what_is_a_network_file_system_is_the_same_for_transcripts_and_for_sqlite() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of = |name: &str| fs::read_to_string(crates.join(name).join("src/shared_file_system.rs")).unwrap();
    assert_eq!(of("transcripts"), of("backends/sqlite"));
}

/// The kernel has so many watches for each user, and other programs need some as well.
#[test]
fn folders_that_cannot_be_watched_any_more_are_looked_at() {
    if is_limited() {
        play(7, 3, 7, Means::Best);
        return;
    }
    let test = "watch::folders_that_cannot_be_watched_any_more_are_looked_at";
    for limit in [
        "2 > /proc/sys/user/max_inotify_watches",
        "0 > /proc/sys/user/max_inotify_watches",
        "0 > /proc/sys/user/max_inotify_instances",
    ] {
        let Some(output) = within_limits(limit, test) else {
            return rethread_testkit::not_in_this_version(
                "there are no namespaces with limits of their own here",
            );
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("1 passed"), "{limit}: {told}");
    }
}

/// A watch that the system keeps is of a folder, whatever that is called later.
#[test]
fn a_folder_that_takes_the_place_of_another_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let projects = folder.path().join("projects");
    let path = projects.join("-a/s.jsonl");
    let mut model: HashMap<PathBuf, Vec<String>> = HashMap::new();
    fs::create_dir_all(projects.join("-a")).unwrap();
    let (send, changes) = channel();
    let take = move |change| drop(send.send(change));
    let _watch = Watch::all(&ClaudeFolder::new(folder.path()), From::Now, Means::Best, take).unwrap();
    let mut subscriber = Subscriber::default();
    for (number, moved) in ["projects/-a", "projects", "projects/-a"].into_iter().enumerate() {
        let place = folder.path().join(moved);
        // Away and back again at once, and away for good with another in its place.
        let aside = folder.path().join(format!("aside-{number}"));
        fs::rename(&place, &aside).unwrap();
        fs::rename(&aside, &place).unwrap();
        fs::rename(&place, &aside).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        model.clear();
        for line in 0..3 {
            let line = format!("{{\"uuid\":\"{number}-{line}\"}}");
            append(&path, &format!("{line}\n"));
            model.entry(path.clone()).or_default().push(line);
            subscriber.wait_for(&changes, &model);
        }
    }
}

/// A folder gives no notice when one above it is renamed, nor when a link to it leads elsewhere.
#[test]
fn what_leads_to_the_folder_may_be_renamed_deleted_or_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (home, real) = (folder.path().join("home"), folder.path().join("real"));
    let path = home.join("linked/claude/projects/-a/s.jsonl");
    let make =
        |place: &str| fs::create_dir_all(folder.path().join(place).join("claude/projects/-a")).unwrap();
    let link = |to: &str| std::os::unix::fs::symlink(folder.path().join(to), home.join("linked")).unwrap();
    let aside = |name: &str| folder.path().join(name);
    fs::create_dir(&home).unwrap();
    make("real/one");
    link("real/one");
    let (send, changes) = channel();
    let take = move |change| drop(send.send(change));
    let claude = ClaudeFolder::new(home.join("linked/claude"));
    let _watch = Watch::all(&claude, From::Now, Means::Best, take).unwrap();
    let mut subscriber = Subscriber::default();
    let another_link = || {
        make("other");
        fs::remove_file(home.join("linked")).unwrap();
        link("other");
    };
    let renamed_link = || {
        fs::rename(home.join("linked"), aside("link")).unwrap();
        make("home/linked");
    };
    let renamed_target = || {
        fs::rename(&real, aside("real-before")).unwrap();
        make("real/one");
    };
    let renamed_above = || {
        fs::rename(&home, aside("home-before")).unwrap();
        make("home/linked");
    };
    let deleted = || {
        fs::remove_dir_all(home.join("linked/claude")).unwrap();
        make("home/linked");
    };
    let changes_above: [&dyn Fn(); 5] =
        [&renamed_target, &another_link, &renamed_link, &renamed_above, &deleted];
    for (number, change) in changes_above.into_iter().enumerate() {
        change();
        let mut model: HashMap<PathBuf, Vec<String>> = HashMap::new();
        for line in 0..3 {
            let line = format!("{{\"uuid\":\"{number}-{line}\"}}");
            append(&path, &format!("{line}\n"));
            model.entry(path.clone()).or_default().push(line);
            subscriber.wait_for(&changes, &model);
        }
    }
}

/// What happens to a file gives no notice where only a link to it is.
#[test]
fn one_session_is_followed_through_links_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (real, linked) = (folder.path().join("real"), folder.path().join("linked"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &linked).unwrap();
    std::os::unix::fs::symlink(real.join("s.jsonl"), folder.path().join("s.jsonl")).unwrap();
    for path in [linked.join("s.jsonl"), folder.path().join("s.jsonl")] {
        fs::write(real.join("s.jsonl"), "").unwrap();
        let (send, changes) = channel();
        let take = move |change| drop(send.send(change));
        let _watch = Watch::one(&path, From::Now, Means::Best, take).unwrap();
        append(&real.join("s.jsonl"), "{\"n\":1}\n");
        let model = HashMap::from([(path, vec!["{\"n\":1}".to_owned()])]);
        Subscriber::default().wait_for(&changes, &model);
    }
}

/// To open a pipe that nobody writes to is to wait for ever.
#[test]
fn a_pipe_among_transcripts_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-a");
    fs::create_dir_all(&project).unwrap();
    let made = std::process::Command::new("mkfifo").arg(project.join("pipe.jsonl")).status();
    if !made.is_ok_and(|status| status.success()) {
        return rethread_testkit::cannot("there is no mkfifo");
    }
    let (send, changes) = channel();
    let claude = ClaudeFolder::new(folder.path());
    // On a thread of its own, so that a wait for ever is a failure and no silence.
    let (began, begun) = channel();
    std::thread::spawn(move || {
        let take = move |change| drop(send.send(change));
        drop(began.send(Watch::all(&claude, From::Beginning, Means::Best, take)));
    });
    let _watch = begun.recv_timeout(PATIENCE).unwrap().unwrap();
    append(&project.join("s.jsonl"), "{\"n\":1}\n");
    let model = HashMap::from([(project.join("s.jsonl"), vec!["{\"n\":1}".to_owned()])]);
    Subscriber::default().wait_for(&changes, &model);
}

/// A process that says it is at work on a session.
fn at_work(config: &Path, session: &str) -> std::process::Child {
    let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let text = format!(r#"{{"pid":{},"sessionId":"{session}","status":"busy"}}"#, child.id());
    fs::create_dir_all(config.join("sessions")).unwrap();
    fs::write(config.join("sessions").join(format!("{}.json", child.id())), text).unwrap();
    child
}

#[test]
fn processes_are_seen_as_they_come_are_killed_and_go_and_nobody_looks_while_there_are_none() {
    let home = tempfile::tempdir().unwrap();
    let (send, told) = channel();
    let watch = Watch::live(&ClaudeFolder::new(home.path()), move |live| drop(send.send(live))).unwrap();
    let sessions = |patience| match told.recv_timeout(patience) {
        Ok(live) => Some(live.into_iter().map(|live| live.session).collect::<Vec<_>>()),
        Err(_) => None,
    };
    let until = |expected: &[&str]| {
        let begun = Instant::now();
        while sessions(PATIENCE).unwrap() != expected {
            assert!(begun.elapsed() < PATIENCE, "never {expected:?}");
        }
    };
    until(&[]);
    // What happens beside the register is nobody's business.
    fs::write(home.path().join(".claude.json"), "{}").unwrap();
    assert_eq!(sessions(Duration::from_millis(2500)), None, "nothing is at work");
    let mut first = at_work(home.path(), "one");
    until(&["one"]);
    first.kill().unwrap();
    first.wait().unwrap();
    until(&[]);
    fs::remove_dir_all(home.path().join("sessions")).unwrap();
    let mut second = at_work(home.path(), "two");
    until(&["two"]);
    fs::remove_dir_all(home.path().join("sessions")).unwrap();
    until(&[]);
    second.kill().unwrap();
    second.wait().unwrap();
    drop(watch);
}
