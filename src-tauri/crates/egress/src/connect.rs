//! Connects to a target through the proxy and relays standard input and output, as ssh's `ProxyCommand`.
//!
//! - Uses only the standard library, because it is part of a program in the sandbox that must start quickly.
//! - Reads no byte past the proxy's response head, because later bytes belong to the target.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum length of the proxy's response head or refusal text, in bytes.
pub(crate) const MAX_RESPONSE_LEN: usize = 16 * 1024;
/// Maximum time to wait for the proxy's response. The limit is high because the user may have to answer a question
/// first.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// Failure to connect through the proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyConnectError {
    /// The host or port contains characters that are invalid in a `CONNECT` request.
    #[error("invalid target `{0}`; expected a host and a port")]
    Target(String),
    /// The proxy refused the connection, with this reason.
    #[error("{0}")]
    Refused(String),
    /// The proxy is unreachable, or the connection to it failed.
    #[error("failed to connect through the proxy at {proxy}: {source}")]
    Io {
        /// Address of the proxy.
        proxy: SocketAddr,
        /// I/O error, or a description of the invalid response.
        source: io::Error,
    },
}

/// Connects to `host` and `port`, and relays the standard streams until the target closes the connection. `http_proxy`
/// is the value of `HTTP_PROXY`. If `None`, the proxy's default address in the sandbox is used.
///
/// # Errors
/// Returns a [`ProxyConnectError`], worded for standard error.
pub fn run(host: &str, port: &str, http_proxy: Option<&str>) -> Result<(), ProxyConnectError> {
    let proxy = http_proxy
        .and_then(|url| url.strip_prefix("http://")?.trim_end_matches('/').parse().ok())
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], crate::PORT)));
    let stream = connect(proxy, host, port)?;
    copy(stream, io::stdin(), io::stdout().lock()).map_err(|source| ProxyConnectError::Io { proxy, source })
}

/// Connects to `host` and `port` through the proxy.
///
/// # Errors
/// Returns a [`ProxyConnectError`], worded for standard error.
pub fn connect(proxy: SocketAddr, host: &str, port: &str) -> Result<TcpStream, ProxyConnectError> {
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let is_valid = target.bytes().all(|b| b.is_ascii_graphic()) && port.parse::<u16>().is_ok_and(|p| p != 0);
    if !is_valid {
        return Err(ProxyConnectError::Target(target.escape_debug().to_string()));
    }
    let io = |source| ProxyConnectError::Io { proxy, source };
    let mut stream = TcpStream::connect(proxy).map_err(io)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).map_err(io)?;
    stream.write_all(request(&target).as_bytes()).map_err(io)?;
    let head = read_head(&mut stream).map_err(io)?;
    if is_success(&head) {
        stream.set_read_timeout(None).map_err(io)?;
        return Ok(stream);
    }
    let mut why = String::new();
    // If the body cannot be read, the status line is reported instead.
    let _ = stream.take(MAX_RESPONSE_LEN as u64).read_to_string(&mut why);
    let status = head.lines().next().unwrap_or_default();
    Err(ProxyConnectError::Refused(if why.trim().is_empty() {
        status.to_owned()
    } else {
        why.trim().to_owned()
    }))
}

/// Returns the request for a connection to `target`.
pub(crate) fn request(target: impl Display) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

/// Copies in both directions between a connection and a pair of streams until the target closes the connection.
///
/// # Errors
/// Returns an error if reading from the target or writing to `output` fails.
pub fn copy(
    stream: TcpStream,
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
) -> io::Result<()> {
    let mut sending = stream.try_clone()?;
    // The thread runs until the process exits, because a blocking read of standard input cannot be interrupted.
    std::thread::spawn(move || {
        // An error means that the target has closed the connection. The reader below detects this.
        let _ = copy_flushing(&mut input, &mut sending);
        let _ = sending.shutdown(Shutdown::Write);
    });
    copy_flushing(&mut &stream, &mut output)
}

/// Copies until EOF, and flushes after each read so that no data is held back.
fn copy_flushing(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        to.write_all(buffer.get(..n).unwrap_or_default())?;
        to.flush()?;
    }
}

/// Reads the response head byte by byte, in order not to consume bytes from the target.
fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_RESPONSE_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its response is too long"));
        }
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    String::from_utf8(head)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its response is not UTF-8"))
}

/// Returns `true` if a response head reports success.
pub(crate) fn is_success(head: &str) -> bool {
    let mut words = head.split(' ');
    let version = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    version && words.next().is_some_and(|status| status.len() == 3 && status.starts_with('2'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Starts a proxy that sends one response, then echoes. Joining the returned thread yields the request.
    fn proxy(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let asked = read_head(&mut stream).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            if is_success(answer) {
                let mut echo = stream.try_clone().unwrap();
                io::copy(&mut stream, &mut echo).unwrap();
            }
            asked
        });
        (address, serving)
    }

    #[test]
    fn the_stream_starts_with_the_byte_after_the_response() {
        let (address, serving) = proxy("HTTP/1.1 200 OK\r\nX: y\r\n\r\nbanner ");
        let stream = connect(address, "git.test", "22").unwrap();
        let mut received = Vec::new();
        copy(stream, io::Cursor::new(b"hello".to_vec()), &mut received).unwrap();
        assert_eq!(String::from_utf8(received).unwrap(), "banner hello");
        assert_eq!(serving.join().unwrap(), "CONNECT git.test:22 HTTP/1.1\r\nHost: git.test:22\r\n\r\n");
    }

    #[test]
    fn a_refusal_carries_the_proxys_reason() {
        let (address, _serving) = proxy("HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno.");
        assert_eq!(connect(address, "::1", "22").unwrap_err().to_string(), "no.");
        let (address, _serving) = proxy("HTTP/1.1 502 Bad Gateway\r\n\r\n");
        assert_eq!(connect(address, "a.test", "22").unwrap_err().to_string(), "HTTP/1.1 502 Bad Gateway");
    }

    #[test]
    fn only_a_host_and_a_port_get_into_the_request() {
        let nowhere = "127.0.0.1:1".parse().unwrap();
        for (host, port) in
            [("a b", "22"), ("a\r\nX: y", "22"), ("a", "0"), ("a", "x"), ("a", "70000"), ("\u{e9}", "22")]
        {
            assert!(
                matches!(connect(nowhere, host, port), Err(ProxyConnectError::Target(_))),
                "{host}:{port}"
            );
        }
        assert!(matches!(connect(nowhere, "a", "22"), Err(ProxyConnectError::Io { .. })));
    }
}
