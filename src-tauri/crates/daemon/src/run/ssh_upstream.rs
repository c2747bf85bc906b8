//! Connection to the user's ssh agent, and messages in its framing.

use ironcurtain_ssh_agent::{AgentKey, FAILURE, LIST, LONGEST, keys};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// Time limit for a list of keys.
const LIST_BOUND: Duration = Duration::from_secs(5);

/// Time limit for a signature: the agent may ask the user itself, or wait for a touch.
const SIGN_BOUND: Duration = Duration::from_secs(2 * 60);

/// Connection to the user's agent.
pub(super) struct UpstreamAgent(UnixStream);

impl UpstreamAgent {
    pub(super) async fn connect(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).await.map(Self)
    }

    /// Returns the agent's list of keys, as it sent it and parsed.
    pub(super) async fn list(&mut self) -> io::Result<(Vec<u8>, Vec<AgentKey>)> {
        let answer = self.ask(&LIST, LIST_BOUND).await?;
        let keys = keys(&answer).map_err(io::Error::other)?;
        Ok((answer, keys))
    }

    /// Passes a request on, and returns the answer.
    pub(super) async fn pass_on(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.ask(request, SIGN_BOUND).await
    }

    async fn ask(&mut self, request: &[u8], bound: Duration) -> io::Result<Vec<u8>> {
        let answered = async {
            write(&mut self.0, request).await?;
            Ok(read(&mut self.0).await?.unwrap_or_else(|| FAILURE.to_vec()))
        };
        tokio::time::timeout(bound, answered).await.map_err(io::Error::from)?
    }
}

/// Reads a message, or returns `None` at the end of the stream.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let length = match from.read_u32().await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        length => usize::try_from(length?).map_err(io::Error::other)?,
    };
    if !(1..=LONGEST).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is empty or too long"));
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message).await?;
    Ok(Some(message))
}

/// Writes a message.
pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_be_bytes()[..], message].concat()).await
}
