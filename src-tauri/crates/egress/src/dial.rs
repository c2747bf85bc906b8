//! Connections of our own on behalf of a server: judged, resolved, put on record and dialled as those through the proxy are.

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
    /// Its stream.
    pub stream: TcpStream,
    /// For as long as it is there, the connection counts as open.
    pub permit: DialPermit,
}

/// The permission of an open connection.
#[derive(Debug)]
pub struct DialPermit(Permit);

impl Dialer {
    /// Opens connections by these rules, on this record.
    #[must_use]
    pub fn new(proxy: Proxy) -> Self {
        Self(Gate::new(proxy))
    }

    /// A connection to the target, if it may be had.
    ///
    /// # Errors
    /// [`ConnectionRefusal`], which is on record.
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
