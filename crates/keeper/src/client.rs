//! A keeper's other end, over its Unix socket: for programs of the same user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::server::{cannot, socket};

/// Asks a keeper.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// Names the keeper whose own folder this is. Nothing is asked yet.
    pub fn new(home: &Path) -> Self {
        Self { socket: socket(home) }
    }

    /// Asks for something: `client.get("/sessions")`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    /// Has something done.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Has something taken away.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.ask(Method::DELETE, path, None::<&()>).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T> {
        let bytes = self.send(method, path, body).await?;
        // What has no content is a unit, or nothing.
        let bytes = if bytes.is_empty() { Bytes::from_static(b"null") } else { bytes };
        serde_json::from_slice(&bytes).map_err(|_| Error::BadAnswer)
    }

    async fn send(&self, method: Method, path: &str, body: Option<&impl Serialize>) -> Result<Bytes> {
        use std::io::ErrorKind;
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Error::NotRunning,
            _ => cannot("connect to", &self.socket)(error),
        })?;
        let fail = |error: hyper::Error| Error::io("ask", &self.socket)(std::io::Error::other(error));
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(fail)?;
        tokio::spawn(connection);
        let json = body.map(|body| serde_json::to_vec(body).unwrap_or_default()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("host", "localhost")
            .header("x-rethread", "1")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(json)))
            .map_err(|_| Error::BadAnswer)?;
        let response = sender.send_request(request).await.map_err(fail)?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(fail)?.to_bytes();
        match status.is_success() {
            true => Ok(bytes),
            false => match serde_json::from_slice::<Problem>(&bytes) {
                Ok(problem) => Err(Error::Refused(Arc::new(problem))),
                Err(_) => Err(Error::BadAnswer),
            },
        }
    }
}
