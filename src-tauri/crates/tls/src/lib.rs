//! TLS for connections that IronCurtain opens itself. Certificates are verified against the system's root store.

mod dialer;

pub use dialer::{DialError, StreamDialer};

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinError;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Timeout for the TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(15);

/// Encrypted or plain connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Error returned when TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The system has no trusted root certificates.
    #[error(
        "no trusted root certificates found ({0}); install them, for example with the package `ca-certificates`"
    )]
    NoRoots(String),
    /// The host name is invalid.
    #[error("`{0}` is not a valid host name for TLS")]
    Name(String),
    /// The TLS configuration is invalid.
    #[error("failed to set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// The task that loads the certificates panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// TLS client for one host.
#[derive(Clone)]
pub struct TlsClient {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsClient {
    /// Creates a client that trusts the system's root certificates. `host` may be an IPv6 address in brackets.
    ///
    /// # Errors
    /// Returns [`TlsError`] if `host` is invalid or the system has no root certificates.
    pub async fn new(host: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { connector: tokio::task::spawn_blocking(load_connector).await??, name })
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Performs the TLS handshake on a connection, or returns it unencrypted if `tls` is `None`.
///
/// # Errors
/// Returns an error if the handshake fails or times out, for example because the certificate is invalid.
pub async fn secure(stream: Box<dyn Stream>, tls: Option<&TlsClient>) -> io::Result<Box<dyn Stream>> {
    let Some(TlsClient { connector, name }) = tls else { return Ok(stream) };
    let session = tokio::time::timeout(TLS_TIMEOUT, connector.connect(name.clone(), stream)).await;
    Ok(Box::new(session.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?))
}

fn load_connector() -> Result<TlsConnector, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let problem = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots(problem));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(rustls::ALL_VERSIONS)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
