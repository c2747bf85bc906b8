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

const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reply codes (RFC 1928, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

/// Result of parsing a client's request.
enum Request {
    Connect(HostPort),
    InvalidHost(String, ConnectionRefusal),
    Unsupported(Reply, ConnectionRefusal),
}

pub(crate) async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, gate: &Gate) {
    // A client that disconnects or times out gets no reply.
    let Ok(Ok(Some(request))) = timeout(gate.limits.handshake, negotiate(&mut client)).await else { return };
    let target = match request {
        Request::Connect(target) => target,
        Request::InvalidHost(requested, refusal) => {
            gate.refuse_unparsed(Protocol::Socks5, &requested, &refusal).await;
            return reply_and_close(&mut client, Reply::NotAllowed, gate).await;
        }
        Request::Unsupported(reply, refusal) => {
            gate.refuse_unparsed(Protocol::Socks5, "", &refusal).await;
            return reply_and_close(&mut client, reply, gate).await;
        }
    };
    match gate.open(Protocol::Socks5, target).await {
        Ok(opened) => {
            if matches!(
                timeout(gate.limits.handshake, send_reply(&mut client, Reply::Succeeded)).await,
                Ok(Ok(()))
            ) {
                tunnel::run(client, opened, gate).await;
            }
        }
        Err(refusal) => {
            let reply = if refusal.is_failure() { Reply::HostUnreachable } else { Reply::NotAllowed };
            reply_and_close(&mut client, reply, gate).await;
        }
    }
}

/// Negotiates the authentication method and reads the request. Returns `None` if the client requires authentication.
async fn negotiate(client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Option<Request>> {
    let _version = client.read_u8().await?;
    let count = client.read_u8().await?;
    let methods = read(client, count.into()).await?;
    let method = if methods.contains(&NO_AUTHENTICATION) { NO_AUTHENTICATION } else { NO_ACCEPTABLE_METHOD };
    client.write_all(&[VERSION, method]).await?;
    if method == NO_ACCEPTABLE_METHOD {
        return Ok(None);
    }
    request(client).await.map(Some)
}

async fn request(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION || command != CONNECT {
        let refusal = ConnectionRefusal::InvalidRequest("only the CONNECT command of SOCKS5 is supported");
        return Ok(Request::Unsupported(Reply::CommandNotSupported, refusal));
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
            let refusal = ConnectionRefusal::InvalidRequest("unsupported SOCKS address type");
            return Ok(Request::Unsupported(Reply::AddressTypeNotSupported, refusal));
        }
    };
    let port = client.read_u16().await?;
    Ok(match Host::parse(&text) {
        Ok(host) => Request::Connect(HostPort { host, port }),
        Err(problem) => Request::InvalidHost(format!("{text}:{port}"), problem.into()),
    })
}

async fn read(client: &mut (impl AsyncRead + Unpin), length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn send_reply(client: &mut (impl AsyncWrite + Unpin), reply: Reply) -> io::Result<()> {
    // Reports 0.0.0.0 as the bound address, to hide the real address from the sandbox.
    client.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn reply_and_close(client: &mut (impl AsyncWrite + Unpin), reply: Reply, gate: &Gate) {
    let last = async {
        send_reply(client, reply).await?;
        client.shutdown().await
    };
    // The request is refused even if the client does not read the reply.
    let _ = timeout(gate.limits.handshake, last).await;
}
