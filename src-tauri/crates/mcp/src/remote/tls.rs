//! TLS for connections of our own. Certificates are verified with the system's roots.

use super::RemoteError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Timeout for the TLS handshake.
const TLS_BOUND: Duration = Duration::from_secs(15);

/// Connector, and the name that the certificate must have.
pub(super) type Tls = (TlsConnector, ServerName<'static>);

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Starts TLS on a connection, if it is to be encrypted.
pub(super) async fn secured(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Box<dyn Stream>> {
    let Some((connector, name)) = tls else { return Ok(Box::new(stream)) };
    let session = tokio::time::timeout(TLS_BOUND, connector.connect(name.clone(), stream)).await;
    Ok(Box::new(session.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?))
}

/// Creates a TLS connector that trusts the system's current roots.
pub(super) fn connector() -> Result<TlsConnector, RemoteError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let problem = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
        return Err(RemoteError::NoRoots(problem));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
