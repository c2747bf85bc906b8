//! Opens connections through the sandbox's proxy.

use crate::connect::{MAX_RESPONSE_LEN, is_success, request};
use crate::host::HostPort;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Requests a connection to `target`. Returns `None` if the proxy refuses it or cannot be reached. Waits as long as the
/// proxy does, because the user may have to answer a question first.
pub(super) async fn connect(proxy: SocketAddr, target: &HostPort) -> Option<TcpStream> {
    let opened = async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request(target).as_bytes()).await?;
        let accepted = is_accepted(&mut stream).await?;
        Ok::<_, io::Error>(accepted.then_some(stream))
    };
    // An error has the same effect as a refusal, and the proxy records refusals.
    opened.await.unwrap_or_default()
}

/// Reads the response head byte by byte, because later bytes belong to the target.
async fn is_accepted(stream: &mut TcpStream) -> io::Result<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_RESPONSE_LEN {
            return Ok(false);
        }
        head.push(stream.read_u8().await?);
    }
    Ok(str::from_utf8(&head).is_ok_and(is_success))
}
