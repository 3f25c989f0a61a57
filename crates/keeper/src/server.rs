//! The sockets: a loopback address, and a Unix socket that only its owner can open.

use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};

use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::keeper::{Keeper, over};
use crate::peer::Peer;
use crate::settings::Settings;
use crate::{private_file, routes};

/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How large that head may be.
const HEAD_BYTES: usize = 64 << 10;
/// How many connections there may be.
const CONNECTIONS: usize = 4096;
/// How long the end waits for what is still being answered.
const GRACE: Duration = Duration::from_secs(5);

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
        if !settings.listen.ip().is_loopback() {
            return Err(Error::NotLoopback(settings.listen));
        }
        // Whatever happens to the folder's name later, everything here goes by where it leads now.
        if let Some(folder) = &mut settings.claude_folder
            && let Ok(there) = folder.canonicalize()
        {
            *folder = there;
        }
        let home = settings.home.clone();
        private_file::folder(&home).map_err(Error::io("make", &home))?;
        let lock = lock(&home)?;
        let tcp = TcpListener::bind(settings.listen).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Error::AddressTaken(settings.listen),
            _ => Error::io("listen on", settings.listen.to_string())(error),
        })?;
        let address = tcp.local_addr().map_err(Error::io("listen on", settings.listen.to_string()))?;
        let unix = unix(&socket(&home))?;
        let keeper = Arc::new(Keeper::new(settings, address)?);
        let follower = Follower::start(&keeper)?;
        keeper.recall_pending();
        keeper.list_stored().await?;
        let path = home.join("address");
        let note = format!("http://localhost:{}\n", address.port());
        private_file::replace(&path, note.as_bytes()).map_err(Error::io("write", &path))?;
        Ok(Self { keeper, tcp, unix, _follower: follower, _lock: lock })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.keeper.address
    }

    /// Returns an address that logs a browser in, once, within a minute.
    pub fn one_time_url(&self) -> String {
        format!("http://localhost:{}/#boot={}", self.keeper.address.port(), self.keeper.credentials.code())
    }

    /// Returns how many sessions it knows.
    pub fn sessions(&self) -> usize {
        self.keeper.catalogue().len()
    }

    /// Answers until it is told to end: by whoever started it, or over its socket.
    pub async fn until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Self { keeper, tcp, unix, _follower, _lock } = self;
        let home = keeper.settings.home.clone();
        let mut ending = keeper.ending.subscribe();
        let connections = Connections {
            app: routes::app(&keeper),
            ending: keeper.ending.subscribe(),
            room: Arc::new(Semaphore::new(CONNECTIONS)),
        };
        tokio::spawn(Arc::clone(&keeper).end_idle());
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = over(&mut ending) => break,
                accepted = tcp.accept() => match accepted {
                    Ok((stream, _)) => {
                        // Frames are small and must not wait for each other.
                        let _ = stream.set_nodelay(true);
                        connections.serve(stream, Peer::Tcp);
                    }
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
        keeper.ending.send_replace(true);
        drop((tcp, unix));
        // Nobody finds a keeper here that is about to end.
        let _ = (fs::remove_file(home.join("address")), fs::remove_file(socket(&home)));
        let everybody = connections.room.acquire_many(CONNECTIONS as u32);
        let _ = tokio::time::timeout(GRACE, everybody).await;
        keeper.finish().await;
        keeper.store().close()?;
        Ok(())
    }
}

struct Connections {
    app: Router,
    ending: watch::Receiver<bool>,
    room: Arc<Semaphore>,
}

impl Connections {
    fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(&self, stream: S, peer: Peer) {
        // Full: whoever comes now is not let in.
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else { return };
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
}

/// Too many open files, most likely: others have to end first.
async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "a connection cannot be taken");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Returns the place of the Unix socket. A path that is too long for the system gets a shorter one in the same folder.
pub(crate) fn socket(home: &Path) -> PathBuf {
    home.join("socket")
}

fn unix(path: &Path) -> Result<UnixListener> {
    // We hold the lock, so that whoever made it is gone.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove", path)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(Error::io("listen on", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(Error::io("close", path))?;
    Ok(listener)
}

fn lock(home: &Path) -> Result<File> {
    let path = home.join("lock");
    let file = private_file::append(&path).map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(&path).ok().and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
            return Err(Error::RunsAlready { pid });
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
    }
    // Written in place, so that the lock stays with the file.
    file.set_len(0).map_err(Error::io("write", &path))?;
    std::io::Write::write_all(&mut &file, std::process::id().to_string().as_bytes())
        .map_err(Error::io("write", &path))?;
    Ok(file)
}
