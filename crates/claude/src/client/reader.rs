//! Reads what the CLI says, and gives it to those it is for.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::task::JoinHandle;

use super::board::Board;
use super::caretaker::Caretaker;
use super::complaints::Complaints;
use super::outbox::Outbox;
use super::requests::Requests;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameKind};
use crate::lines::{Line, Lines};
use crate::message::ResultMessage;
use crate::transport::Ending;

/// How long it may take to know all about a CLI that has ended, whose pipe somebody else may hold on to.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Reads from now on.
pub(super) struct Reader {
    pub(super) board: Arc<Board>,
    pub(super) outbox: Outbox,
    pub(super) requests: Requests,
    pub(super) caretaker: Caretaker,
    pub(super) complaints: Complaints,
    pub(super) complaining: Option<JoinHandle<()>>,
    pub(super) close_timeout: Duration,
    pub(super) max_frame_bytes: usize,
}

impl Reader {
    /// Reads until the CLI ends, and tells everybody that it did.
    pub(super) async fn read(mut self, output: impl AsyncRead + Unpin) {
        // Whatever happens in here, a transport that panics too, nobody waits for more than there will be.
        let _over = Over { board: Arc::clone(&self.board), caretaker: self.caretaker.clone() };
        let mut lines = Lines::new(output, self.max_frame_bytes);
        while let Some(line) = self.next(&mut lines).await {
            self.take(line);
        }
        let ending = self.caretaker.ended_within(self.close_timeout).await;
        self.requests.abandon_all();
        if let Some(complaining) = self.complaining.take() {
            drop(tokio::time::timeout(LAST_WORDS, complaining).await);
        }
        for result in self.board.unasked_results() {
            if let ResultMessage::Error { errors, .. } = result {
                errors.iter().for_each(|error| self.complaints.add(error.as_bytes()));
            }
        }
        self.board.finish(&Error::Ended { ending, complaints: self.complaints.told() });
    }

    async fn next<R: AsyncRead + Unpin>(&mut self, lines: &mut Lines<R>) -> Option<Line> {
        self.board.room().await;
        self.outbox.room_for_answers().await;
        if let Some(line) = lines.ready() {
            return Some(line);
        }
        let next = tokio::select! {
            biased;
            line = lines.next() => line,
            _ = self.caretaker.ended() => match tokio::time::timeout(LAST_WORDS, lines.next()).await {
                Ok(line) => line,
                Err(_) => return None,
            },
        };
        next.ok().filter(|line| *line != Line::End)
    }

    fn take(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            // Nobody can know what the rest would have been, but it may be whole all the same.
            Line::Torn(line) => line,
            Line::TooLong => {
                self.deliver(Err(Error::FrameTooLong { limit: self.max_frame_bytes }));
                return;
            }
            Line::End => return,
        };
        if !line.trim_ascii_start().starts_with(b"{") {
            // Some versions print notes for developers between their messages.
            self.complaints.add(&line);
            return;
        }
        match Frame::parse(line) {
            Ok(frame) => self.route(frame),
            Err(error) => self.deliver(Err(error)),
        }
    }

    fn route(&mut self, frame: Frame) {
        let routed = match frame.kind() {
            FrameKind::ControlResponse => self.answer(&frame),
            FrameKind::ControlRequest => self.requests.begin(&frame),
            FrameKind::ControlCancelRequest => self.requests.withdraw(&frame),
            FrameKind::KeepAlive => Ok(()),
            _ => {
                self.deliver(Ok(frame));
                Ok(())
            }
        };
        if let Err(error) = routed {
            self.deliver(Err(error));
        }
    }

    fn deliver(&self, item: Result<Frame>) {
        for prompt in self.board.deliver(item) {
            // Without anybody to take it, the CLI has ended, which the prompt's turn will be told.
            drop(self.outbox.answer(&prompt));
        }
    }

    fn answer(&self, frame: &Frame) -> Result<()> {
        #[derive(Deserialize)]
        struct Answer {
            response: Response,
        }
        #[derive(Deserialize)]
        struct Response {
            request_id: String,
            subtype: String,
            #[serde(default)]
            response: Value,
            #[serde(default)]
            error: String,
            error_code: Option<String>,
        }
        #[derive(Deserialize)]
        struct Unreadable {
            response: Numbered,
        }
        #[derive(Deserialize)]
        struct Numbered {
            request_id: String,
        }
        let response = match frame.read() {
            Ok(Answer { response }) => response,
            Err(error) => {
                let Unreadable { response } = frame.read()?;
                self.board.answer(&response.request_id, |_| Err(error));
                return Ok(());
            }
        };
        let Response { request_id, subtype, response, error: message, error_code: code } = response;
        self.board.answer(&request_id, |request| match subtype.as_str() {
            "success" => Ok(response),
            _ => Err(Error::Refused { request, message, code }),
        });
        Ok(())
    }
}

/// Tells everybody that it is over, and has the agent end, unless that has happened already.
struct Over {
    board: Arc<Board>,
    caretaker: Caretaker,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.caretaker.end();
        self.board.finish(&Error::Ended { ending: Ending::Unknown, complaints: String::new() });
    }
}
