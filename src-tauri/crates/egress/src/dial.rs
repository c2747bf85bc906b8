//! Our own connections on behalf of a server: judged, resolved, recorded and dialled like those through the proxy.

use crate::gate::{Gate, OpenConnection, Permit};
use crate::host::HostPort;
use crate::proxy::Proxy;
use crate::record::Protocol;
use crate::refusal::ConnectionRefusal;
use tokio::net::TcpStream;

/// Opens connections for one server.
pub struct Dialer(Gate);

/// An open connection.
#[derive(Debug)]
pub struct Dialed {
    /// TCP stream.
    pub stream: TcpStream,
    /// Keeps the connection counted as open until dropped.
    pub permit: DialPermit,
}

/// Permission for an open connection.
#[derive(Debug)]
pub struct DialPermit(Permit);

impl Dialer {
    /// Creates a dialer that applies the rules, record and limits of `proxy`.
    #[must_use]
    pub fn new(proxy: Proxy) -> Self {
        Self(Gate::new(proxy))
    }

    /// Connects to the target if it is allowed and reachable.
    ///
    /// # Errors
    /// [`ConnectionRefusal`], which has been recorded.
    pub async fn open(&self, target: &HostPort) -> Result<Dialed, ConnectionRefusal> {
        let OpenConnection { stream, permit } = self.0.open(Protocol::Direct, target.clone()).await?;
        Ok(Dialed { stream, permit: DialPermit(permit) })
    }
}

impl DialPermit {
    /// Completes when the connection is no longer allowed.
    pub async fn withdrawn(&mut self) -> ConnectionRefusal {
        self.0.withdrawn().await
    }
}
