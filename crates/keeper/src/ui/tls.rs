//! TLS to a keeper: who vouches for it.

use std::sync::Arc;

use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::UiSettings;
use crate::error::Result;
use crate::hosts::Scheme;
use crate::tls::{bad, certificates};

/// Returns how a keeper is made sure of: by whom this machine trusts, and whoever was named.
pub(super) fn client(settings: &UiSettings) -> Result<ClientConfig> {
    let mut trusted = RootCertStore::empty();
    if settings.keeper.scheme() == Scheme::Https {
        // One that cannot be read vouches for nobody; the others may.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(path) = &settings.keeper_ca {
        for certificate in certificates(path)? {
            trusted.add(certificate).map_err(|error| bad(path, &error))?;
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| bad(&settings.home, &error))?;
    Ok(builder.with_root_certificates(trusted).with_no_client_auth())
}
