//! Everything the program says: answers to stdout, talk to stderr. No other file prints.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

use rethread_store::Metadata;

use crate::failure::{Done, Failure, without_number};
use crate::pager::Pager;
use crate::text::{harmless, one_line};

/// How wide a line may be that is cut, where no terminal says how wide it is.
const USUAL_WIDTH: usize = 100;
/// How often progress is shown anew.
const PROGRESS: Duration = Duration::from_millis(100);
/// How many steps a bar has.
const BAR: usize = 20;

/// The program's voice.
pub(crate) struct Ui {
    out: BufWriter<Box<dyn Write + Send>>,
    pager: Option<Pager>,
    colour: bool,
    width: Option<usize>,
    talks_to_person: bool,
    progress: Progress,
}

/// What the last line of the screen says of long work.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// Nothing: it does not take long enough to be worth it.
    Silent(Instant),
    /// How far it had come at that time.
    Shown(Instant),
}

/// How a line is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// What others said.
    Plain,
    /// A heading.
    Strong,
    /// What can be passed over.
    Faint,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// For people.
    Text,
    /// For programs: one object per line.
    Json,
}

impl Answer {
    /// Returns the form that the flag `--json` asks for.
    pub(crate) fn of(json: bool) -> Self {
        if json { Answer::Json } else { Answer::Text }
    }

    /// Returns the form that was asked for, also by somebody whose words make no sense otherwise.
    pub(crate) fn typed() -> Self {
        let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
        Self::of(words.any(|word| word == "--json"))
    }
}

impl Ui {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let size = terminal.then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        let wants_no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: terminal && !wants_no_colour,
            width: size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0),
            out: answers_to(stdout),
            pager: None,
            talks_to_person: io::stderr().is_terminal(),
            progress: Progress::Silent(Instant::now()),
        }
    }

    /// Returns the terminal's width, if answers go to one.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns how wide a line may be that has to be cut somewhere.
    pub(crate) fn cut(&self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH)
    }

    /// Returns whether a person reads the answers as they come.
    pub(crate) fn is_watched(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Has the answers shown a page at a time from here on, if a person reads them at a terminal.
    pub(crate) fn page(&mut self) {
        if !self.is_watched() || self.pager.is_some() {
            return;
        }
        if let Some((pager, input)) = Pager::start() {
            self.out = answers_to(input);
            self.pager = Some(pager);
        }
    }

    /// Answers with a line of data, byte for byte.
    pub(crate) fn data(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.clear_progress();
        let written = self.out.write_all(line).and_then(|()| self.out.write_all(b"\n"));
        written.map_err(cannot_write)
    }

    /// Answers with a line for people.
    pub(crate) fn line(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        let text = harmless(text);
        match tone {
            _ if !self.colour || text.is_empty() => self.data(text.as_bytes()),
            Tone::Plain => self.data(text.as_bytes()),
            Tone::Strong => self.data(format!("\x1b[1m{text}\x1b[0m").as_bytes()),
            Tone::Faint => self.data(format!("\x1b[2m{text}\x1b[0m").as_bytes()),
        }
    }

    /// Answers with what is known about a session.
    pub(crate) fn metadata(&mut self, metadata: &Metadata) -> Result<(), Failure> {
        let json = serde_json::to_vec(metadata);
        self.data(&json.unwrap_or_else(|_| unreachable!("metadata is made of what JSON can hold")))
    }

    /// Answers with the session that was just begun. People get its whole id too: a short one that a script keeps
    /// may soon fit another session as well.
    pub(crate) fn begun(&mut self, metadata: &Metadata, answer: Answer) -> Result<(), Failure> {
        match answer {
            Answer::Json => self.metadata(metadata),
            Answer::Text => self.data(metadata.session_id.as_str().as_bytes()),
        }
    }

    /// Answers with lines for people.
    pub(crate) fn lines(&mut self, lines: &[(Tone, String)]) -> Result<(), Failure> {
        lines.iter().try_for_each(|(tone, text)| self.line(*tone, text))
    }

    /// Returns where raw answers go.
    pub(crate) fn raw(&mut self) -> &mut (dyn Write + Send) {
        &mut self.out
    }

    /// Hands over every answer given so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(cannot_write)
    }

    /// Says a sentence about what was done.
    pub(crate) fn say(&mut self, sentence: &str) {
        self.talk(sentence);
    }

    /// Says something that only a person at a terminal wants to know.
    pub(crate) fn aside(&mut self, sentence: &str) {
        if self.talks_to_person {
            self.talk(sentence);
        }
    }

    /// Says that something is not as it should be.
    pub(crate) fn warn(&mut self, sentence: &str) {
        self.talk(&format!("warning: {sentence}"));
    }

    /// Says what to type next.
    pub(crate) fn hint(&mut self, sentence: &str) {
        self.talk(&format!("hint: {sentence}"));
    }

    /// Shows how far long work has come, where a person watches.
    pub(crate) fn progress(&mut self, what: &str, done: usize, all: usize) {
        self.show_progress(|| format!("{} {what} {done} of {all}", bar(done, all)));
    }

    /// Shows how far long work has come whose end nobody knows.
    pub(crate) fn progress_so_far(&mut self, what: &str, done: u64) {
        self.show_progress(|| format!("{what} {done}"));
    }

    fn show_progress(&mut self, sentence: impl FnOnce() -> String) {
        let (Progress::Silent(since) | Progress::Shown(since)) = self.progress;
        if self.talks_to_person && since.elapsed() >= PROGRESS {
            let _ = write!(io::stderr(), "\r\x1b[K{}", sentence());
            self.progress = Progress::Shown(Instant::now());
        }
    }

    /// Waits until the person has read what is shown a page at a time.
    pub(crate) fn leave(&mut self) {
        if let Some(pager) = self.pager.take() {
            // Whoever has read enough closes it; what comes then is for nobody.
            let _ = self.out.flush();
            self.out = answers_to(io::sink());
            let _ = pager.wait();
            self.out = answers_to(io::stdout());
        }
    }

    /// Says how the program ended, if it did not do all it was asked.
    pub(crate) fn end(&mut self, done: &Result<Done, Failure>, answer: Answer) {
        self.leave();
        self.clear_progress();
        let Some(problem) = done.as_ref().err().and_then(Failure::problem) else { return };
        match answer {
            Answer::Json => self.talk(&serde_json::to_string(&problem).unwrap_or_default()),
            Answer::Text => {
                let message = problem.detail.as_deref().unwrap_or(&problem.title);
                self.talk(&format!("error: {}", one_line(message, usize::MAX)));
                if let Some(hint) = &problem.hint {
                    self.hint(hint);
                }
            }
        }
    }

    fn talk(&mut self, sentence: &str) {
        self.clear_progress();
        // It would be written over what is being read.
        self.leave();
        // What was answered comes first; should that fail, the last flush will say so.
        let _ = self.out.flush();
        // Whoever closed stderr does not want to hear it; the exit code still tells.
        let _ = writeln!(io::stderr(), "{}", harmless(sentence));
    }

    fn clear_progress(&mut self) {
        if matches!(self.progress, Progress::Shown(_)) {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.progress = Progress::Silent(Instant::now());
        }
    }
}

/// Returns how much is done, drawn; the step that is under way does not count.
fn bar(done: usize, all: usize) -> String {
    let full = BAR * done.saturating_sub(1).min(all) / all.max(1);
    format!("[{}{}]", "=".repeat(full), " ".repeat(BAR - full))
}

fn answers_to(out: impl Write + Send + 'static) -> BufWriter<Box<dyn Write + Send>> {
    BufWriter::with_capacity(1 << 16, Box::new(out))
}

impl fmt::Debug for Ui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ui").field("pager", &self.pager).field("width", &self.width).finish_non_exhaustive()
    }
}

fn cannot_write(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::PipeClosed,
        _ => {
            let reason = error.to_string();
            let message = format!("cannot write to standard output: {}", without_number(&reason));
            Failure::Failed { message, hint: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_with_what_is_done_and_is_always_as_long() {
        assert_eq!(bar(1, 4), format!("[{}]", " ".repeat(BAR)));
        assert_eq!(bar(3, 4), format!("[{}{}]", "=".repeat(BAR / 2), " ".repeat(BAR / 2)));
        for (done, all) in [(0, 0), (0, 7), (7, 7), (8, 7), (usize::MAX, 1), (1, 0)] {
            assert_eq!(bar(done, all).len(), BAR + 2, "{done} of {all}");
        }
    }
}
