//! A page that is served apart from its keeper.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, Router, middleware};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::pass::{pass, stream};
use super::remote::Remote;
use super::{KeeperUrl, UiSettings};
use crate::connections::{Connections, pause};
use crate::credentials::Credentials;
use crate::door::Door;
use crate::error::{Error, Result};
use crate::gate::{BODY, gate};
use crate::hosts::Scheme;
use crate::keeper::over;
use crate::problem::Problem;
use crate::routes::{about, auth, route_table};
use crate::tls::Tls;
use crate::{page, private_file, server};

/// What is done here and not at the keeper.
const OWN: [&str; 7] = [
    "/",
    "/healthz",
    "/assets/{file}",
    "/api/v1/healthz",
    "/api/v1/auth/exchange",
    "/api/v1/auth/logout",
    "/api/v1/auth/boot",
];
/// What no page does to a keeper that it is not served by.
const WITHHELD: [&str; 1] = ["/api/v1/stop"];

/// What all of its parts share.
#[derive(Debug)]
pub(super) struct Ui {
    door: Arc<Door>,
    pub(super) remote: Remote,
    /// True once it is to end.
    pub(super) ending: watch::Sender<bool>,
}

/// A page apart from its keeper, being served.
#[derive(Debug)]
pub struct RunningUi {
    ui: Arc<Ui>,
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    keeper_version: String,
    _lock: File,
}

impl RunningUi {
    /// Looks whether the keeper is there and lets us in, and starts. It answers as soon as [`until`](Self::until) is called.
    pub async fn start(settings: UiSettings) -> Result<Self> {
        let remote = Remote::new(&settings)?;
        let keeper_version = remote.check().await?;
        let home = &settings.home;
        private_file::folder(home).map_err(Error::io("make", home))?;
        let lock = private_file::lock(home, "page")?;
        let (tls, names) = (settings.tls.clone(), &settings.allowed_hosts);
        let (tcp, address) = server::listen(settings.listen, tls.is_some(), names).await?;
        let scheme = if tls.is_some() { Scheme::Https } else { Scheme::Http };
        let door = Door::new(home, address, names, scheme, Credentials::of_pages(home))?;
        let ui = Ui { door: Arc::new(door), remote, ending: watch::Sender::new(false) };
        Ok(Self { ui: Arc::new(ui), tcp, tls, keeper_version, _lock: lock })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.ui.door.address
    }

    /// Returns its address, as people type it.
    pub fn url(&self) -> &str {
        self.ui.door.hosts.own()
    }

    /// Returns an address that logs a browser in, once, within a minute.
    pub fn one_time_url(&self) -> String {
        self.ui.door.one_time_url()
    }

    /// Returns the keeper's address.
    pub fn keeper(&self) -> &KeeperUrl {
        self.ui.remote.url()
    }

    /// Returns the version of the keeper's program.
    pub fn keeper_version(&self) -> &str {
        &self.keeper_version
    }

    /// Answers until it is told to end.
    pub async fn until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Self { ui, tcp, tls, keeper_version: _, _lock } = self;
        let connections = Connections::new(app(&ui), ui.ending.subscribe());
        let mut ending = ui.ending.subscribe();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = over(&mut ending) => break,
                accepted = tcp.accept() => match accepted {
                    Ok((stream, _)) => connections.serve_tcp(stream, tls.as_deref()),
                    Err(error) => pause(&error).await,
                },
            }
        }
        ui.ending.send_replace(true);
        drop(tcp);
        connections.finish().await;
        Ok(())
    }
}

/// Puts everything together: what is done here, what is passed on, and the gate around all of it. What is in no table does
/// not exist, as at the keeper.
fn app(ui: &Arc<Ui>) -> Router {
    use axum::routing::post;
    let own = Router::new()
        .route("/", get(page::html))
        .route("/assets/{file}", get(page::asset))
        .route("/healthz", get(about::healthz))
        .route("/api/v1/healthz", get(about::healthz))
        .route("/api/v1/auth/exchange", post(auth::exchange))
        .route("/api/v1/auth/logout", post(auth::logout))
        .route("/api/v1/auth/boot", post(auth::boot));
    let passed = |path: &str| !OWN.contains(&path) && !WITHHELD.contains(&path);
    let table = route_table().into_iter().filter(|(_, path)| passed(path));
    let router = table.fold(own, |router, (method, path)| {
        let method =
            Method::from_bytes(method.as_bytes()).ok().and_then(|it| MethodFilter::try_from(it).ok());
        match method {
            Some(method) if path == "/api/v1/stream" => router.route(&path, on(method, stream)),
            Some(method) => router.route(&path, on(method, pass)),
            None => unreachable!("the table has methods that there are"),
        }
    });
    router
        .fallback(async || Problem::not_found("place"))
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
        .layer(DefaultBodyLimit::max(usize::try_from(BODY).unwrap_or(usize::MAX)))
        .layer(Extension(Arc::clone(&ui.door)))
        .layer(middleware::from_fn_with_state(Arc::clone(&ui.door), gate))
        .with_state(Arc::clone(ui))
}
