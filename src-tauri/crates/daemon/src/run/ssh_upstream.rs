//! Connection to the user's ssh agent, and the framing of agent messages.

use ironcurtain_ssh_agent::{AgentKey, FAILURE_RESPONSE, LIST_REQUEST, MAX_ANSWER_LEN, parse_keys};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// Time limit for a list of keys.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for a signature. The agent may ask the user itself, or wait for a touch on a security key.
const SIGN_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// Client for the user's agent. Keeps its connection open until a request fails.
pub(super) struct UpstreamAgent {
    socket: PathBuf,
    connection: Option<UnixStream>,
}

impl UpstreamAgent {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket, connection: None }
    }

    /// Returns the agent's list of keys, both as the raw response and parsed.
    pub(super) async fn list(&mut self) -> io::Result<(Vec<u8>, Vec<AgentKey>)> {
        let answer = self.request(&LIST_REQUEST, LIST_TIMEOUT).await?;
        let keys = parse_keys(&answer).map_err(io::Error::other)?;
        Ok((answer, keys))
    }

    /// Forwards a request and returns the response.
    pub(super) async fn forward(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.request(request, SIGN_TIMEOUT).await
    }

    async fn request(&mut self, request: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
        // Do not reuse the connection after an error: a late response would be mistaken for the next one.
        let connection = self.connection.take();
        let answered = async {
            let mut connection = match connection {
                Some(connection) => connection,
                None => UnixStream::connect(&self.socket).await?,
            };
            write(&mut connection, request).await?;
            let answer = read(&mut connection, MAX_ANSWER_LEN).await?;
            io::Result::Ok(answer.map(|answer| (answer, connection)))
        };
        match tokio::time::timeout(timeout, answered).await.map_err(io::Error::from)?? {
            Some((answer, connection)) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            None => Ok(FAILURE_RESPONSE.to_vec()),
        }
    }
}

/// Reads a message of at most `max_len` bytes. Returns `None` at the end of the stream.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin), max_len: usize) -> io::Result<Option<Vec<u8>>> {
    let length = match from.read_u32().await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        length => usize::try_from(length?).map_err(io::Error::other)?,
    };
    if !(1..=max_len).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is empty or too long"));
    }
    // Allocates memory only for bytes that arrive.
    let mut message = Vec::new();
    from.take(u64::try_from(length).map_err(io::Error::other)?).read_to_end(&mut message).await?;
    if message.len() == length { Ok(Some(message)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes a message.
pub(super) async fn write(writer: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    writer.write_all(&[&length.to_be_bytes()[..], message].concat()).await
}

#[cfg(test)]
mod tests {
    use super::{LIST_TIMEOUT, MAX_ANSWER_LEN, UpstreamAgent, read, write};
    use std::io;
    use tokio::net::UnixListener;

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_is_not_taken_for_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("agent");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut agent = UpstreamAgent::new(socket);
        let served = tokio::spawn(async move {
            let (mut first, _) = listener.accept().await.unwrap();
            assert_eq!(read(&mut first, MAX_ANSWER_LEN).await.unwrap().unwrap(), b"\x01one");
            write(&mut first, b"answer to one").await.unwrap();
            assert_eq!(read(&mut first, MAX_ANSWER_LEN).await.unwrap().unwrap(), b"\x01two");
            tokio::time::sleep(2 * LIST_TIMEOUT).await;
            // Fails if the connection is already closed.
            let _ = write(&mut first, b"late answer to two").await;
            let (mut second, _) = listener.accept().await.unwrap();
            assert_eq!(read(&mut second, MAX_ANSWER_LEN).await.unwrap().unwrap(), b"\x01three");
            write(&mut second, b"answer to three").await.unwrap();
        });
        assert_eq!(agent.request(b"\x01one", LIST_TIMEOUT).await.unwrap(), b"answer to one");
        let late = agent.request(b"\x01two", LIST_TIMEOUT).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert_eq!(agent.request(b"\x01three", 4 * LIST_TIMEOUT).await.unwrap(), b"answer to three");
        served.await.unwrap();
    }
}
