//! `append`: JSON lines from standard input, each acknowledged when it is durable.
//!
//! One thread reads and hands the entries to the store, this one waits for their tickets in order. So any number of
//! lines share a sync, a script that waits for each acknowledgement gets it at once, and a disk that fails ends the
//! command although nobody writes to its input any more.

use std::future::IntoFuture as _;
use std::io::{self, BufRead, IsTerminal as _, Read as _};
use std::time::Duration;

use async_channel::{Receiver, Sender, TryRecvError};
use rethread_store::backend::{Durability, LogName};
use rethread_store::{Ack, Entry, Error, Session, Ticket};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, without_number};
use crate::named::{NamedEntry, NamedSession};
use crate::patience::Patience;
use crate::ui::Ui;

/// How many entries may wait for their acknowledgement.
const IN_FLIGHT: usize = 256;

#[derive(Debug)]
pub(crate) struct Append {
    session: NamedSession,
    at: Option<NamedEntry>,
    log: LogName,
}

impl From<args::Append> for Append {
    fn from(typed: args::Append) -> Self {
        let log = if typed.transcript { LogName::Transcript } else { LogName::Messages };
        Self { session: typed.id, at: typed.at, log }
    }
}

/// What became of a line of input.
struct Line {
    number: u64,
    fate: Fate,
}

enum Fate {
    /// The store will make it durable.
    Accepted(Ticket),
    /// It is not appended, and neither is anything after it.
    Refused(Error),
    /// The input broke off there.
    Unreadable(io::Error),
}

impl Append {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let mut session = pollster::block_on(self.session.open(context))?;
        if let Some(named) = &self.at {
            session = pollster::block_on(async {
                Ok::<_, Failure>(session.at(&named.find(&session).await?).await?)
            })?;
        }
        if io::stdin().is_terminal() {
            ui.say("Reading JSON objects, one per line; Ctrl-D ends.");
        }
        // Watched from before the first write, for a failure is announced only once.
        let patience = context.patience()?;
        let (sender, lines) = async_channel::bounded(IN_FLIGHT);
        let log = self.log;
        // It may wait for input for ever, so it is never joined; it ends with the process.
        std::thread::Builder::new()
            .name("rethread-input".into())
            .spawn(move || {
                feed(&mut io::stdin().lock(), &session, log, &sender);
                // Before it says that this was all: then the command ends, and has to close the store by itself.
                drop(session);
                drop(sender);
            })
            .map_err(Error::io("start a thread for", "standard input"))?;
        acknowledge(&lines, patience, context, ui)?;
        Ok(Done::Fully)
    }
}

/// Reads lines and hands them to the store until the input ends or a line is refused.
fn feed(input: &mut dyn BufRead, session: &Session, log: LogName, lines: &Sender<Line>) {
    let limit = session.store().backend().capabilities().max_record;
    for number in 1.. {
        let mut bytes = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(2);
        let fate = match input.take(most).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) if bytes.trim_ascii().is_empty() => continue,
            Ok(size) if size > limit && !bytes.ends_with(b"\n") => {
                Fate::Refused(Error::TooLarge { size, limit })
            }
            Ok(_) => match submit(bytes, session, log) {
                Ok(ticket) => Fate::Accepted(ticket),
                Err(error) => Fate::Refused(error),
            },
            Err(error) => Fate::Unreadable(error),
        };
        let is_last = !matches!(fate, Fate::Accepted(_));
        if lines.send_blocking(Line { number, fate }).is_err() || is_last {
            return;
        }
    }
}

fn submit(bytes: Vec<u8>, session: &Session, log: LogName) -> rethread_store::Result<Ticket> {
    let entry = Entry::parse(bytes)?;
    pollster::block_on(async {
        match log {
            LogName::Transcript => session.append_transcript(entry).await,
            _ => session.append(entry).await,
        }
    })
}

/// Prints an acknowledgement for each line as soon as it is durable, in order. Where nobody listens any more, the rest
/// is appended without a word: that the reader left says nothing about the input.
fn acknowledge(
    lines: &Receiver<Line>,
    patience: &Patience,
    context: &Context,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let mut heard = true;
    loop {
        let Line { number, fate } = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Closed) => return Ok(()),
            Err(TryRecvError::Empty) => {
                if heard {
                    heard = listens(ui.flush())?;
                }
                match lines.recv_blocking() {
                    Ok(line) => line,
                    Err(_) => return Ok(()),
                }
            }
        };
        let ticket = match fate {
            Fate::Accepted(ticket) => ticket,
            Fate::Refused(error) => return Err(refused(number, &error, context)),
            Fate::Unreadable(error) => {
                let message = format!("line {number}: cannot read standard input: {error}");
                let message = without_number(&message).to_owned();
                return Err(Failure::Failed { message, hint: Some(so_far(number)) });
            }
        };
        let ack = match ticket.wait_for(Duration::ZERO) {
            Some(ack) => ack,
            None => {
                if heard {
                    heard = listens(ui.flush())?;
                }
                patience.wait(ticket.into_future())
            }
        };
        let ack = ack.map_err(|error| failed(number, &error, context))?;
        if heard {
            heard = listens(print(&ack, ui))?;
        }
    }
}

/// Returns whether somebody still reads the answers.
fn listens(said: Result<(), Failure>) -> Result<bool, Failure> {
    match said {
        Ok(()) => Ok(true),
        Err(Failure::PipeClosed) => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn print(ack: &Ack, ui: &mut Ui) -> Result<(), Failure> {
    let durable = ack.durability >= Durability::Synced;
    ack.records.iter().try_for_each(|record| {
        // An entry's id holds nothing that JSON would have to escape.
        let (id, position) = (&record.id, record.position);
        ui.data(format!(r#"{{"uuid":"{id}","position":{position},"durable":{durable}}}"#).as_bytes())
    })
}

/// A line that the store does not take.
fn refused(number: u64, error: &Error, context: &Context) -> Failure {
    // The parser counts lines too, and an entry is always its line 1.
    let message = context.describe(error).replace(" at line 1 column ", " at column ");
    let message = format!("line {number}: {message}");
    Failure::failed(message, format!("mend it and append from line {number} on; {}", so_far(number)))
}

/// A line that the store took and could not keep.
fn failed(number: u64, error: &Error, context: &Context) -> Failure {
    let Failure::Failed { message, hint } = context.explain(error) else {
        unreachable!("an entry that was accepted has no bad name");
    };
    let hint = match error {
        Error::NoSpace { .. } => format!("make room and append from line {number} on; "),
        _ => hint.map_or(String::new(), |hint| hint + "; "),
    };
    Failure::failed(message, hint + &so_far(number))
}

fn so_far(number: u64) -> String {
    match number {
        1 => "nothing was appended".into(),
        _ => format!("everything before line {number} is durable"),
    }
}
