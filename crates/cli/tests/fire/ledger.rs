//! What a session was given and what it promised to keep, held against what it has.
#![expect(clippy::unwrap_used, reason = "a test that cannot read has failed")]

use std::collections::HashMap;

use crate::kit::Home;

const PATTERN: &str = "abcdefghijklmnopqrstuvw";

/// Everything that was ever sent to one session.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    session: String,
    runs: HashMap<String, Run>,
}

/// What one process was given to append, and where it said its lines are. Its entries are `NAME.0`, `NAME.1` …
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
    /// The positions of the lines that were acknowledged: the first ones, in order.
    pub(crate) acknowledged: Vec<u64>,
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) position: u64,
    pub(crate) kind: char,
    pub(crate) id: String,
    pub(crate) body: String,
}

impl Run {
    /// Makes up lines whose fillings have the given sizes.
    pub(crate) fn new(name: impl Into<String>, sizes: impl IntoIterator<Item = usize>) -> Self {
        let name = name.into();
        let line = |(n, size)| {
            // Different at every place, so that bytes of another line or another place are noticed.
            let filling = PATTERN.repeat(size / PATTERN.len() + 2);
            let filling = &filling[n % PATTERN.len()..][..size];
            format!(r#"{{"uuid":"{name}.{n}","role":"user","content":"{filling}"}}"#)
        };
        let lines = sizes.into_iter().enumerate().map(line).collect();
        Self { name, lines, acknowledged: Vec::new() }
    }

    /// Takes in an acknowledgement, which must be that of the next line.
    pub(crate) fn acknowledge(&mut self, ack: &str) {
        let ack: serde_json::Value = serde_json::from_str(ack).unwrap();
        let expected = format!("{}.{}", self.name, self.acknowledged.len());
        assert_eq!((&ack["uuid"], &ack["durable"]), (&expected.into(), &true.into()), "{ack}");
        self.acknowledged.push(ack["position"].as_u64().unwrap());
    }
}

impl Ledger {
    pub(crate) fn new(session: impl Into<String>) -> Self {
        Self { session: session.into(), runs: HashMap::new() }
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Returns the ledger of a session that must have the same.
    pub(crate) fn of(self, session: &str) -> Self {
        Self { session: session.to_owned(), ..self }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.runs.values().map(|run| run.acknowledged.len()).sum()
    }

    pub(crate) fn add(&mut self, run: Run) {
        self.runs.insert(run.name.clone(), run);
    }

    /// Says what of the promise is broken: everything acknowledged is there, and of each run a prefix, whole, in
    /// its order and once.
    pub(crate) fn broken(&self, stored: &[Stored]) -> Result<(), String> {
        let mut next: HashMap<&str, usize> = HashMap::new();
        for (place, record) in stored.iter().enumerate() {
            if record.position != place as u64 {
                return Err(format!("position {} where {place} should be", record.position));
            }
            if record.kind != 'e' {
                continue;
            }
            let owner = record.id.rsplit_once('.').and_then(|(name, n)| Some((self.runs.get(name)?, n)));
            let Some((run, n)) = owner else {
                return Err(format!("{} was never given to it", record.id));
            };
            let expected = next.entry(&run.name).or_default();
            if n != expected.to_string() {
                return Err(format!("{} where {}.{expected} should be", record.id, run.name));
            }
            if run.lines.get(*expected) != Some(&record.body) {
                return Err(format!("{} is not as it was given: {:.200}", record.id, record.body));
            }
            if run.acknowledged.get(*expected).is_some_and(|&position| position != record.position) {
                return Err(format!("{} is not where it was said to be", record.id));
            }
            *expected += 1;
        }
        for run in self.runs.values() {
            let there = next.get(run.name.as_str()).copied().unwrap_or(0);
            if there < run.acknowledged.len() {
                let count = run.acknowledged.len();
                return Err(format!("{}: {count} were acknowledged, {there} are there", run.name));
            }
        }
        Ok(())
    }

    /// Checks that everything acknowledged is where it was said to be, whatever else there is.
    #[track_caller]
    pub(crate) fn check_acknowledged(&self, home: &Home) {
        let said = home.run(&["show", &self.session, "--all", "--stamped"]);
        let there: HashMap<u64, Stored> =
            records(&said.out).into_iter().map(|record| (record.position, record)).collect();
        for run in self.runs.values() {
            for (line, position) in run.lines.iter().zip(&run.acknowledged) {
                let found = there.get(position).map(|record| &record.body);
                assert_eq!(found, Some(line), "session {}, position {position}: {}", self.session, said.err);
            }
        }
    }

    /// Checks the promise, and that nothing else is wrong than bytes of a write that was cut short.
    #[track_caller]
    pub(crate) fn check(&self, home: &Home) {
        self.broken(&stored(home, &self.session)).unwrap_or_else(|broken| {
            panic!("session {}: {broken}", self.session);
        });
        for problem in problems(home, &self.session) {
            assert!(is_torn(&problem), "session {}: {problem}", self.session);
        }
    }
}

/// Reads every record of a session's own log, whose only damage are writes that were cut short.
#[track_caller]
pub(crate) fn stored(home: &Home, session: &str) -> Vec<Stored> {
    let said = home.run(&["show", session, "--all", "--stamped"]);
    let (damage, other): (Vec<&str>, Vec<&str>) =
        said.err.lines().partition(|line| line.starts_with("warning: ") && is_torn(line));
    assert!(other.iter().all(|line| line.starts_with("hint: ")), "show {session}: {}", said.err);
    assert_eq!(said.code, i32::from(!damage.is_empty()), "show {session}: {}", said.err);
    records(&said.out)
}

fn records(shown: &str) -> Vec<Stored> {
    // What a fork inherits comes first; its own log begins with a note.
    let records = shown.lines().map(Stored::read);
    records.skip_while(|record| (record.kind, record.position) != ('n', 0)).collect()
}

impl Stored {
    /// Takes a stored line apart, as docs/format.md says.
    fn read(line: &str) -> Self {
        let (body, stamp) = line.rsplit_once(r#""_rt":""#).unwrap_or_else(|| panic!("no stamp: {line:.200}"));
        let fields: Vec<&str> = stamp.strip_suffix("\"}").unwrap().split(' ').collect();
        Self {
            position: fields[1].parse().unwrap(),
            kind: fields[4].parse().unwrap(),
            id: fields[5].to_owned(),
            body: format!("{}}}", body.strip_suffix(',').unwrap_or(body)),
        }
    }
}

/// Returns what `verify` finds wrong with a session.
#[track_caller]
pub(crate) fn problems(home: &Home, session: &str) -> Vec<String> {
    let said = home.run(&["verify", session, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.out)
        .unwrap_or_else(|_| panic!("verify {session}: {} {} {}", said.code, said.out, said.err));
    let problems: Vec<String> = serde_json::from_value(report["problems"].clone()).unwrap();
    assert_eq!(said.code, i32::from(!problems.is_empty()), "{}", said.err);
    problems
}

/// Returns whether a problem is what a write that was cut short leaves behind, closed off or not.
pub(crate) fn is_torn(problem: &str) -> bool {
    // With data that was written late any part of it may be missing.
    let kinds = ["cut short", "no stamp", "NUL bytes", "checksum mismatch"];
    kinds.iter().any(|kind| problem.contains(&format!(": {kind} at byte ")))
}
