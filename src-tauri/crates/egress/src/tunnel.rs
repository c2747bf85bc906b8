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
    passage: OpenConnection,
    gate: &Gate,
) {
    let OpenConnection { mut stream, mut permit } = passage;
    let watched = permit.clone();
    let carried = async {
        if watched.target.port == HTTPS {
            let greeting = greeting(&mut client, &watched, gate).await?;
            // An error means that the target has already closed the connection.
            if stream.write_all(&greeting).await.is_err() {
                return Ok(());
            }
        }
        // An error closes both directions, so it is ignored.
        let _ = copy_bidirectional(&mut client, &mut stream).await;
        Ok(())
    };
    let ended = tokio::select! {
        ended = carried => ended,
        withdrawn = permit.withdrawn() => Err(withdrawn),
    };
    if let Err(refusal) = ended {
        gate.cut(&watched, &refusal).await;
    }
    // Closes the connection to the target.
    drop((stream, permit, watched));
    // Closes the connection to the client, if it is still open.
    let _ = timeout(gate.limits.handshake, client.shutdown()).await;
}

/// Reads a complete ClientHello and checks that it names the allowed host. Returns the message's bytes, which must be
/// forwarded.
async fn greeting(
    client: &mut (impl AsyncRead + Unpin),
    permit: &Permit,
    gate: &Gate,
) -> Result<Vec<u8>, ConnectionRefusal> {
    let target = permit.target.to_string();
    let wrong = |why| ConnectionRefusal::Hello { target: target.clone(), why };
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
        .map_err(wrong)?;
    match (&permit.target.host, hello.name) {
        (Host::Name(name), Some(named)) if named.eq_ignore_ascii_case(name) => Ok(bytes),
        (Host::Name(_), None) => Err(wrong(ClientHelloError::NoName)),
        // The rules allow the address itself, so there is no host name to compare.
        (Host::Address(_), None) => Ok(bytes),
        (Host::Name(_) | Host::Address(_), Some(named)) => {
            Err(ConnectionRefusal::OtherName { target, named })
        }
    }
}
