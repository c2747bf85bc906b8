//! Notes that the trusted process sends about a run.

use ironcurtain_protocol::{MAX_FRAME_BYTES, RunNote};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A run's connection after the handshake. It carries only notes.
pub struct NoteStream {
    stream: UnixStream,
    rest: Vec<u8>,
    notes: VecDeque<RunNote>,
}

impl NoteStream {
    /// Creates the stream. `read` contains bytes that were already received.
    pub fn new(stream: UnixStream, read: &[u8]) -> io::Result<Self> {
        stream.set_read_timeout(None)?;
        stream.set_nonblocking(true)?;
        let mut notes = Self { stream, rest: read.to_vec(), notes: VecDeque::new() };
        notes.split()?;
        Ok(notes)
    }

    /// Returns the next complete note, or `None` if no note is complete yet.
    pub fn next(&mut self) -> Option<RunNote> {
        self.notes.pop_front()
    }

    /// Reads the available bytes. Returns `false` at EOF.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => return Ok(false),
            Ok(count) => self.rest.extend(piece.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        self.split()?;
        Ok(true)
    }

    fn split(&mut self) -> io::Result<()> {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.notes.push_back(serde_json::from_slice(&line)?);
        }
        if self.rest.len() > MAX_FRAME_BYTES { Err(ErrorKind::InvalidData.into()) } else { Ok(()) }
    }
}

impl AsFd for NoteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
