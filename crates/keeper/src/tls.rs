//! TLS: what is shown to whoever comes from another machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::error::{Error, Result};

/// A certificate and its key, in files that somebody renews now and then.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

#[derive(Clone, Debug)]
struct Current {
    /// When the files were written that this was read from.
    written: Written,
    config: Arc<ServerConfig>,
}

type Written = [Option<SystemTime>; 2];

impl Tls {
    /// Reads a certificate, with those that vouch for it, and its key; both in PEM.
    pub fn read(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self> {
        let (certificate, key) = (certificate.into(), key.into());
        let written = written(&certificate, &key);
        let current = Mutex::new(Current { written, config: config(&certificate, &key)? });
        Ok(Self { certificate, key, current })
    }

    /// Returns what shakes hands, by what the files say now. Those that make no sense are left for later.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let written = written(&self.certificate, &self.key);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.written != written {
            current.written = written;
            match config(&self.certificate, &self.key) {
                Ok(config) => current.config = config,
                Err(error) => tracing::warn!(%error, "the certificate from before is shown"),
            }
        }
        Arc::clone(&current.config).into()
    }
}

fn written(certificate: &Path, key: &Path) -> Written {
    [certificate, key].map(|path| fs::metadata(path).and_then(|it| it.modified()).ok())
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| bad(certificate, &error))?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| bad(key, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Reads the certificates in a file: one at least.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(none) if none.is_empty() => Err(bad(path, &"there is no certificate in it")),
        read => read.map_err(|error| bad(path, &error)),
    }
}

pub(crate) fn bad(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::BadTls { path: path.to_owned(), why: why.to_string() }
}
