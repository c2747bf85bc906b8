//! Lines of the control stream. An overlong line closes the stream.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

use serde::Serialize;

/// Maximum length of a line in bytes, enough for a path of `PATH_MAX` bytes with hundreds of closed paths.
const MAX_LEN: usize = 1 << 20;

/// Received bytes of an incomplete line.
#[derive(Default)]
pub(super) struct ControlLines(Vec<u8>);

impl ControlLines {
    /// Reads once and returns the completed lines. Fails at EOF.
    pub(super) fn read(&mut self, mut stream: &UnixStream) -> io::Result<Vec<String>> {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.0.extend(chunk.iter().take(count));
        let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') else {
            return if self.0.len() > MAX_LEN { Err(io::ErrorKind::InvalidData.into()) } else { Ok(vec![]) };
        };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }
}

/// Writes a message as one line of JSON.
pub(super) fn write_message(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}
