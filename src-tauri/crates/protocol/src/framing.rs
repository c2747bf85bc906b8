//! Framing: one JSON object per line, with a maximum length.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, Read, Write};

/// Maximum length of a line in bytes, large enough for replies that contain whole lists.
pub const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Failure to read or write a message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection reached EOF before or in the middle of a message.
    #[error("the connection was closed before a complete message arrived")]
    Closed,
    /// The message is longer than [`MAX_FRAME_BYTES`].
    #[error("the message is longer than {MAX_FRAME_BYTES} bytes")]
    TooLong,
    /// The line is not valid JSON of the expected type.
    #[error("invalid message: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The peer did not read or answer within the connection's timeout.
    #[error("timed out")]
    TimedOut,
    /// Any other connection error.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        // With `SO_RCVTIMEO` or `SO_SNDTIMEO`, a timeout is reported as `WouldBlock`.
        let is_late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind());
        if is_late { Self::TimedOut } else { Self::Io(error) }
    }
}

/// Reads one message.
///
/// # Errors
/// Returns a [`FrameError`], after which the connection cannot be used.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<T, FrameError> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_FRAME_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    from.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(if line.len() > MAX_FRAME_BYTES { FrameError::TooLong } else { FrameError::Closed });
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Writes one message.
///
/// # Errors
/// Returns [`FrameError::TooLong`] without writing anything, or a connection error.
pub fn write_frame<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), FrameError> {
    let mut line = serde_json::to_vec(message)?;
    if line.len() > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong);
    }
    line.push(b'\n');
    to.write_all(&line)?;
    Ok(to.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn silent_peer_times_out() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = read_frame::<Request>(&mut io::BufReader::new(ours)).unwrap_err();
        assert_eq!(error.to_string(), "timed out");
    }
    use crate::{Hello, Purpose, Request, RequestFrame};

    #[test]
    fn messages_round_trip() {
        let hello = Hello { version: crate::VERSION, purpose: Purpose::Control };
        let mut wire = Vec::new();
        write_frame(&mut wire, &hello).unwrap();
        assert_eq!(read_frame::<Hello>(&mut wire.as_slice()).unwrap(), hello);
    }

    #[test]
    fn partial_line_is_a_closed_connection() {
        let half = br#"{"version":1,"#;
        assert!(matches!(read_frame::<Hello>(&mut half.as_slice()), Err(FrameError::Closed)));
    }

    #[test]
    fn unknown_field_is_named_in_the_error() {
        let line = b"{\"id\":1,\"request\":\"status\",\"answer\":\"allow\"}\n";
        let error = read_frame::<RequestFrame>(&mut line.as_slice()).unwrap_err();
        assert!(error.to_string().contains("`answer`"), "{error}");
    }

    #[test]
    fn overlong_message_is_rejected() {
        let long = vec![b'x'; MAX_FRAME_BYTES + 2];
        assert!(matches!(read_frame::<Hello>(&mut long.as_slice()), Err(FrameError::TooLong)));
        let request = RequestFrame { id: 1, request: Request::Revoke { grant: "g".repeat(MAX_FRAME_BYTES) } };
        let mut wire = Vec::new();
        assert!(matches!(write_frame(&mut wire, &request), Err(FrameError::TooLong)));
        assert!(wire.is_empty());
    }
}
