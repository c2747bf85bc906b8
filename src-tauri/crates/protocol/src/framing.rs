//! One JSON object per line, with a bound on its length.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, Read, Write};

/// The longest line either side accepts. Replies are lists a person reads, so this is generous.
pub const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Why a line could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection ended.
    #[error("the connection ended before a whole line came")]
    Ended,
    /// Longer than [`MAX_FRAME_BYTES`].
    #[error("the line is longer than {MAX_FRAME_BYTES} bytes")]
    TooLong,
    /// Not JSON of the expected shape.
    #[error("the line is not a message of this protocol: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The other side did not read or answer within the connection's bound.
    #[error("timed out")]
    TimedOut,
    /// The operating system's answer.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        // A socket with a bound fails with the first (`SO_RCVTIMEO`).
        let is_late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind());
        if is_late { Self::TimedOut } else { Self::Io(error) }
    }
}

/// Reads one message.
///
/// # Errors
/// [`FrameError`]; after any of them the connection is of no further use.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<T, FrameError> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_FRAME_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    from.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(if line.len() > MAX_FRAME_BYTES { FrameError::TooLong } else { FrameError::Ended });
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Writes one message.
///
/// # Errors
/// [`FrameError::TooLong`] before anything is written; else what the connection says.
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
    fn a_peer_that_does_not_answer_in_time_timed_out() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = read_frame::<Request>(&mut io::BufReader::new(ours)).unwrap_err();
        assert_eq!(error.to_string(), "timed out");
    }
    use crate::{Hello, Purpose, Request, RequestFrame};

    #[test]
    fn a_message_comes_back_as_it_went() {
        let hello = Hello { version: crate::VERSION, purpose: Purpose::Control };
        let mut wire = Vec::new();
        write_frame(&mut wire, &hello).unwrap();
        assert_eq!(read_frame::<Hello>(&mut wire.as_slice()).unwrap(), hello);
    }

    #[test]
    fn half_a_line_is_an_ended_connection() {
        let half = br#"{"version":1,"#;
        assert!(matches!(read_frame::<Hello>(&mut half.as_slice()), Err(FrameError::Ended)));
    }

    #[test]
    fn an_unknown_field_is_malformed_and_names_it() {
        let line = b"{\"id\":1,\"request\":\"status\",\"answer\":\"allow\"}\n";
        let error = read_frame::<RequestFrame>(&mut line.as_slice()).unwrap_err();
        assert!(error.to_string().contains("`answer`"), "{error}");
    }

    #[test]
    fn a_line_over_the_bound_is_refused() {
        let long = vec![b'x'; MAX_FRAME_BYTES + 2];
        assert!(matches!(read_frame::<Hello>(&mut long.as_slice()), Err(FrameError::TooLong)));
        let request = RequestFrame { id: 1, request: Request::Revoke { grant: "g".repeat(MAX_FRAME_BYTES) } };
        let mut wire = Vec::new();
        assert!(matches!(write_frame(&mut wire, &request), Err(FrameError::TooLong)));
        assert!(wire.is_empty());
    }
}
