//! TLS, as `sslmode` asks for it.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rethread_store::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::backend;

/// How a connection is encrypted, and whom it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encryption {
    pub(crate) mode: Mode,
    /// Whom to trust: a file, or `system`.
    pub(crate) root: Option<PathBuf>,
    /// Who we are.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The values of `sslmode`, with libpq's meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    /// Encrypted if the server can.
    #[default]
    Prefer,
    /// Encrypted; by whom is looked at only if somebody is named to be trusted.
    Require,
    /// By somebody whom one who is trusted has signed.
    VerifyCa,
    /// And under the name that was asked for.
    VerifyFull,
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "disable" => Ok(Mode::Disable),
            "allow" | "prefer" => Ok(Mode::Prefer),
            "require" => Ok(Mode::Require),
            "verify-ca" => Ok(Mode::VerifyCa),
            "verify-full" => Ok(Mode::VerifyFull),
            _ => Err(()),
        }
    }
}

impl Mode {
    /// Returns what is said to the server.
    pub(crate) fn negotiated(self) -> SslMode {
        match self {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }
}

impl Encryption {
    /// Returns what encrypts a connection.
    pub(crate) fn connector(&self) -> Result<MakeRustlsConnect> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(refused("begin TLS"))?;
        let builder = match (self.mode, &self.root) {
            (Mode::VerifyFull, _) => builder.with_root_certificates(self.trusted()?),
            (Mode::VerifyCa, _) | (Mode::Require, Some(_)) => {
                let trusted = Arc::new(self.trusted()?);
                let inner = WebPkiServerVerifier::builder_with_provider(trusted, provider.clone())
                    .build()
                    .map_err(refused("begin TLS"))?;
                lenient(builder, Lenient { provider, signed_by: Some(inner) })
            }
            _ => lenient(builder, Lenient { provider, signed_by: None }),
        };
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(unread(key))?;
                builder
                    .with_client_auth_cert(certificates(certificate)?, key)
                    .map_err(refused("use sslcert"))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(MakeRustlsConnect::new(config))
    }

    fn trusted(&self) -> Result<RootCertStore> {
        let mut trusted = RootCertStore::empty();
        match &self.root {
            Some(path) if path.as_os_str() != "system" => {
                for certificate in certificates(path)? {
                    trusted.add(certificate).map_err(refused("use sslrootcert"))?;
                }
            }
            // One that cannot be read vouches for nobody; the others may.
            _ => drop(trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        Ok(trusted)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(unread(path))
}

fn unread(path: &Path) -> impl FnOnce(rustls::pki_types::pem::Error) -> Error {
    move |error| Error::io("take a certificate from", path)(io::Error::new(io::ErrorKind::InvalidData, error))
}

fn refused<E: std::error::Error + Send + Sync + 'static>(action: &'static str) -> impl FnOnce(E) -> Error {
    move |error| backend(action, error)
}

fn lenient(
    builder: rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>,
    verifier: Lenient,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
}

/// Takes a server under any name, and, if nobody is trusted, any server: that is what `require` means.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    signed_by: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.signed_by else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last, so everything else is right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
