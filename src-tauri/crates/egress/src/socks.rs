//! SOCKS5 proxy (RFC 1928) with only the CONNECT command and no authentication.

use crate::gate::Gate;
use crate::host::{Host, HostPort};
use crate::record::Protocol;
use crate::refusal::ConnectionRefusal;
use crate::tunnel;
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Protocol version, the first byte of each connection.
pub(crate) const VERSION: u8 = 5;

const NO_LOGIN: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reply codes (RFC 1928, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Done = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandUnknown = 7,
    AddressUnknown = 8,
}

/// Result of parsing a client's request.
enum Request {
    To(HostPort),
    Bad(String, ConnectionRefusal),
    Unknown(Reply, ConnectionRefusal),
}

pub(crate) async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, gate: &Gate) {
    // A client that disconnects or times out gets no reply.
    let Ok(Ok(Some(request))) = timeout(gate.limits.handshake, greet(&mut client)).await else { return };
    let target = match request {
        Request::To(target) => target,
        Request::Bad(asked_for, refusal) => {
            gate.refuse_unparsed(Protocol::Socks5, &asked_for, &refusal).await;
            return finish(&mut client, Reply::NotAllowed, gate).await;
        }
        Request::Unknown(reply, refusal) => {
            gate.refuse_unparsed(Protocol::Socks5, "", &refusal).await;
            return finish(&mut client, reply, gate).await;
        }
    };
    match gate.open(Protocol::Socks5, target).await {
        Ok(passage) => {
            if matches!(timeout(gate.limits.handshake, answer(&mut client, Reply::Done)).await, Ok(Ok(()))) {
                tunnel::run(client, passage, gate).await;
            }
        }
        Err(refusal) => {
            let reply = if refusal.is_failure() { Reply::HostUnreachable } else { Reply::NotAllowed };
            finish(&mut client, reply, gate).await;
        }
    }
}

/// Negotiates the authentication method and reads the request. Returns `None` if the client requires authentication.
async fn greet(client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Option<Request>> {
    let _version = client.read_u8().await?;
    let count = client.read_u8().await?;
    let methods = read(client, count.into()).await?;
    let method = if methods.contains(&NO_LOGIN) { NO_LOGIN } else { NO_METHOD };
    client.write_all(&[VERSION, method]).await?;
    if method == NO_METHOD {
        return Ok(None);
    }
    request(client).await.map(Some)
}

async fn request(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION || command != CONNECT {
        let refusal = ConnectionRefusal::Request("only the CONNECT command of SOCKS5 is supported");
        return Ok(Request::Unknown(Reply::CommandUnknown, refusal));
    }
    let text = match kind {
        1 => {
            let mut octets = [0; 4];
            client.read_exact(&mut octets).await?;
            IpAddr::from(octets).to_string()
        }
        3 => {
            let length = client.read_u8().await?;
            String::from_utf8_lossy(&read(client, length.into()).await?).into_owned()
        }
        4 => {
            let mut octets = [0; 16];
            client.read_exact(&mut octets).await?;
            IpAddr::from(octets).to_string()
        }
        _ => {
            let refusal = ConnectionRefusal::Request("unsupported SOCKS address type");
            return Ok(Request::Unknown(Reply::AddressUnknown, refusal));
        }
    };
    let port = client.read_u16().await?;
    Ok(match Host::parse(&text) {
        Ok(host) => Request::To(HostPort { host, port }),
        Err(problem) => Request::Bad(format!("{text}:{port}"), problem.into()),
    })
}

async fn read(client: &mut (impl AsyncRead + Unpin), length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn answer(client: &mut (impl AsyncWrite + Unpin), reply: Reply) -> io::Result<()> {
    // Reports 0.0.0.0 as the bound address, to hide the real address from the sandbox.
    client.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn finish(client: &mut (impl AsyncWrite + Unpin), reply: Reply, gate: &Gate) {
    let last = async {
        answer(client, reply).await?;
        client.shutdown().await
    };
    // The request is refused even if the client does not read the reply.
    let _ = timeout(gate.limits.handshake, last).await;
}
