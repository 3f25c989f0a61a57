//! A log that a crash of the machine has cut short, and its journal: whole, with damage in it, or with a first line that
//! says anything.

use rethread_store::{Kind, Stamp};

use super::choices::Choices;
use super::home::{Home, Stored, Whole, entry, read_all, run};
use super::sample::{self, joined, stamped};

/// Makes a log and its journal, and checks that readers see what is in either, and that the next writer keeps it.
pub fn journal(data: &[u8]) {
    let mut choices = Choices::new(data);
    let home = Home::default();
    let lines = sample::lines([0, 400][choices.below(2)]);
    // Not within a group, nor within what went in with one write: those are never split.
    let first = 1 + choices.below(5);
    let (log, from) = (joined(&lines), joined(&lines[..first]).len());
    let honest = choices.below(4) > 0;
    let header =
        if honest { header(&log, 0, from as u64, first as u64) } else { made_up(&log, &mut choices) };
    let whole = [header, joined(&lines[first..]), vec![0; 64]].concat();
    let mut journal = whole.clone();
    let cut = from + choices.below(log.len() + 1 - from);
    while !choices.is_empty() {
        hurt(&mut journal, &mut choices);
    }
    home.put("messages.jsonl", &log[..cut]);
    let alone = seen(&home);
    home.put("messages.journal", &journal);
    if !honest {
        return can_be_read(&home);
    }
    let both = seen(&home);
    let wanted: Vec<Stored> = (0..).zip(lines).collect();
    assert!(wanted.starts_with(&both), "only what was written is read");
    assert!(both.starts_with(&alone), "a journal takes nothing away");
    assert!(journal != whole || both == wanted, "what the log lacks is in the journal");
    the_next_writer_keeps_it(&home, &both);
}

fn seen(home: &Home) -> Vec<Stored> {
    let Whole { records, .. } = read_all(&home.backend(), &home.messages(), 1 << 20);
    records
}

/// A first line that lies may leave anything visible, but nothing breaks.
fn can_be_read(home: &Home) {
    seen(home);
    let store = home.store();
    drop(run(store.verify(&home.session())));
    if let Ok(Some(session)) = run(store.load(&home.session())) {
        drop(run(session.messages()));
        if let Ok(ticket) = run(session.append(entry("more"))) {
            // A log that nobody can tell the end of may refuse for good.
            drop(ticket.wait_for(std::time::Duration::from_millis(100)));
        }
    }
    drop(store.close());
}

/// What could be read before an append is in the log after it, without the journal too.
fn the_next_writer_keeps_it(home: &Home, before: &[Stored]) {
    let store = home.store();
    let session = run(store.load(&home.session())).expect("readable").expect("its first line is there");
    run(async { session.append(entry("more")).await?.await }).expect("files in memory can be written");
    store.close().expect("all was acknowledged");
    home.put("messages.journal", b"");
    let after = seen(home);
    assert!(
        after.starts_with(before) && after.len() == before.len() + 1,
        "{} of {}",
        after.len(),
        before.len()
    );
}

fn header(log: &[u8], segment: u64, from: u64, first: u64) -> Vec<u8> {
    let end = usize::try_from(from).unwrap_or(usize::MAX).min(log.len());
    let before = String::from_utf8_lossy(&log[end.saturating_sub(32)..end]);
    let before = serde_json::to_string(&before).expect("a text");
    let body =
        format!(r#"{{"journal":{{"segment":{segment},"from":{from},"first":{first},"before":{before}}}}}"#);
    let id = "journal".parse().expect("an id");
    let stamp =
        Stamp { position: first, parent: None, depth: 0, kind: Kind::Note, id, left: 0, unsettled: 0 };
    [stamped(&body, stamp).as_bytes(), b"\n"].concat()
}

/// Returns a first line that says anything; before the end of all files stands nothing.
fn made_up(log: &[u8], choices: &mut Choices) -> Vec<u8> {
    let log = if choices.coin() { log } else { b"" };
    let segment = u64::from(choices.byte() % 3);
    header(log, segment, choices.number(), choices.number())
}

fn hurt(file: &mut Vec<u8>, choices: &mut Choices) {
    let at = choices.below(file.len() + 1);
    match choices.byte() % 4 {
        0 => file.truncate(at),
        1 => file.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (choices.byte() % 8)),
        2 => {
            let to = file.len().min(at + choices.below(600));
            file[at..to].fill(0);
        }
        _ => drop(file.splice(at..at, choices.take(8).iter().copied())),
    }
}
