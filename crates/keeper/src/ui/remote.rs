//! The keeper at the other end, asked with its token.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use super::{KeeperUrl, UiSettings, tls};
use crate::API;
use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::scope::ROOTS;

/// What a keeper says of itself is shorter than this.
const INFO: usize = 1 << 20;
/// What a keeper speaks that does not say what.
const OTHER: &str = "another version";

/// A keeper, and the way to it.
#[derive(Debug)]
pub(super) struct Remote {
    url: KeeperUrl,
    client: Client<HttpsConnector<HttpConnector>, Body>,
    token_file: PathBuf,
    token: RwLock<HeaderValue>,
    /// What of it is shown, as the keeper is told.
    roots: Option<HeaderValue>,
}

/// What has to be known of a keeper before it is shown.
#[derive(Deserialize)]
struct Info {
    api: Option<u32>,
    version: String,
}

impl Remote {
    /// Reads the token. Nothing is asked yet.
    pub(super) fn new(settings: &UiSettings) -> Result<Self> {
        let roots = &settings.allowed_roots;
        if let Some(root) = roots.iter().find(|root| !root.is_absolute()) {
            return Err(Error::NoSuchRoot(root.clone()));
        }
        let json = serde_json::to_vec(roots).unwrap_or_default();
        let roots = (!roots.is_empty()).then(|| HeaderValue::from_bytes(&json)).transpose();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(std::time::Duration::from_secs(10)));
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls::client(settings)?);
        let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Self {
            url: settings.keeper.clone(),
            client: Client::builder(TokioExecutor::new()).build(connector),
            token: RwLock::new(bearer(&settings.token_file)?),
            token_file: settings.token_file.clone(),
            roots: roots.map_err(|_| Error::NoSuchRoot(settings.allowed_roots[0].clone()))?,
        })
    }

    pub(super) fn url(&self) -> &KeeperUrl {
        &self.url
    }

    /// Looks whether a keeper is there that knows us and can be understood; returns its version.
    pub(super) async fn check(&self) -> Result<String> {
        let url = self.url.to_string();
        let not_a_keeper = || Error::NotAKeeper { url: url.clone() };
        let answer = self.ask(Method::GET, "/api/v1/info", HeaderMap::new(), Body::empty()).await;
        let answer = answer.map_err(|_| Error::Unreachable { url: url.clone() })?;
        let status = answer.status();
        let body =
            Limited::new(answer.into_body(), INFO).collect().await.map_err(|_| not_a_keeper())?.to_bytes();
        let problem: Option<Problem> = serde_json::from_slice(&body).ok();
        match (status, problem) {
            (StatusCode::OK, _) => {
                let info: Info = serde_json::from_slice(&body).map_err(|_| not_a_keeper())?;
                match info.api {
                    Some(API) => Ok(info.version),
                    Some(api) => Err(Error::OtherVersion { url, theirs: format!("version {api}") }),
                    None => Err(Error::OtherVersion { url, theirs: OTHER.into() }),
                }
            }
            (StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS, Some(_)) => {
                Err(Error::WrongToken { url, path: self.token_file.clone() })
            }
            // A keeper, and none that has this version.
            (StatusCode::NOT_FOUND, Some(_)) => Err(Error::OtherVersion { url, theirs: OTHER.into() }),
            (_, Some(problem)) => Err(Error::Refused(Arc::new(problem))),
            (_, None) => Err(not_a_keeper()),
        }
    }

    /// Asks the keeper.
    pub(super) async fn ask(
        &self,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let uri = Uri::builder().scheme(self.url.scheme().as_str()).authority(self.url.authority().clone());
        let uri = uri.path_and_query(path_and_query).build().unwrap_or_default();
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner).clone();
        request.headers_mut().insert(header::AUTHORIZATION, token);
        if let Some(roots) = &self.roots {
            request.headers_mut().insert(ROOTS, roots.clone());
        }
        self.client.request(request).await
    }

    /// Says why the keeper did not let us in, and reads the token anew: it may have another one since.
    pub(super) fn turned_away(&self) -> Problem {
        match bearer(&self.token_file) {
            Ok(token) => *self.token.write().unwrap_or_else(PoisonError::into_inner) = token,
            Err(error) => tracing::warn!(%error, "the token cannot be read anew"),
        }
        let error = Error::WrongToken { url: self.url.to_string(), path: self.token_file.clone() };
        Problem::new(StatusCode::BAD_GATEWAY, "keeper-token")
            .detail(error.to_string())
            .hint("copy the token of that keeper's folder to that file")
            .retryable()
    }

    pub(super) fn unreachable(&self) -> Problem {
        Problem::new(StatusCode::BAD_GATEWAY, "keeper-unreachable")
            .detail(Error::Unreachable { url: self.url.to_string() }.to_string())
            .hint(
                "`rethread serve` starts one there; if a tunnel leads to it, look whether that still stands",
            )
            .retryable()
    }
}

/// Reads a token, as a header that no log shows.
fn bearer(path: &Path) -> Result<HeaderValue> {
    let fail = |source| Error::NoToken { path: path.to_owned(), source: Arc::new(source) };
    let text = std::fs::read_to_string(path).map_err(fail)?;
    let token = Some(text.trim()).filter(|token| !token.is_empty());
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    let mut value =
        value.ok_or_else(|| fail(io::Error::new(io::ErrorKind::InvalidData, "it is no token")))?;
    value.set_sensitive(true);
    Ok(value)
}
