//! Relays data between the client and an allowed target.

use crate::gate::{Gate, OpenConnection, Permit};
use crate::hello::{self, ClientHelloError};
use crate::host::Host;
use crate::refusal::ConnectionRefusal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::time::timeout;

/// Port on which the client must send a TLS ClientHello that names the allowed host.
pub(crate) const HTTPS: u16 = 443;

/// Relays data until either side closes the tunnel or the rules no longer allow it.
pub(crate) async fn run(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    opened: OpenConnection,
    gate: &Gate,
) {
    let OpenConnection { mut stream, mut permit } = opened;
    let closed_permit = permit.clone();
    let relay = async {
        if closed_permit.target.port == HTTPS {
            let client_hello = read_client_hello(&mut client, &closed_permit, gate).await?;
            // An error means that the target has already closed the connection.
            if stream.write_all(&client_hello).await.is_err() {
                return Ok(());
            }
        }
        // An error closes both directions, so it is ignored.
        let _ = copy_bidirectional(&mut client, &mut stream).await;
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = relay => outcome,
        revoked = permit.revoked() => Err(revoked),
    };
    if let Err(refusal) = outcome {
        gate.record_closed(&closed_permit, &refusal).await;
    }
    // Closes the connection to the target.
    drop((stream, permit, closed_permit));
    // Closes the connection to the client, if it is still open.
    let _ = timeout(gate.limits.handshake, client.shutdown()).await;
}

/// Reads a complete ClientHello and checks that it names the allowed host. Returns the message's bytes, which must be
/// forwarded.
async fn read_client_hello(
    client: &mut (impl AsyncRead + Unpin),
    permit: &Permit,
    gate: &Gate,
) -> Result<Vec<u8>, ConnectionRefusal> {
    let target = permit.target.to_string();
    let invalid = |why| ConnectionRefusal::InvalidClientHello { target: target.clone(), why };
    let mut bytes = Vec::with_capacity(4096);
    let read = async {
        loop {
            if client.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return Err(ClientHelloError::Missing);
            }
            if let Some(hello) = hello::inspect(&bytes)? {
                return Ok(hello);
            }
        }
    };
    let hello = timeout(gate.limits.handshake, read)
        .await
        .unwrap_or(Err(ClientHelloError::Missing))
        .map_err(invalid)?;
    match (&permit.target.host, hello.name) {
        (Host::Name(name), Some(named)) if named.eq_ignore_ascii_case(name) => Ok(bytes),
        (Host::Name(_), None) => Err(invalid(ClientHelloError::NoName)),
        // The rules allow the address itself, so there is no host name to compare.
        (Host::Address(_), None) => Ok(bytes),
        (Host::Name(_) | Host::Address(_), Some(named)) => {
            Err(ConnectionRefusal::NameMismatch { target, named })
        }
    }
}
