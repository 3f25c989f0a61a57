//! One client of the stream: what it wants to know, and how far it has come.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::frame::Frame;
use crate::gate::Caller;
use crate::hub::Cursor;
use crate::keeper::{Keeper, over};
use crate::problem::Problem;
use crate::scope::Scope;
use crate::topic::Interest;
use crate::wire::Wire;

/// A client that says nothing for so many heartbeats, not even to a ping, is gone.
const SILENCE: u32 = 4;
/// How much is taken from the ring at once.
const BATCH: usize = 128 << 10;
/// The largest frame that a client may send, and how many topics it may have.
const FRAME: usize = 64 << 10;
/// How much is read from a client at once. What clients say is short, and the whole of this buffer is cleared each time a
/// client's task wakes up, which is at every event: 128 KiB, the default, for each of them and each client adds up.
const READ: usize = 1 << 10;
const TOPICS: usize = 1024;

/// What a client says.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    Hello,
    Subscribe {
        topics: Vec<String>,
        #[serde(default)]
        after: Option<After>,
    },
    Unsubscribe {
        topics: Vec<String>,
    },
}

/// Up to where a client knows everything.
#[derive(Deserialize)]
struct After {
    epoch: String,
    seq: u64,
}

/// Answers the request for a WebSocket. The gate has looked at everything else.
pub(crate) fn upgrade(
    keeper: Arc<Keeper>,
    caller: Caller,
    scope: Scope,
    mut request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers();
    let has = |name: header::HeaderName, word: &str| {
        let values = headers.get_all(name);
        values
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.to_ascii_lowercase().contains(word))
    };
    let is_upgrade = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let is_known = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let (Some(accept), true, true) = (key, is_upgrade, is_known) else {
        return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, "not-a-websocket")
            .detail("the stream is a WebSocket")
            .hint("scripts use `/api/v1/events`"));
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let config = WebSocketConfig::default()
                    .read_buffer_size(READ)
                    .max_message_size(Some(FRAME))
                    .max_frame_size(Some(FRAME));
                let io = TokioIo::new(upgraded);
                let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
                Client::new(keeper, scope, socket).run(&caller).await;
            }
            Err(error) => tracing::debug!(%error, "a client left before its stream began"),
        }
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty());
    response.map_err(|error| Problem::failed(&error))
}

struct Client<S> {
    keeper: Arc<Keeper>,
    scope: Scope,
    socket: WebSocketStream<S>,
    interest: Interest,
    cursor: Cursor,
    heard: Instant,
}

/// Why a stream ends.
enum End {
    Left,
    TooSlow,
    Over,
}

impl From<SocketError> for End {
    fn from(_: SocketError) -> Self {
        End::Left
    }
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Client<S> {
    fn new(keeper: Arc<Keeper>, scope: Scope, socket: WebSocketStream<S>) -> Self {
        let (cursor, _) = keeper.hub.now();
        Self { keeper, scope, socket, interest: Interest::default(), cursor, heard: Instant::now() }
    }

    async fn run(mut self, caller: &Caller) {
        let keeper = Arc::clone(&self.keeper);
        let _counted = keeper.door.metrics.clients.one();
        if let Err(End::TooSlow) = self.converse(caller).await {
            // A frame was cut in the middle: whatever followed would make no sense.
            keeper.door.metrics.resyncs.add(1);
            return;
        }
        let _ = tokio::time::timeout(Duration::from_secs(1), self.socket.close(None)).await;
    }

    async fn converse(&mut self, caller: &Caller) -> Result<(), End> {
        let keeper = Arc::clone(&self.keeper);
        let (mut moved, mut ending) = (keeper.hub.listen(), keeper.ending.subscribe());
        let mut beat = tokio::time::interval(keeper.settings.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        let (over, logged_out) = (over(&mut ending), caller.until_over(&keeper.door));
        tokio::pin!(over, logged_out);
        loop {
            // Whatever comes after this is noticed, whatever came before is taken.
            moved.mark_unchanged();
            while self.pass_on().await? {}
            tokio::select! {
                // Events come last, so that however many there are nothing else is put off.
                biased;
                () = &mut over => return Err(End::Over),
                () = &mut logged_out => return Err(End::Over),
                said = self.socket.next() => match said {
                    Some(said) => self.hear(said?).await?,
                    None => return Err(End::Left),
                },
                _ = beat.tick() => self.beat().await?,
                _ = moved.changed() => {}
            }
        }
    }

    /// Passes on what there is; returns whether there may be more.
    async fn pass_on(&mut self) -> Result<bool, End> {
        let (keeper, cursor, interest) = (&self.keeper, &mut self.cursor, &self.interest);
        let taken = match self.scope.is_narrow() {
            false => keeper.hub.take(cursor, interest, BATCH).map(|wire| (wire.len() >= BATCH, wire)),
            true => self
                .scope
                .take(keeper, cursor, interest, BATCH)
                .map(|frames| (!frames.is_empty(), frames.into_iter().collect())),
        };
        match taken {
            Some((_, wire)) if wire.len() == 0 => Ok(false),
            Some((is_more, wire)) => self.send(wire).await.map(|()| is_more),
            None => {
                // The ring went on without this client: it reads anew, and goes on from here.
                let (cursor, seq) = self.keeper.hub.now();
                self.cursor = cursor;
                self.keeper.door.metrics.resyncs.add(1);
                let word = self.keeper.hub.word("resync", json!({ "seq": seq, "reason": "too-slow" }));
                self.say(word).await.map(|()| true)
            }
        }
    }

    async fn say(&mut self, word: Frame) -> Result<(), End> {
        self.send([word].into_iter().collect()).await
    }

    /// Writes frames as they are: they were made once, for everybody.
    async fn send(&mut self, wire: Wire) -> Result<(), End> {
        self.keeper.door.metrics.sent.add(wire.frames() as u64);
        let socket = &mut self.socket;
        let write = async {
            // What the socket itself has to say, such as pongs, goes first and whole.
            socket.flush().await?;
            wire.write_to(socket.get_mut()).await.map_err(|_| End::Left)
        };
        match tokio::time::timeout(self.keeper.settings.patience, write).await {
            Ok(written) => written,
            Err(_) => Err(End::TooSlow),
        }
    }

    async fn beat(&mut self) -> Result<(), End> {
        if self.heard.elapsed() > self.keeper.settings.heartbeat * SILENCE {
            return Err(End::Left);
        }
        let word = self.keeper.hub.word("heartbeat", json!({ "seq": self.keeper.hub.seq() }));
        self.say(word).await?;
        self.socket.send(Message::Ping(Bytes::new())).await?;
        Ok(())
    }

    async fn hear(&mut self, said: Message) -> Result<(), End> {
        self.heard = Instant::now();
        match said {
            Message::Text(text) => match serde_json::from_str::<Said>(&text) {
                Ok(said) => self.answer(said).await,
                Err(error) => self.complain(Problem::bad_request(error.to_string())).await,
            },
            Message::Binary(_) => self.complain(Problem::bad_request("frames are text")).await,
            Message::Close(_) => Err(End::Left),
            _ => Ok(()),
        }
    }

    async fn complain(&mut self, problem: Problem) -> Result<(), End> {
        let word = self.keeper.hub.word("error", json!({ "problem": problem }));
        self.say(word).await
    }

    async fn answer(&mut self, said: Said) -> Result<(), End> {
        match said {
            Said::Hello => {
                let (cursor, seq) = self.keeper.hub.now();
                if self.interest == Interest::default() {
                    self.cursor = cursor;
                }
                let about =
                    json!({ "seq": seq, "heartbeat_seconds": self.keeper.settings.heartbeat.as_secs_f64() });
                let word = self.keeper.hub.word("welcome", about);
                self.say(word).await
            }
            Said::Unsubscribe { topics } => {
                topics.iter().for_each(|topic| self.interest.remove(topic));
                Ok(())
            }
            Said::Subscribe { topics, after } => self.subscribe(&topics, after).await,
        }
    }

    async fn subscribe(&mut self, topics: &[String], after: Option<After>) -> Result<(), End> {
        if !topics.iter().all(|topic| Interest::is_topic(topic)) {
            return self.complain(Problem::bad_request("a topic is `session:ID`, `sessions` or `all`")).await;
        }
        if self.interest.len() + topics.len() > TOPICS {
            return self.complain(Problem::bad_request("these are too many topics")).await;
        }
        self.keeper.look_at_topics(topics.iter().map(String::as_str)).await;
        // What comes from here on reaches the client as one who wants it; what it missed is replayed first.
        while self.pass_on().await? {}
        let hub = &self.keeper.hub;
        let fresh = Interest::of(topics.iter().map(String::as_str));
        let here = self.cursor;
        let missed = match &after {
            None => Some(Vec::new()),
            Some(After { epoch, seq }) => match hub.after(epoch, *seq) {
                Some(from) if from.0 <= here.0 => self.scope.between(&self.keeper, from, here, &fresh),
                Some(_) => Some(Vec::new()),
                None => None,
            },
        };
        topics.iter().for_each(|topic| self.interest.add(topic));
        let seq = hub.seq_at(here);
        let mut frames = match missed {
            Some(frames) => frames,
            None => {
                vec![hub.word("resync", json!({ "topics": topics, "seq": seq, "reason": "not-covered" }))]
            }
        };
        frames.extend(self.keeper.partials(&fresh, &self.scope));
        frames.push(self.keeper.hub.word("caught_up", json!({ "topics": topics, "seq": seq })));
        self.send(frames.into_iter().collect()).await
    }
}
