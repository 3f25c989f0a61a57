//! TLS to a keeper: who vouches for it.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::UiSettings;
use crate::error::{Error, Result};
use crate::hosts::Scheme;

/// Returns how a keeper is made sure of: by whom this machine trusts, and whoever was named.
pub(super) fn client(settings: &UiSettings) -> Result<ClientConfig> {
    let mut trusted = RootCertStore::empty();
    if settings.keeper.scheme() == Scheme::Https {
        // One that cannot be read vouches for nobody; the others may.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(path) = &settings.keeper_ca {
        for certificate in read(path)? {
            trusted.add(certificate).map_err(|error| bad(path, &error))?;
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| bad(&settings.home, &error))?;
    Ok(builder.with_root_certificates(trusted).with_no_client_auth())
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(none) if none.is_empty() => Err(bad(path, &"there is no certificate in it")),
        read => read.map_err(|error| bad(path, &error)),
    }
}

fn bad(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::BadTls { path: path.to_owned(), why: why.to_string() }
}
