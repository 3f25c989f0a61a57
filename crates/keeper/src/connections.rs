//! Connections: how many, how patiently, and how they end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::keeper::over;
use crate::peer::Peer;
use crate::tls::Tls;

/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How large that head may be.
const HEAD_BYTES: usize = 64 << 10;
/// How many connections there may be.
const MOST: usize = 4096;
/// How long the end waits for what is still being answered.
const GRACE: Duration = Duration::from_secs(5);

/// Serves whoever is let in.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    app: Router,
    ending: watch::Receiver<bool>,
    room: Arc<Semaphore>,
}

impl Connections {
    pub(crate) fn new(app: Router, ending: watch::Receiver<bool>) -> Self {
        Self { app, ending, room: Arc::new(Semaphore::new(MOST)) }
    }

    /// Serves whoever came over the network.
    pub(crate) fn serve_tcp(&self, stream: TcpStream, tls: Option<&Tls>) {
        // Frames are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.serve(stream, Peer::Tcp) };
        let Some(place) = self.place() else { return };
        let (shaken, own) = (tls.acceptor().accept(stream), self.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HEAD, shaken).await {
                Ok(Ok(stream)) => own.serve_at(place, stream, Peer::Tcp),
                Ok(Err(error)) => tracing::debug!(%error, "no TLS was agreed upon"),
                Err(_) => tracing::debug!("nobody went on with TLS"),
            }
        });
    }

    pub(crate) fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(&self, stream: S, peer: Peer) {
        if let Some(place) = self.place() {
            self.serve_at(place, stream, peer);
        }
    }

    /// Full: whoever comes now is not let in.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    fn serve_at<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        stream: S,
        peer: Peer,
    ) {
        let app = self.app.clone().layer(axum::Extension(peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
            .with_upgrades();
        let mut ending = self.ending.clone();
        tokio::spawn(async move {
            let _place = place;
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = over(&mut ending) => {
                    // What is being answered is answered to its end.
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            // A client that leaves in the middle is no failure of ours.
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }

    /// Waits a while for what is still being answered.
    pub(crate) async fn finish(&self) {
        let everybody = self.room.acquire_many(MOST as u32);
        let _ = tokio::time::timeout(GRACE, everybody).await;
    }
}

/// Too many open files, most likely: others have to end first.
pub(crate) async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "a connection cannot be taken");
    tokio::time::sleep(Duration::from_millis(100)).await;
}
