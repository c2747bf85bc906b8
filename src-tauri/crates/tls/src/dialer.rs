//! Opens client connections over TCP, or in memory in simulations.

use crate::{Stream, TlsClient, TlsError, secure};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;

type DialFuture = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Opens connections to a host and port. The default uses TCP.
#[derive(Clone)]
pub struct StreamDialer(Arc<dyn Fn(String, u16) -> DialFuture + Send + Sync>);

/// Error returned when a connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The connection or its TLS handshake failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl StreamDialer {
    /// Creates a dialer that opens plain connections with `dial`.
    pub fn new<F, S>(dial: impl Fn(String, u16) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: Stream + 'static,
    {
        let boxed = |stream| Box::new(stream) as Box<dyn Stream>;
        Self(Arc::new(move |host, port| {
            let dialing = dial(host, port);
            Box::pin(async move { dialing.await.map(boxed) })
        }))
    }

    /// Opens a connection, with TLS if `is_encrypted` is set.
    ///
    /// # Errors
    /// Returns [`DialError`] if TLS cannot be set up, or if the connection or its TLS handshake fails.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        is_encrypted: bool,
    ) -> Result<Box<dyn Stream>, DialError> {
        let tls = if is_encrypted { Some(TlsClient::new(host).await?) } else { None };
        Ok(secure((self.0)(host.to_owned(), port).await?, tls.as_ref()).await?)
    }
}

impl Default for StreamDialer {
    fn default() -> Self {
        Self::new(|host, port| async move { TcpStream::connect((host.as_str(), port)).await })
    }
}

impl fmt::Debug for StreamDialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamDialer")
    }
}
