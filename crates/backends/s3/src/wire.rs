//! Requests over HTTP, on connections that are kept, and what the server's clock says.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::header::DATE;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::{SignedDuration, Timestamp};
use object_store::client::{
    HttpClient, HttpConnector as Connect, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// How long making a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection that nobody uses is kept; servers end theirs after about a minute.
const KEPT: Duration = Duration::from_secs(20);

/// Who vouches for servers, as this machine has it. Read once: that takes longer than a request.
static TRUSTED: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut trusted = RootCertStore::empty();
    // One that cannot be read vouches for nobody; the others may.
    trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(trusted)
});

/// What makes the way to a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connector {
    pub(crate) clock: Clock,
}

impl Connect for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let begun = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(begun)?
            .with_root_certificates(Arc::clone(&TRUSTED))
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let may_be_open = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let builder = if may_be_open { builder.https_or_http() } else { builder.https_only() };
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new()).pool_idle_timeout(KEPT);
        // Whether a request may be sent twice is decided where its meaning is known.
        client.retry_canceled_requests(false);
        let client = client.build(builder.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(Wire { client, clock: self.clock.clone() }))
    }
}

/// Requests over HTTP.
#[derive(Debug)]
struct Wire {
    client: Client<HttpsConnector<HttpConnector>, HttpRequestBody>,
    clock: Clock,
}

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.request(request).await.map_err(|error| {
            let is_certain = error.is_connect();
            interrupted(is_certain, Box::new(error))
        })?;
        let (head, body) = response.into_parts();
        if let Some(date) = head.headers.get(DATE).and_then(|date| date.to_str().ok()) {
            self.clock.learn(date);
        }
        let status = head.status;
        // What is not implemented will not be a moment later.
        let is_passing = (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
            || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
        if is_passing {
            // Its words say why; without them, the number has to do.
            let said = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let text = format!("{status} {}", String::from_utf8_lossy(&said));
            // 503 and 429 are given before anything is done; of 500 and 504 nobody knows.
            let is_certain =
                [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
            return Err(interrupted(is_certain, text.into()));
        }
        let body = HttpResponseBody::new(body.map_err(|error| interrupted(false, Box::new(error))));
        Ok(HttpResponse::from_parts(head, body))
    }
}

fn interrupted(is_certain: bool, source: Box<dyn StdError + Send + Sync>) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Interrupted { is_certain, source })
}

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the request was interrupted")]
pub(crate) struct Interrupted {
    /// Whether it is certain that nothing was done.
    pub(crate) is_certain: bool,
    source: Box<dyn StdError + Send + Sync>,
}

/// How far the server's clock is ahead of ours, as far as its answers told; never further than it really is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<AtomicI64>);

impl Clock {
    fn learn(&self, date: &str) {
        if let Ok(date) = jiff::fmt::rfc2822::parse(date) {
            let ahead = date.timestamp().duration_since(Timestamp::now());
            self.0.store(ahead.as_millis() as i64, Ordering::Relaxed);
        }
    }

    /// Returns what the server's clock showed when ours showed this, or a little less.
    pub(crate) fn theirs(&self, ours: Timestamp) -> Timestamp {
        let ahead = SignedDuration::from_millis(self.0.load(Ordering::Relaxed));
        ours.saturating_add(ahead).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
