//! Opens connections through the sandbox's proxy.

use crate::host::HostPort;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum length of the proxy's response head in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;

/// Requests a connection to `target`. Returns `None` if the proxy refuses it or cannot be reached. Waits as long as the
/// proxy does, because the user may have to answer a question first.
pub(super) async fn connect(proxy: SocketAddr, target: &HostPort) -> Option<TcpStream> {
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let opened = async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request.as_bytes()).await?;
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
        if head.len() >= MAX_HEAD_LEN {
            return Ok(false);
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head.starts_with(b"HTTP/1.1 200 "))
}
