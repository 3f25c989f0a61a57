//! The sockets: a loopback address, and a Unix socket that only its owner can open.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};

use crate::connections::{Connections, pause};
use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::keeper::{Keeper, over};
use crate::peer::Peer;
use crate::settings::Settings;
use crate::{private_file, routes};

/// A keeper that runs.
#[derive(Debug)]
pub struct Running {
    keeper: Arc<Keeper>,
    tcp: TcpListener,
    unix: UnixListener,
    _follower: Follower,
    _lock: File,
}

impl Running {
    /// Starts a keeper. It answers as soon as [`until`](Running::until) is called.
    pub async fn start(mut settings: Settings) -> Result<Self> {
        // Whatever happens to the folder's name later, everything here goes by where it leads now.
        if let Some(folder) = &mut settings.claude_folder
            && let Ok(there) = folder.canonicalize()
        {
            *folder = there;
        }
        let home = settings.home.clone();
        private_file::folder(&home).map_err(Error::io("make", &home))?;
        let lock = private_file::lock(&home, "keeper")?;
        let (tcp, address) = listen(settings.listen, settings.tls.is_some(), &settings.allowed_hosts).await?;
        let unix = unix(&socket(&home))?;
        let keeper = Arc::new(Keeper::new(settings, address)?);
        let follower = Follower::start(&keeper)?;
        keeper.recall_pending();
        keeper.begin_with_stored().await?;
        let path = home.join("address");
        let note = format!("{}\n", keeper.door.hosts.own());
        private_file::replace(&path, note.as_bytes()).map_err(Error::io("write", &path))?;
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "the keeper is ready");
        Ok(Self { keeper, tcp, unix, _follower: follower, _lock: lock })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.keeper.door.address
    }

    /// Returns its address, as people type it.
    pub fn url(&self) -> &str {
        self.keeper.door.hosts.own()
    }

    /// Returns an address that logs a browser in, once, within a minute.
    pub fn one_time_url(&self) -> String {
        self.keeper.door.one_time_url()
    }

    /// Returns how many sessions it knows.
    pub fn sessions(&self) -> usize {
        self.keeper.catalogue().len()
    }

    /// Returns what is missing to drive sessions with, and how to get it; sessions are only read then.
    pub fn missing(&self) -> Option<String> {
        self.keeper.missing()
    }

    /// Answers until it is told to end: by whoever started it, or over its socket.
    pub async fn until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Self { keeper, tcp, unix, _follower, _lock } = self;
        let home = keeper.settings.home.clone();
        let mut ending = keeper.ending.subscribe();
        let connections = Connections::new(routes::app(&keeper), keeper.ending.subscribe());
        tokio::spawn(Arc::clone(&keeper).end_idle());
        tokio::spawn(Arc::clone(&keeper).watch_store());
        if keeper.shares() {
            tokio::spawn(Arc::clone(&keeper).make_up());
        }
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = over(&mut ending) => break,
                accepted = tcp.accept() => match accepted {
                    Ok((stream, _)) => connections.serve_tcp(stream, keeper.settings.tls.as_deref()),
                    Err(error) => pause(&error).await,
                },
                accepted = unix.accept() => match accepted {
                    Ok((stream, _)) => {
                        let peer = Peer::of(&stream, &keeper.driven());
                        connections.serve(stream, peer);
                    }
                    Err(error) => pause(&error).await,
                },
            }
        }
        tracing::info!("the keeper ends");
        keeper.ending.send_replace(true);
        drop((tcp, unix));
        // Nobody finds a keeper here that is about to end.
        let _ = (fs::remove_file(home.join("address")), fs::remove_file(socket(&home)));
        connections.finish().await;
        keeper.finish().await;
        keeper.store().close()?;
        Ok(())
    }
}

/// Listens on a loopback address, or on any other one that is protected and has a name.
pub(crate) async fn listen(on: SocketAddr, tls: bool, names: &[String]) -> Result<(TcpListener, SocketAddr)> {
    match on.ip().is_loopback() {
        false if !tls => return Err(Error::NotLoopback(on)),
        false if names.is_empty() => return Err(Error::NoHostName(on)),
        _ => {}
    }
    let fail = Error::io("listen on", on.to_string());
    let tcp = TcpListener::bind(on).await;
    let bound = tcp.and_then(|tcp| tcp.local_addr().map(|address| (tcp, address)));
    bound.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Error::AddressTaken(on),
        _ => fail(error),
    })
}

/// Returns the place of the Unix socket. It is in the keeper's own folder, which nobody else can look into; a path that is
/// too long for the system is refused, because no shorter one is as private.
pub(crate) fn socket(home: &Path) -> PathBuf {
    home.join("socket")
}

/// Returns a function that says what is wrong with a socket, or with its path.
pub(crate) fn cannot(action: &'static str, socket: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |error| match error.kind() {
        std::io::ErrorKind::InvalidInput => Error::PathTooLong(socket.to_owned()),
        _ => Error::io(action, socket)(error),
    }
}

fn unix(path: &Path) -> Result<UnixListener> {
    // We hold the lock, so that whoever made it is gone.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove", path)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(cannot("listen on", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(Error::io("close", path))?;
    Ok(listener)
}
