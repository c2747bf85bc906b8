//! Reads the server name from a TLS ClientHello, without responding.
//!
//! - [`inspect`] returns a result only for a complete message, which may span several records.
//! - Anything else is an error, because other bytes on port 443 could be meant for a different host.

/// Maximum size of a ClientHello in bytes. Known clients send far less.
pub(crate) const MAX_HELLO_LEN: usize = 64 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const MAX_RECORD_LEN: usize = 1 << 14;
const MAX_NAME_LEN: usize = 255;

/// Parts of a ClientHello that the proxy uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// Server name as sent, or `None` if there is no `server_name` extension.
    pub name: Option<String>,
}

/// Reason the first bytes of a connection are not an acceptable ClientHello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientHelloError {
    /// The bytes are not TLS.
    #[error("port 443 requires TLS, but the client sent something else")]
    NotTls,
    /// The message violates the TLS format.
    #[error("its TLS ClientHello is malformed")]
    Malformed,
    /// The message exceeds the maximum size.
    #[error("its TLS ClientHello is too long")]
    TooLong,
    /// The message has no `server_name` extension, but the allowed target is a name.
    #[error("its TLS ClientHello has no server name")]
    NoName,
    /// The stream closed or timed out before the message was complete.
    #[error("no complete TLS ClientHello was received")]
    Missing,
}

/// Parses the bytes received so far. Returns `None` if the message is incomplete.
///
/// # Errors
/// Returns a [`ClientHelloError`] as soon as the bytes cannot become a valid ClientHello.
pub fn inspect(bytes: &[u8]) -> Result<Option<ClientHello>, ClientHelloError> {
    let mut message = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((record, after)) = record(rest)? else { break };
        message.extend_from_slice(record);
        if let Some(length) = message_length(&message)? {
            if message.len() > length {
                return Err(ClientHelloError::Malformed);
            }
            if message.len() == length {
                return parse_hello(&message).map(Some);
            }
        }
        rest = after;
    }
    // The announced length is also checked so that an oversized message is refused without buffering it.
    let announced = message_length(&message)?.unwrap_or_default();
    if bytes.len().max(announced) > MAX_HELLO_LEN { Err(ClientHelloError::TooLong) } else { Ok(None) }
}

/// Bytes split off the front of a buffer, and the remaining bytes.
type Split<'a> = (&'a [u8], &'a [u8]);

/// Splits off the first record's payload. Returns `None` if the record is incomplete.
fn record(bytes: &[u8]) -> Result<Option<Split<'_>>, ClientHelloError> {
    let matches = |at: usize, is: fn(u8) -> bool| bytes.get(at).is_none_or(|b| is(*b));
    if !matches(0, |b| b == HANDSHAKE) || !matches(1, |b| b == 3) || !matches(2, |b| b <= 4) {
        return Err(ClientHelloError::NotTls);
    }
    let Some(header) = bytes.first_chunk::<5>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length == 0 || length > MAX_RECORD_LEN {
        return Err(ClientHelloError::Malformed);
    }
    Ok(bytes.get(5..).and_then(|rest| rest.split_at_checked(length)))
}

/// Returns the length of the message including its header, or `None` if the header is incomplete.
fn message_length(message: &[u8]) -> Result<Option<usize>, ClientHelloError> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(ClientHelloError::NotTls);
    }
    Ok(message.first_chunk::<4>().map(|[_, a, b, c]| 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize))
}

fn parse_hello(message: &[u8]) -> Result<ClientHello, ClientHelloError> {
    let mut body = Reader(message);
    body.take(4)?; // kind and length
    let major = body.take(2)?.first().copied();
    body.take(32)?; // random
    let session = body.short()?;
    let suites = body.long()?;
    let compression = body.short()?;
    let is_valid =
        session.len() <= 32 && !suites.is_empty() && suites.len() % 2 == 0 && !compression.is_empty();
    if major != Some(3) || !is_valid {
        return Err(ClientHelloError::Malformed);
    }
    if body.0.is_empty() {
        return Ok(ClientHello { name: None });
    }
    let mut extensions = Reader(body.long()?);
    body.end()?;
    let mut names = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long()?;
        if !seen.insert(kind) {
            return Err(ClientHelloError::Malformed);
        }
        if kind == SERVER_NAME {
            names.push(server_name(content)?);
        }
    }
    Ok(ClientHello { name: names.pop() })
}

/// Returns the name in a server name list. RFC 6066 defines a single name type, which occurs at most once.
fn server_name(content: &[u8]) -> Result<String, ClientHelloError> {
    let mut content = Reader(content);
    let mut list = Reader(content.long()?);
    content.end()?;
    let kind = list.take(1)?.first().copied();
    let name = list.long()?;
    list.end()?;
    let is_valid =
        kind == Some(0) && (1..=MAX_NAME_LEN).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(name) {
        Ok(name) if is_valid => Ok(name.to_owned()),
        Ok(_) | Err(_) => Err(ClientHelloError::Malformed),
    }
}

/// Unread bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], ClientHelloError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(ClientHelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u16, ClientHelloError> {
        let bytes = self.take(2)?.first_chunk::<2>().ok_or(ClientHelloError::Malformed)?;
        Ok(u16::from_be_bytes(*bytes))
    }

    /// Reads a vector with a one-byte length.
    fn short(&mut self) -> Result<&'a [u8], ClientHelloError> {
        let n = self.take(1)?.first().copied().ok_or(ClientHelloError::Malformed)?;
        self.take(n.into())
    }

    /// Reads a vector with a two-byte length.
    fn long(&mut self) -> Result<&'a [u8], ClientHelloError> {
        let n = self.number()?;
        self.take(n.into())
    }

    fn end(&self) -> Result<(), ClientHelloError> {
        if self.0.is_empty() { Ok(()) } else { Err(ClientHelloError::Malformed) }
    }
}

#[cfg(test)]
mod tests;
