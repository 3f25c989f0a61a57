//! A keeper that other machines may come to: only over TLS, and only by its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rethread_keeper::{Error, Running, RunningUi, Tls, UiSettings};
use serde_json::json;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use crate::kit::{Home, Kept};

const NAME: &str = "keeper.example";

/// A certificate of our own making, in files.
struct Papers {
    certificate: PathBuf,
    key: PathBuf,
    trusted: CertificateDer<'static>,
}

impl Papers {
    fn make(folder: &Path) -> Self {
        Self::of(folder, NAME)
    }

    fn of(folder: &Path, name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Self { certificate, key, trusted: made.cert.der().clone() }
    }

    fn tls(&self) -> Arc<Tls> {
        Arc::new(Tls::read(&self.certificate, &self.key).unwrap())
    }

    /// Says something to a keeper, as whoever trusts these does. Returns what came back; nothing if no TLS was agreed upon.
    fn ask(&self, kept: &Kept, head: &str, body: &str) -> Option<String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        let client = ClientConnection::new(config, NAME.try_into().unwrap()).unwrap();
        let tcp = TcpStream::connect(("127.0.0.1", kept.address.port())).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut stream = StreamOwned::new(client, tcp);
        let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).ok()?;
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        // The head is all that is looked at, and an upgraded connection has no end.
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(count) => answer.extend_from_slice(&piece[..count]),
            }
        }
        (!answer.is_empty()).then(|| String::from_utf8_lossy(&answer).to_lowercase())
    }
}

#[test]
fn other_machines_are_let_in_only_over_tls_and_by_name() {
    let home = Home::new();
    let papers = Papers::make(home.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut settings = home.settings();
    settings.listen = "0.0.0.0:0".parse().unwrap();
    settings.tls = Some(papers.tls());
    let nameless = runtime.block_on(Running::start(settings.clone()));
    assert!(matches!(nameless, Err(Error::NoHostName(_))), "{nameless:?}");
    settings.allowed_hosts = vec![NAME.to_owned()];
    let kept = Kept::start(settings);
    let (port, token) = (kept.address.port(), &kept.token);
    let url = format!("https://{NAME}:{port}");
    assert!(kept.boot.starts_with(&format!("{url}/#boot=")), "{}", kept.boot);
    assert_eq!(fs::read_to_string(kept.home.join("address")).unwrap().trim_end(), url);

    let get =
        |host: &str| format!("GET /api/v1/info HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}");
    let by_name = papers.ask(&kept, &get(&format!("{NAME}:{port}")), "").unwrap();
    assert!(by_name.starts_with("http/1.1 200"), "{by_name}");
    let by_another = papers.ask(&kept, &get(&format!("evil.example:{port}")), "").unwrap();
    assert!(by_another.starts_with("http/1.1 421"), "{by_another}");

    // Nothing is answered in the open.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    plain.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {NAME}:{port}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
}

#[test]
fn a_page_that_came_over_tls_logs_in_and_streams_and_one_that_did_not_is_refused() {
    let home = Home::new();
    let papers = Papers::make(home.path());
    let mut settings = home.settings();
    (settings.tls, settings.allowed_hosts) = (Some(papers.tls()), vec![NAME.to_owned()]);
    let kept = Kept::start(settings);
    let host = format!("{NAME}:{}", kept.address.port());
    let code = kept.boot.split_once("#boot=").unwrap().1;
    let exchange = |origin: &str| {
        let head = format!(
            "POST /api/v1/auth/exchange HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nX-Rethread: 1\r\n\
             Content-Type: application/json"
        );
        papers.ask(&kept, &head, &json!({ "code": code }).to_string()).unwrap()
    };
    let in_the_open = exchange(&format!("http://{host}"));
    assert!(in_the_open.starts_with("http/1.1 403"), "{in_the_open}");
    let logged_in = exchange(&format!("https://{host}"));
    assert!(logged_in.starts_with("http/1.1 204"), "{logged_in}");
    let cookie = logged_in.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; secure"), "{cookie}");
    let stream = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        kept.token
    );
    let upgraded = papers.ask(&kept, &stream, "").unwrap();
    assert!(upgraded.starts_with("http/1.1 101"), "{upgraded}");
}

#[test]
fn a_certificate_that_was_renewed_is_shown_and_one_that_makes_no_sense_is_not() {
    let home = Home::new();
    let papers = Papers::make(home.path());
    let mut settings = home.settings();
    (settings.tls, settings.allowed_hosts) = (Some(papers.tls()), vec![NAME.to_owned()]);
    let kept = Kept::start(settings);
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {NAME}:{}", kept.address.port());
    let is_trusted = |papers: &Papers| papers.ask(&kept, &head, "").is_some();
    assert!(is_trusted(&papers));
    let renewed = Papers::make(home.path());
    assert!(is_trusted(&renewed) && !is_trusted(&papers));
    fs::write(&renewed.certificate, "no certificate").unwrap();
    assert!(is_trusted(&renewed), "half a renewal closes nobody out");
    let unread = Tls::read(&renewed.certificate, &renewed.key);
    assert!(matches!(&unread, Err(Error::BadTls { path, .. }) if *path == renewed.certificate), "{unread:?}");
}

#[test]
fn a_page_apart_reaches_its_keeper_over_tls_and_only_if_somebody_vouches_for_it() {
    let (home, apart) = (Home::new(), Home::new());
    // The name under which this machine finds itself.
    let papers = Papers::of(home.path(), "localhost");
    let mut settings = home.settings();
    settings.tls = Some(papers.tls());
    let kept = Kept::start(settings);
    let url = format!("https://localhost:{}", kept.address.port());
    let mut settings =
        UiSettings::new(apart.path().join("ui"), url.parse().unwrap(), kept.home.join("token"));
    settings.listen = "127.0.0.1:0".parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stranger = runtime.block_on(RunningUi::start(settings.clone()));
    assert!(matches!(stranger, Err(Error::Unreachable { .. })), "{stranger:?}");
    settings.keeper_ca = Some(papers.certificate.clone());
    let page = Kept::apart(settings);
    assert_eq!(page.ask("GET", "/api/v1/sessions", &[], "").good()["items"], json!([]));
}
