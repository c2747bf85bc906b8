//! Opens connections that IronCurtain itself makes on behalf of a server, subject to the same rules, questions and
//! records as the proxy.

use crate::gate::{Gate, OpenConnection, Permit};
use crate::host::HostPort;
use crate::proxy::Proxy;
use crate::record::Protocol;
use crate::refusal::ConnectionRefusal;
use tokio::net::TcpStream;

/// Opens connections on behalf of one server.
pub struct Dialer(Gate);

/// Connection opened by a [`Dialer`].
#[derive(Debug)]
pub struct Dialed {
    /// Stream to the target.
    pub stream: TcpStream,
    /// Permit for the connection. The connection counts as open until the permit is dropped.
    pub permit: DialPermit,
}

/// Permit for an open connection.
#[derive(Debug)]
pub struct DialPermit(Permit);

impl Dialer {
    /// Creates a dialer that uses the rules, recorder and limits of `proxy`.
    #[must_use]
    pub fn new(proxy: Proxy) -> Self {
        Self(Gate::new(proxy))
    }

    /// Connects to the target, if the rules or the user allow it.
    ///
    /// # Errors
    /// Returns a [`ConnectionRefusal`], which has already been recorded.
    pub async fn open(&self, target: &HostPort) -> Result<Dialed, ConnectionRefusal> {
        let OpenConnection { stream, permit } = self.0.open(Protocol::Direct, target.clone()).await?;
        Ok(Dialed { stream, permit: DialPermit(permit) })
    }
}

impl DialPermit {
    /// Waits until the rules no longer allow the connection, and returns the reason.
    pub async fn revoked(&mut self) -> ConnectionRefusal {
        self.0.revoked().await
    }
}
