//! Many keepers on one store: each on a machine of its own, with files of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what a keeper of a failed test says, and how to repeat it")]

mod machine;
mod watcher;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rethread_keeper::{Attention, AttentionState, Error};
use rethread_testkit::{Home as RealHome, PROBE, Postgres, Prompt, S3, cannot};
use rustix::process::Signal;
use serde_json::{Value, json};

use self::machine::{LogIfFailed, Machine, Place, agent};
use self::watcher::{Ears, Watcher, listed, requests};
use crate::kit::until;

fn refusal<T: std::fmt::Debug>(answer: rethread_keeper::Result<T>) -> String {
    match answer {
        Err(Error::Refused(problem)) => problem.code.to_string(),
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_session_is_seen_approved_and_gone_on_with_through_any_keeper_of_the_store() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    goes_on_through_any_keeper(&Place::postgres(postgres));
}

#[test]
fn a_session_in_an_encrypted_database_goes_on_through_any_keeper_that_has_the_key() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let folder = tempfile::tempdir().unwrap();
    goes_on_through_any_keeper(&Place::postgres(postgres).encrypted(folder.path()));
}

#[test]
fn a_session_in_s3_goes_on_through_any_keeper_although_nobody_gives_hints() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    goes_on_through_any_keeper(&Place::s3(server));
}

/// A session is begun through one keeper, approved through another, and goes on there when the first one dies.
fn goes_on_through_any_keeper(place: &Place) {
    let (Some(here), Some(there)) = (RealHome::new(), RealHome::new()) else {
        return cannot("Claude Code cannot be installed");
    };
    let (one, other) = (Machine::real(&here, place), Machine::real(&there, place));
    one.start();
    other.start();
    let project = here.project().canonicalize().unwrap();
    let file = project.join("made.txt");
    let make = Prompt::new("Make it.").calls("Write", json!({ "file_path": file, "content": "made\n" }));
    let id = one.begin(&project, &make.says("It is made.").to_string());

    // Seen there while it waits, and decided there.
    let request = until("the other keeper shows the request", || {
        other.requests().into_iter().find(|it| it.state == AttentionState::Pending)
    });
    assert_eq!((request.shown.session_id.as_str(), request.shown.tool_name.as_str()), (id.as_str(), "Write"));
    until("and the session that waits", || (other.state(&id)? == "waiting").then_some(()));
    assert!(!file.try_exists().unwrap());
    let forged = Attention { digest: "0".repeat(64), ..request.clone() };
    assert_eq!(refusal(other.decide(&forged, "allow")), "not-what-was-shown");
    let decided = other.decide(&request, "allow").unwrap();
    assert_eq!(decided["state"], "allowed");
    assert!(decided["decided_by"].as_str().unwrap().contains(" at "), "{decided}");
    assert_eq!(refusal(one.decide(&request, "deny")), "already-decided");
    assert_eq!(refusal(other.decide(&request, "deny")), "already-decided");
    until("it is made", || fs::read_to_string(&file).ok().filter(|text| text == "made\n"));
    until("the turn ends", || (one.state(&id)? == "idle").then_some(()));
    until("both show the same", || {
        let said = one.said(&id);
        (said.len() >= 4 && said == other.said(&id)).then_some(())
    });
    let listed = other.get("/sessions").unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["items"][0]["home"], "stored");
    assert_eq!(one.get("/sessions").unwrap()["items"].as_array().unwrap().len(), 1);

    // As long as it is driven here it is not driven there. When its keeper dies it is, with all that was said.
    assert_eq!(refusal(other.send(&id, "x")), "held");
    let card = other.get(&format!("/sessions/{id}")).unwrap();
    assert!(card["state"] == "elsewhere" && card["driver_host"].is_string(), "{card}");
    one.kill();
    until("the other keeper knows that it is free", || (other.state(&id)? == "idle").then_some(()));
    other.send(&id, &Prompt::new("Go on.").says("I went on.").to_string()).unwrap();
    until("the turn ends there", || (other.state(&id)? == "idle").then_some(()));
    let said = other.said(&id);
    assert!(said.len() >= 6, "{said:?}");
    let sent = serde_json::to_string(&there.claude().messages_on_resume(&id, PROBE)).unwrap();
    for part in ["Make it.", "It is made.", "I went on."] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }

    // And back, where the transcript is behind by now.
    one.start();
    other
        .ask(async |client| {
            client.post::<Value>(&format!("/sessions/{id}/lease"), &json!({ "action": "release" })).await
        })
        .unwrap();
    until("it goes on where it was begun", || {
        one.send(&id, &Prompt::new("Back.").says("I am back.").to_string()).ok()
    });
    until("the turn ends here", || (one.state(&id)? == "idle").then_some(()));
    let back = one.said(&id);
    assert!(back.starts_with(&said) && back.len() >= said.len() + 2, "{said:?} {back:?}");
    assert_eq!(back.iter().collect::<HashSet<_>>().len(), back.len());
    until("and is seen there", || (other.said(&id) == back).then_some(()));
}

#[test]
fn whoever_takes_over_from_a_keeper_that_lives_waits_until_the_agent_there_has_ended() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &place);
    let id = one.begin(&project(&folder, 0), "Begin.");
    // In the middle of a turn, which waits for somebody.
    let asked = until("somebody is asked", || other.requests().into_iter().next());
    let taken = other.post(&format!("/sessions/{id}/lease"), &json!({ "action": "take_over" })).unwrap();
    assert_eq!(taken["ours"], true);
    other.send(&id, "Go on.").unwrap();
    assert_eq!(fs::read_to_string(folder.join("driven-twice")).unwrap_or_default(), "");
    let again = until("it asks again there", || {
        other.requests().into_iter().find(|it| it.state == AttentionState::Pending)
    });
    assert_ne!(again.shown.id, asked.shown.id);
    until("what was asked before is over", || {
        let is_over = |it: &Attention| it.shown.id == asked.shown.id && it.state != AttentionState::Pending;
        one.requests().iter().any(is_over).then_some(())
    });
    // And the former driver shows it, and can decide what the new one asks.
    until("it is driven elsewhere", || (one.state(&id)? == "waiting").then_some(()));
    let again = until("it is seen where it was", || {
        one.requests().into_iter().find(|it| it.shown.id == again.shown.id)
    });
    assert_eq!(one.decide(&again, "deny").unwrap()["state"], "denied");
    assert_eq!(fs::read_to_string(folder.join("driven-twice")).unwrap_or_default(), "");
}

#[test]
fn a_keeper_that_began_while_another_drove_sees_it_die() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &place);
    let id = one.begin(&project(&folder, 0), "Begin.");
    until("it is seen there", || (other.state(&id)? == "waiting").then_some(()));
    other.kill();
    other.start();
    // By the list alone: whoever asks for the session has it looked at.
    let listed = || listed(&other)?.into_values().next();
    until("it is listed", || (listed()?["state"] == "waiting").then_some(()));
    until("and what it asks", || other.requests().into_iter().find(|it| it.state == AttentionState::Pending));
    one.kill();
    let card = until("it is free", || listed().filter(|card| card["state"] == "idle"));
    assert_eq!(card["driver_host"], Value::Null, "{card}");
    until("and nobody is asked", || {
        let is_over = other.requests().iter().all(|it| it.state == AttentionState::Lost);
        is_over.then_some(())
    });
}

#[test]
fn that_a_request_was_lost_is_told_once_although_whoever_tells_it_takes_the_session_over() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &Place::postgres(postgres));
    let begun = other.get("/events?topics=all").unwrap()["after"].as_str().unwrap().to_owned();
    let id = one.begin(&project(&folder, 0), "Begin.");
    until("it is asked there", || (other.state(&id)? == "waiting").then_some(()));
    one.kill();
    let is_lost = |machine: &Machine| machine.requests().iter().any(|it| it.state == AttentionState::Lost);
    until("it is lost", || is_lost(&other).then_some(()));
    until("it goes on there", || other.send(&id, "Go on.").ok());
    until("it is asked again", || (other.state(&id)? == "waiting").then_some(()));
    let told = other.get(&format!("/events?topics=all&after={begun}")).unwrap();
    let told = told["items"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap());
    let kinds: Vec<&str> = told.collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "attention.lost").count(), 1, "{kinds:?}");
}

#[test]
fn what_only_a_transcript_here_has_is_taken_back_from_clients_once_somebody_goes_on_elsewhere() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &Place::postgres(postgres));
    let mut watchers = [Ears::LongPoll, Ears::WebSocket].map(Watcher::new);
    let id = one.begin(&project(&folder, 0), "Begin.");
    let deny_all = |machine: &Machine| {
        for attention in machine.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            drop(machine.decide(attention, "deny"));
        }
    };
    until("the turn ends", || {
        deny_all(&one);
        (one.state(&id)? == "idle").then_some(())
    });
    let said = until("both show the same", || {
        let said = one.said(&id);
        (said.len() >= 2 && said == other.said(&id)).then_some(said)
    });
    one.post(&format!("/sessions/{id}/lease"), &json!({ "action": "release" })).unwrap();

    // Somebody goes on in a terminal, which tells the store nothing.
    let alone = "0198f2c4-0000-7000-8000-00000000a10e";
    one.write(&id, alone, said.last().unwrap());
    for watcher in &mut watchers {
        until("it is told here", || {
            watcher.look(&one);
            watcher.said.get(&id)?.contains(&alone.to_owned()).then_some(())
        });
    }
    until("and shown here", || (one.said(&id).last()? == alone).then_some(()));
    until("somebody goes on there", || other.send(&id, "Go on.").ok());
    until("the turn ends there", || {
        deny_all(&other);
        (other.state(&id)? == "idle").then_some(())
    });
    let said = until("both show what was said there", || {
        let said = other.said(&id);
        (said.len() > 2 && said == one.said(&id)).then_some(said)
    });
    assert!(!said.contains(&alone.to_owned()));
    for watcher in &mut watchers {
        until("whoever was here all the time knows the same", || {
            watcher.look(&one);
            let known: HashSet<_> = watcher.said.get(&id)?.iter().collect();
            (known == said.iter().collect()).then_some(())
        });
        let doubled: Vec<_> = watcher.told.iter().filter(|(_, times)| **times > 1).collect();
        assert!(doubled.is_empty(), "told twice: {doubled:?}");
    }
}

#[test]
fn a_request_is_decided_once_through_a_third_keeper_and_everybody_hears_of_it() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other, third] = machines(&folder, &place, ["one", "other", "third"]);
    let mut watchers = [&one, &other, &third].map(|machine| (Watcher::new(Ears::WebSocket), machine));
    let id = one.begin(&project(&folder, 0), "Begin.");
    let asked = until("the third one shows it", || third.requests().into_iter().next());
    until("and so does the other", || other.requests().into_iter().find(|it| it.shown == asked.shown));
    assert_eq!(third.decide(&asked, "deny").unwrap()["state"], "denied");
    for machine in [&one, &other, &third] {
        assert_eq!(refusal(machine.decide(&asked, "allow")), "already-decided", "{}", machine.home.display());
    }
    for (watcher, machine) in &mut watchers {
        until("everybody hears of it", || {
            watcher.look(machine);
            (watcher.requests.get(&asked.shown.id)? == "denied").then_some(())
        });
    }
    let by = one.requests().into_iter().find(|it| it.shown.id == asked.shown.id).unwrap().decided_by.unwrap();
    assert!(by.contains(" at "), "{by}");
    until("the turn goes on here", || {
        let next = third.requests().into_iter().find(|it| it.state == AttentionState::Pending);
        let next = next.map(|next| third.decide(&next, "deny"));
        (next.is_none() && one.state(&id)? == "idle").then_some(())
    });
    until("all show the same", || {
        let said = [&one, &other, &third].map(|machine| machine.said(&id));
        (said[0].len() >= 4 && said.iter().all(|it| *it == said[0])).then_some(())
    });
}

#[test]
fn a_keeper_that_froze_on_another_host_is_followed_once_its_lease_lapsed_and_does_nothing_when_it_thaws() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    frozen_on_another_host(&Place::postgres(postgres));
}

#[test]
fn a_keeper_that_froze_on_another_host_does_nothing_to_what_is_in_s3_when_it_thaws() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    frozen_on_another_host(&Place::s3(server));
}

fn frozen_on_another_host(place: &Place) {
    let apart = Command::new("unshare").args(["--uts", "hostname", "elsewhere"]).output();
    if !apart.is_ok_and(|ended| ended.status.success()) {
        return cannot("no other host can be made up here: that needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let home = folder.join(name);
        fs::create_dir_all(&home).unwrap();
        Machine::new(&home, home.join("claude"), agent(&home), place)
    });
    one.start_on("elsewhere");
    other.start();
    let project = project(&folder, 0);
    let id = one.begin(&project, "Begin.");
    let asked = until("somebody is asked", || other.requests().into_iter().next());
    let before = contents(&project);
    one.signal(Signal::STOP);
    let frozen = Instant::now();

    // It may be alive: nobody drives in its place, and nobody decides.
    assert_eq!(refusal(other.send(&id, "Go on.")), "held");
    let undecided = other.decide(&asked, "allow");
    assert!(undecided.is_err(), "{undecided:?}");
    let lease = format!("/sessions/{id}/lease");
    until("its lease lapses", || other.post(&lease, &json!({ "action": "acquire" })).ok());
    assert!(frozen.elapsed() > Duration::from_secs(20), "after {:?}", frozen.elapsed());

    // It thaws with a decision before it that counted a moment ago.
    one.signal(Signal::CONT);
    until("it knows that it drives no more", || {
        let is_over = |it: &Attention| it.shown.id == asked.shown.id && it.state != AttentionState::Pending;
        one.requests().iter().any(is_over).then_some(())
    });
    assert!(one.decide(&asked, "allow").is_err());
    assert_eq!(contents(&project), before);
    until("it goes on there", || other.send(&id, "Go on.").ok());
    until("it asks there", || {
        let is_new = |it: &Attention| it.state == AttentionState::Pending && it.shown.id != asked.shown.id;
        other.requests().into_iter().find(is_new)
    });
    until("everything comes to an end there", || {
        for attention in other.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            drop(other.decide(attention, "deny"));
        }
        (other.state(&id)? == "idle").then_some(())
    });
    let said = until("both show the same", || {
        let said = other.said(&id);
        (one.said(&id) == said).then_some(said)
    });
    assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len(), "{said:?}");
    // What was allowed while it was frozen, and denied where it was asked again, was not done.
    assert_eq!(contents(&project), before);
}

#[test]
fn a_keeper_that_froze_beside_another_is_followed_once_its_lease_lapsed_and_does_nothing_when_it_thaws() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::thread::scope(|scope| {
        for kept in ["file", "sqlite"] {
            let folder = folder.join(kept);
            scope.spawn(move || {
                frozen_beside(&folder, &Place::at(format!("{kept}:{}/kept", folder.display())))
            });
        }
    });
}

/// Two keepers of one machine, which have its transcripts in common: nobody tells one what the other is asked.
fn frozen_beside(folder: &Path, place: &Place) {
    let [one, other] = ["one", "other"].map(|name| {
        let home = folder.join(name);
        fs::create_dir_all(&home).unwrap();
        let machine = Machine::new(&home, folder.join("claude"), agent(&home), place);
        machine.start();
        machine
    });
    let project = project(folder, 0);
    let id = one.begin(&project, "Begin.");
    let asked = until("somebody is asked", || one.requests().into_iter().next());
    let before = contents(&project);
    one.signal(Signal::STOP);
    let frozen = Instant::now();
    assert_eq!(refusal(other.send(&id, "Go on.")), "held");
    let lease = format!("/sessions/{id}/lease");
    until("its lease lapses", || other.post(&lease, &json!({ "action": "acquire" })).ok());
    assert!(frozen.elapsed() > Duration::from_secs(20), "after {:?}", frozen.elapsed());

    // It thaws, and is told at once to do what it had asked for.
    one.signal(Signal::CONT);
    let allowed = one.decide(&asked, "allow");
    assert!(allowed.is_err(), "{allowed:?}");
    until("it knows that it drives no more", || {
        let is_over = |it: &Attention| it.shown.id == asked.shown.id && it.state != AttentionState::Pending;
        one.requests().iter().any(is_over).then_some(())
    });
    assert_eq!(contents(&project), before);
    until("it goes on there", || other.send(&id, "Go on.").ok());
    let mut denied = 0;
    until("everything comes to an end there", || {
        for attention in other.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            denied += usize::from(other.decide(attention, "deny").is_ok());
        }
        (denied > 0 && other.state(&id)? == "idle").then_some(())
    });
    let said = until("both show the same", || {
        let said = other.said(&id);
        (one.said(&id) == said).then_some(said)
    });
    assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len(), "{said:?}");
    assert_eq!(contents(&project), before);
}

/// Returns the files of a folder, and what they hold.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Two machines with such an agent, and a keeper on each.
fn two_machines(folder: &Path, place: &Place) -> [Machine; 2] {
    machines(folder, place, ["one", "other"])
}

fn machines<const N: usize>(folder: &Path, place: &Place, names: [&str; N]) -> [Machine; N] {
    let agent = agent(folder);
    names.map(|name| {
        let home = folder.join(name);
        fs::create_dir_all(&home).unwrap();
        let machine = Machine::new(&home, home.join("claude"), agent.clone(), place);
        machine.start();
        machine
    })
}

/// A directory that is on both.
fn project(folder: &Path, number: usize) -> PathBuf {
    let project = folder.join(format!("project-{number}"));
    fs::create_dir_all(&project).unwrap();
    project
}

#[test]
fn keepers_that_die_at_any_moment_lose_nothing_double_nothing_and_never_drive_a_session_twice() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    die_at_any_moment(["one", "other"], 20, Duration::from_secs(30), &Place::postgres(postgres));
}

#[test]
fn three_keepers_that_die_at_any_moment_lose_nothing_double_nothing_and_never_drive_a_session_twice() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    die_at_any_moment(["one", "other", "third"], 12, Duration::from_secs(20), &Place::postgres(postgres));
}

/// Keepers that are killed now and then, with sessions that are begun, sent something and decided about through any of
/// them. At each, somebody listens in either way.
fn die_at_any_moment<const N: usize>(names: [&str; N], sessions: usize, time: Duration, place: &Place) {
    let seed = std::env::var("RETHREAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("RETHREAD_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let machines = machines(&folder, place, names).map(Arc::new);
    // Whoever watches still holds a machine when this fails.
    let _logs = names.map(|name| LogIfFailed(folder.join(name)));
    let is_over = Arc::new(AtomicBool::new(false));
    let watch = |machine: &Arc<Machine>, ears: Ears| {
        let (is_over, machine) = (Arc::clone(&is_over), Arc::clone(machine));
        std::thread::spawn(move || {
            let mut watcher = Watcher::new(ears);
            // Whatever was told last is heard.
            while watcher.look(&machine) || !is_over.load(Ordering::Acquire) {}
            (watcher, machine)
        })
    };
    let watchers: Vec<_> = machines
        .iter()
        .flat_map(|machine| [Ears::LongPoll, Ears::WebSocket].map(|ears| watch(machine, ears)))
        .collect();
    let sessions: Vec<String> =
        (0..sessions).map(|number| machines[number % N].begin(&project(&folder, number), "Begin.")).collect();
    // Somebody answers whatever is asked, through whichever keeper; now and then one of them dies.
    let last = u64::try_from(time.as_millis()).unwrap() - 2000;
    let mut kills: Vec<Duration> = (0..6).map(|_| Duration::from_millis(random.u64(2000..last))).collect();
    kills.sort();
    kills.reverse();
    let mut taken: [Vec<(String, String)>; N] = [const { Vec::new() }; N];
    let (mut kept, mut untold) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    // On a machine that has a lot to do it may take longer until something could be sent at all.
    let is_enough = |kept: usize| begun.elapsed() > time && (kept > 0 || begun.elapsed() > 6 * time);
    while !kills.is_empty() || !is_enough(kept.len() + taken.iter().map(Vec::len).sum::<usize>()) {
        let number = random.usize(..N);
        let machine = &machines[number];
        if kills.pop_if(|moment| begun.elapsed() > *moment).is_some() {
            // What others show has to be there for ever. The rest it has on disk, and tells when it is back, unless
            // somebody went on meanwhile.
            for (session, id) in taken[number].drain(..) {
                let is_elsewhere =
                    |other: &Machine| other.home != machine.home && other.said(&session).contains(&id);
                match machines.iter().any(|other| is_elsewhere(other)) {
                    true => kept.push((session, id)),
                    false => untold.push((number, session, id)),
                }
            }
            machine.kill();
            std::thread::sleep(Duration::from_millis(random.u64(..1500)));
            machine.start();
        } else if random.u8(..100) < 20 {
            // Refused where it is driven elsewhere, or busy.
            let session = random.choice(&sessions).unwrap();
            taken[number].extend(machine.send(session, "Go on.").map(|id| (session.clone(), id)));
        } else {
            let Ok(page) = machine.get("/attention?state=pending") else { continue };
            let pending: Vec<Attention> = serde_json::from_value(page["items"].clone()).unwrap();
            if let Some(attention) = random.choice(&pending) {
                drop(machine.decide(attention, if random.bool() { "allow" } else { "deny" }));
            } else {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    // Whatever still waits is answered, until nothing is going on any more.
    until("everything comes to an end", || {
        for machine in &machines {
            for attention in machine.requests().iter().filter(|it| it.state == AttentionState::Pending) {
                drop(machine.decide(attention, "deny"));
            }
        }
        // One that is driven elsewhere does something there, or nothing.
        let is_quiet = |machine: &Arc<Machine>| {
            let listed = machine.get("/sessions?limit=500").unwrap();
            let items = listed["items"].as_array().unwrap();
            let busy = |it: &Value| matches!(it["state"].as_str(), Some("running" | "waiting"));
            items.len() == sessions.len() && !items.iter().any(busy)
        };
        machines.iter().all(is_quiet).then_some(())
    });
    kept.extend(taken.into_iter().flatten());
    let mut answered = 0;
    for session in &sessions {
        let said = until("all keepers show the same", || {
            let said = machines.each_ref().map(|machine| machine.said(session));
            said.iter().all(|it| *it == said[0]).then(|| said[0].clone())
        });
        assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len(), "{session}: {said:?}");
        // An agent that dies with its keeper may have said nothing yet, and nobody need have sent it anything since.
        assert!(!said.is_empty(), "{session} lost its first prompt");
        answered += usize::from(said.len() >= 2);
        for (_, id) in kept.iter().filter(|(of, _)| of == session) {
            assert!(said.contains(id), "{session} lost what was taken for it, {id}: {said:?}");
        }
        for (number, _, id) in untold.iter().filter(|(_, of, _)| of == session) {
            let machine = &machines[*number];
            let is_there =
                said.contains(id) || machine.has_written(session, id) || machine.has_waiting(session, id);
            assert!(is_there, "{session} lost what was taken for it and not told, {id}: {said:?}");
        }
    }
    assert!(!kept.is_empty() || !untold.is_empty(), "nothing was sent");
    assert!(answered > sessions.len() / 2, "only {answered} of {} were answered", sessions.len());
    std::thread::sleep(Duration::from_secs(4));
    is_over.store(true, Ordering::Release);
    let mut heard = BTreeSet::new();
    for watcher in watchers {
        let (mut watcher, machine) = watcher.join().unwrap();
        knows_what_there_is(&mut watcher, &machine, &sessions);
        heard.extend(watcher.kinds);
    }
    for kind in ["message.upsert", "session.created", "session.updated", "session.state", "turn.started"]
        .into_iter()
        .chain(["turn.completed", "attention.requested", "attention.decided"])
    {
        assert!(heard.contains(kind), "nobody heard of {kind}: {heard:?}");
    }
    let twice = fs::read_to_string(folder.join("driven-twice")).unwrap_or_default();
    assert_eq!(twice, "", "these were driven twice at once");
}

/// What somebody heard comes to what the keeper shows whoever asks now, and nothing of it was told twice.
fn knows_what_there_is(watcher: &mut Watcher, machine: &Machine, sessions: &[String]) {
    let who = format!("{:?} at {}", watcher.ears, machine.home.display());
    // Messages are counted in the background, and that is told as well: what is listed now may have been told a moment ago.
    let begun = Instant::now();
    let mut cards = listed(machine).unwrap();
    while cards != watcher.cards && begun.elapsed() < Duration::from_secs(30) {
        watcher.look(machine);
        cards = listed(machine).unwrap();
    }
    for (name, card) in cards {
        assert_eq!(watcher.cards.get(&name), Some(&card), "{who} lists what it lists: {name:?}");
    }
    for session in sessions {
        let mut known = watcher.said.get(session).cloned().unwrap_or_default();
        let mut said = machine.said(session);
        known.sort();
        said.sort();
        assert_eq!(known, said, "{who} knows of {session} what it shows");
    }
    assert_eq!(watcher.cards.len(), sessions.len(), "{who} lists nothing else");
    // What others were asked is forgotten once it is over, and never told if it was over before it was seen; but whoever
    // heard of a request knows what became of it.
    let asked = requests(machine).unwrap();
    for (id, state) in &watcher.requests {
        assert_eq!(asked.get(id).unwrap_or(state), state, "{who} knows what became of request {id}");
    }
    let waiting = |asked: &BTreeMap<String, String>| {
        asked.iter().filter(|(_, state)| *state == "pending").map(|(id, _)| id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(waiting(&watcher.requests), waiting(&asked), "{who} waits for what it waits for");
    assert!(watcher.turns.is_empty(), "{who} saw no end of {:?}", watcher.turns);
    let doubled: Vec<_> = watcher.told.iter().filter(|(_, times)| **times > 1).collect();
    assert!(doubled.is_empty(), "{who} was told twice: {doubled:?}");
}

#[test]
fn sessions_of_the_sdks_in_postgres_are_kept_once_through_any_keeper_also_if_one_dies() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    keeps_sessions_of_the_sdks(&Place::postgres(postgres));
}

#[test]
fn sessions_of_the_sdks_in_s3_are_kept_once_through_any_keeper_also_if_one_dies() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    keeps_sessions_of_the_sdks(&Place::s3(server));
}

/// Programs that append through whichever of three keepers answers; what got no answer is sent again, through another.
fn keeps_sessions_of_the_sdks(place: &Place) {
    const PROGRAMS: usize = 6;
    const ROUNDS: usize = 15;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let machines = machines(&folder, place, ["one", "other", "third"]);
    let key = json!({ "project_key": "-home-me", "session_id": "0198f2c4-0000-7000-8000-000000000000" });
    let store = |machine: &Machine, verb: &str, body: &Value| {
        machine.post(&format!("/session-store/default/{verb}"), body)
    };
    let speak = |program: usize| {
        for round in 0..ROUNDS {
            let own = json!({ "type": "mode", "program": program, "round": round });
            let shared = json!({ "type": "user", "uuid": format!("u{round}") });
            let batches = json!([{ "id": format!("{program}-{round}"), "entries": [own, shared] }]);
            let append = |machine| store(machine, "append", &json!({ "key": key, "batches": batches })).ok();
            until("it is taken", || append(fastrand::choice(&machines)?));
            // The answer was lost, as far as this program knows.
            let again = until("and again", || append(fastrand::choice(&machines)?));
            assert_eq!(again["added"], 0, "program {program}, round {round}");
        }
    };
    std::thread::scope(|scope| {
        let speaking: Vec<_> = (0..PROGRAMS).map(|program| scope.spawn(move || speak(program))).collect();
        for machine in machines.iter().cycle().take_while(|_| speaking.iter().any(|it| !it.is_finished())) {
            std::thread::sleep(Duration::from_millis(fastrand::u64(200..800)));
            machine.kill();
            machine.start();
        }
    });
    let loaded = machines.each_ref().map(|machine| {
        let loaded = store(machine, "load", &json!({ "key": key })).unwrap();
        loaded["entries"].as_array().unwrap().clone()
    });
    let [entries, ..] = &loaded;
    assert!(loaded.iter().all(|it| it == entries), "{loaded:?}");
    let rounds = |is_one: &dyn Fn(&Value) -> bool| {
        let found = entries.iter().filter(|entry| is_one(entry));
        found.map(|entry| entry["round"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
    };
    for program in 0..PROGRAMS {
        let own = rounds(&|entry| entry["program"] == program);
        assert_eq!(own, (0..ROUNDS as u64).collect::<Vec<_>>(), "program {program}, in its order");
    }
    for round in 0..ROUNDS {
        assert_eq!(rounds(&|entry| entry["uuid"] == format!("u{round}")).len(), 1, "round {round}");
    }
    assert_eq!(store(&machines[2], "delete", &json!({ "key": key })).unwrap()["deleted"], 1);
    for machine in &machines {
        assert_eq!(store(machine, "load", &json!({ "key": key })).unwrap()["entries"], Value::Null);
    }
}

#[test]
fn a_database_that_is_away_takes_nothing_from_what_is_driven_here_and_misses_nothing_of_it() {
    let Some(postgres) = Postgres::start(&[], &[]) else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(&postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &place);
    let id = one.begin(&project(&folder, 0), "Begin.");
    until("it is seen there", || (other.state(&id)? == "waiting").then_some(()));
    postgres.kill();
    // Whoever is asked here answers here, and the turn goes on to its end.
    until("the turn ends without the database", || {
        for attention in one.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            one.decide(attention, "deny").unwrap();
        }
        let listed = one.get("/sessions").unwrap();
        (listed["items"][0]["state"] == "idle").then_some(())
    });
    let said = one.said(&id);
    assert!(said.len() >= 6, "{said:?}");
    assert_eq!(
        other.get("/sessions").unwrap()["items"].as_array().unwrap().len(),
        1,
        "what was known is shown"
    );
    postgres.restart();
    until("what was missed is seen there", || (other.said(&id) == said).then_some(()));
    until("and what it does", || (other.state(&id)? == "elsewhere").then_some(()));
}
