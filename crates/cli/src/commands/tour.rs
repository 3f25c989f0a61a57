//! `tour`: half a minute with a temporary store. Every command it shows is really run, by this same program.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rethread_store::Error;

use crate::args;
use crate::failure::{Done, Failure};
use crate::text::count;
use crate::ui::{Tone, Ui};

/// How long a person gets to read a paragraph.
const PAUSE: Duration = Duration::from_millis(1800);
/// After how many acknowledgements the appender is killed.
const ENOUGH: usize = 200;

const CONVERSATION: &str = r#"{"uuid":"m1","role":"user","content":"The parser drops the last line"}
{"uuid":"m2","role":"assistant","content":"It stops at the newline. Fixed."}
{"uuid":"m3","role":"user","content":"Now add a test"}
{"uuid":"m4","role":"assistant","content":"Added tests/last_line.rs"}
"#;
const SECOND_THOUGHT: &str = r#"{"uuid":"n3","role":"user","content":"No test. Add a benchmark"}
"#;

const GOING_ON: &str = r#"{"uuid":"k0","role":"user","content":"And on it goes"}
"#;

#[derive(Debug)]
pub(crate) struct Tour {
    pauses: bool,
    keep: bool,
}

impl From<args::Tour> for Tour {
    fn from(typed: args::Tour) -> Self {
        Self { pauses: !typed.fast, keep: typed.keep }
    }
}

impl Tour {
    pub(crate) fn run(self, ui: &mut Ui) -> Result<Done, Failure> {
        let folder = tempfile::Builder::new().prefix("rethread-tour-").tempdir();
        let folder = folder.map_err(Error::io("make", "a temporary folder")).map_err(failed)?;
        let program = std::env::current_exe().map_err(Error::io("find", "this program")).map_err(failed)?;
        let pauses = self.pauses && ui.is_watched();
        let project = folder.path().join("project");
        fs::create_dir(&project).map_err(Error::io("make", &project)).map_err(failed)?;
        let mut guide = Guide { ui, store: folder.path().join("store"), project, program, pauses };
        guide.tour()?;
        if self.keep {
            let store = folder.keep().join("store");
            ui.line(Tone::Plain, &format!("The store stays: `rethread --store {} list`", store.display()))?;
        }
        Ok(Done::Fully)
    }
}

/// Somebody who shows around.
struct Guide<'a> {
    ui: &'a mut Ui,
    store: PathBuf,
    /// Where the agent of the tour works.
    project: PathBuf,
    program: PathBuf,
    pauses: bool,
}

impl Guide<'_> {
    fn tour(&mut self) -> Result<(), Failure> {
        self.create()?;
        self.look_at_the_disk()?;
        self.fork()?;
        self.resume_earlier()?;
        self.kill()?;
        self.rewind()?;
        self.heading("7. Nothing is taken on trust")?;
        self.say(&["Every stored line carries a checksum; verify reads every byte again."])?;
        self.shell(&["verify"], "")?;
        self.shell(&["list"], "")?;
        self.say(&[
            "That was it. Your own store begins with `rethread new`; `rethread --help` lists the rest.",
        ])
    }

    fn create(&mut self) -> Result<(), Failure> {
        self.heading("1. A session is a conversation, one JSON object per line")?;
        self.say(&[
            "This tour works in a temporary store. Entries go in through standard input;",
            "each is acknowledged when it would survive a power cut, and not before.",
        ])?;
        self.shell(&["new", "--id", "tour", "--name", "Fix the parser"], "")?;
        self.shell(&["append", "tour"], CONVERSATION)?;
        self.shell(&["show", "tour"], "")
    }

    fn look_at_the_disk(&mut self) -> Result<(), Failure> {
        self.heading("2. On disk it is plain JSON, a folder per session")?;
        self.say(&[])?;
        self.files("tour")?;
        self.say(&["Each line is what came in, byte for byte, with one member added at its end:"])?;
        for line in self.log("tour")?.lines().skip(1).take(2) {
            self.faint(line)?;
        }
        self.say(&["_rt: version, position, parent, depth, kind, id, left in its group, unsettled before it, checksum."])?;
        self.wait(PAUSE)
    }

    fn fork(&mut self) -> Result<(), Failure> {
        self.heading("3. A fork copies nothing")?;
        self.shell(&["fork", "tour", "--at", "m2", "--id", "tour-fork"], "")?;
        self.shell(&["show", "tour-fork"], "")?;
        let log = self.log("tour-fork")?;
        let size = log.len();
        self.say(&[&format!(
            "It reads two entries of its parent; its own log is one line of {size} bytes:"
        )])?;
        self.faint(log.trim_end())?;
        self.wait(PAUSE)
    }

    fn resume_earlier(&mut self) -> Result<(), Failure> {
        self.heading("4. Going on from an earlier message makes a branch")?;
        self.say(&["Nothing is overwritten: the old end stays, off the active branch."])?;
        self.shell(&["append", "tour", "--at", "m2"], SECOND_THOUGHT)?;
        self.shell(&["show", "tour", "--all"], "")
    }

    fn kill(&mut self) -> Result<(), Failure> {
        self.heading("5. kill -9 loses nothing that was acknowledged")?;
        self.say(&[&format!(
            "An appender gets lines without end, and SIGKILL after {ENOUGH} acknowledgements."
        )])?;
        self.shell(&["new", "--id", "tour-kill"], "")?;
        self.command(&["append", "tour-kill"], "")?;
        let acknowledged = kill_in_the_middle(self.child(&["append", "tour-kill"])?)?;
        self.faint("Killed")?;
        let shown = self.output(&["show", "tour-kill", "--json"], "")?;
        let stored: HashSet<&str> = shown.lines().filter_map(uuid_in).collect();
        let missing = acknowledged.iter().filter(|uuid| !stored.contains(uuid.as_str())).count();
        let (acks, entries) = (count(acknowledged.len(), "entry"), count(stored.len(), "entry"));
        self.say(&[
            &format!("{acks} were acknowledged; {entries} are stored, and of the acknowledged ones {missing} are missing."),
            "What is stored beyond them was written when nobody could be told any more.",
        ])?;
        self.wait(PAUSE)?;
        match missing {
            0 => self.go_on(),
            _ => Err(Failure::failed(
                format!("{} were acknowledged and are not there", count(missing, "entry")),
                "please report this: it must never happen",
            )),
        }
    }

    fn go_on(&mut self) -> Result<(), Failure> {
        self.shell(&["append", "tour-kill"], GOING_ON)?;
        if self.output(&["verify", "tour-kill"], "").is_err() {
            self.say(&[
                "This time the kill tore a line; the append closed it off, and a repair clears it away.",
            ])?;
            self.shell(&["repair", "tour-kill", "--yes"], "")?;
        }
        Ok(())
    }

    fn heading(&mut self, text: &str) -> Result<(), Failure> {
        self.ui.line(Tone::Plain, "")?;
        self.ui.line(Tone::Strong, text)
    }

    fn say(&mut self, lines: &[&str]) -> Result<(), Failure> {
        self.ui.line(Tone::Plain, "")?;
        lines.iter().try_for_each(|line| self.ui.line(Tone::Plain, line))
    }

    fn faint(&mut self, line: &str) -> Result<(), Failure> {
        self.ui.line(Tone::Faint, format!("  {line}").trim_end())
    }

    fn wait(&mut self, pause: Duration) -> Result<(), Failure> {
        self.ui.flush()?;
        if self.pauses {
            thread::sleep(pause);
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Failure> {
        self.heading("6. What an agent does to files can be taken back")?;
        self.say(&["A checkpoint records what files are before a tool changes them."])?;
        self.write("parser.rs", "fn parse() {\n    stop_at_newline();\n}\n")?;
        self.shell(&["checkpoint", "tour", "--message", "m3", "parser.rs", "tests/last_line.rs"], "")?;
        self.say(&["The agent edits one file and makes another:"])?;
        self.write("parser.rs", "fn parse() {\n    read_to_end();\n}\n")?;
        self.write("tests/last_line.rs", "#[test]\nfn the_last_line_is_read() {}\n")?;
        let paths = ["parser.rs", "tests/last_line.rs"];
        self.shell(&[&["checkpoint", "tour", "--message", "m3", "--after"], &paths[..]].concat(), "")?;
        self.shell(&["diff", "tour", "--to", "m3"], "")?;
        self.shell(&["rewind", "tour", "--to", "m3", "--dry-run"], "")?;
        self.say(&["What is replaced is saved first, and a receipt undoes it all:"])?;
        let answer = self.output(&["rewind", "tour", "--to", "m3", "--json"], "")?;
        self.command(&["rewind", "tour", "--to", "m3", "--json"], "")?;
        self.faint(answer.trim_end())?;
        let receipt = answer.split(r#""receipt":""#).nth(1).and_then(|rest| rest.split('"').next());
        let receipt = receipt.unwrap_or_default().to_owned();
        self.shell(&["rewind", "--undo", &receipt], "")
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Failure> {
        let path = self.project.join(name);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, content)
        };
        write().map_err(Error::io("write", &path)).map_err(failed)
    }

    /// Shows a command, runs it and shows its answer.
    fn shell(&mut self, words: &[&str], input: &str) -> Result<(), Failure> {
        self.command(words, if input.is_empty() { "" } else { " < entries.jsonl" })?;
        let answer = self.output(words, input)?;
        answer.lines().try_for_each(|line| self.faint(line))?;
        self.wait(PAUSE)
    }

    fn command(&mut self, words: &[&str], rest: &str) -> Result<(), Failure> {
        let quoted = |word: &&str| if word.contains(' ') { format!("{word:?}") } else { (*word).to_owned() };
        let words: Vec<String> = words.iter().map(quoted).collect();
        self.say(&[&format!("$ rethread {}{rest}", words.join(" "))])?;
        self.wait(PAUSE / 3)
    }

    fn child(&self, words: &[&str]) -> Result<Child, Failure> {
        let mut command = Command::new(&self.program);
        command.args(words).env("RETHREAD_HOME", &self.store).current_dir(&self.project);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(Error::io("run", &self.program)).map_err(failed)
    }

    fn output(&self, words: &[&str], input: &str) -> Result<String, Failure> {
        let mut child = self.child(words)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that needs no input may have ended already.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(Error::io("run", &self.program)).map_err(failed)?;
        let answer =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        match output.status.success() {
            true => Ok(answer),
            false => {
                let message = format!("`rethread {}` failed: {}", words.join(" "), answer.trim_end());
                Err(Failure::Failed { message, hint: None })
            }
        }
    }

    fn folder(&self, session: &str) -> PathBuf {
        self.store.join("sessions").join(session)
    }

    fn log(&self, session: &str) -> Result<String, Failure> {
        let path = self.folder(session).join("messages.jsonl");
        fs::read_to_string(&path).map_err(Error::io("read", path)).map_err(failed)
    }

    fn files(&mut self, session: &str) -> Result<(), Failure> {
        let folder = self.folder(session);
        for (name, size) in names_and_sizes(&folder).map_err(Error::io("list", &folder)).map_err(failed)? {
            self.faint(&format!("{size:>6}  sessions/{session}/{name}"))?;
        }
        Ok(())
    }
}

fn names_and_sizes(folder: &Path) -> std::io::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        files.push((file.file_name().to_string_lossy().into_owned(), file.metadata()?.len()));
    }
    files.sort();
    Ok(files)
}

/// Feeds an appender without end and kills it in the middle. Returns what it had acknowledged.
fn kill_in_the_middle(mut child: Child) -> Result<Vec<String>, Failure> {
    let (Some(mut input), Some(acks)) = (child.stdin.take(), child.stdout.take()) else {
        unreachable!("both were asked for as pipes");
    };
    let feeder = thread::spawn(move || {
        let line = |number: u64| {
            format!("{{\"uuid\":\"k{number}\",\"role\":\"user\",\"content\":\"line {number}\"}}\n")
        };
        // The pipe breaks when the appender dies.
        (1..).map(line).find(|line| input.write_all(line.as_bytes()).is_err())
    });
    let mut acknowledged = Vec::new();
    for ack in BufReader::new(acks).lines().map_while(Result::ok) {
        acknowledged.extend(uuid_in(&ack).map(str::to_owned));
        if acknowledged.len() == ENOUGH {
            child.kill().map_err(Error::io("kill", "the appender")).map_err(failed)?;
        }
    }
    child.wait().map_err(Error::io("wait for", "the appender")).map_err(failed)?;
    // It only ever ends with the pipe.
    let _ = feeder.join();
    Ok(acknowledged)
}

fn uuid_in(line: &str) -> Option<&str> {
    line.strip_prefix(r#"{"uuid":""#)?.split('"').next()
}

fn failed(error: Error) -> Failure {
    Failure::Failed { message: crate::failure::in_one_line(&error), hint: None }
}
