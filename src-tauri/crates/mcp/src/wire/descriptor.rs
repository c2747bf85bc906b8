//! A pipe or socket received from another process, as a tokio stream.

use rustix::fs::{FileType, fstat};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};

/// Reading end of a pipe or socket.
#[derive(Debug)]
pub enum Input {
    /// A pipe.
    Pipe(pipe::Receiver),
    /// A socket.
    Socket(UnixStream),
    /// One half of a socket.
    Half(OwnedReadHalf),
}

/// Writing end of a pipe or socket.
#[derive(Debug)]
pub enum Output {
    /// A pipe.
    Pipe(pipe::Sender),
    /// A socket.
    Socket(UnixStream),
    /// One half of a socket.
    Half(OwnedWriteHalf),
}

impl Input {
    /// Wraps a pipe or socket, and sets it to non-blocking mode.
    ///
    /// # Errors
    /// Returns an error for other file types. On a terminal or file, non-blocking mode would affect every process that
    /// shares it.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        if is_socket(&descriptor)? {
            return Ok(Self::Socket(socket(descriptor)?));
        }
        Ok(Self::Pipe(pipe::Receiver::from_owned_fd(descriptor)?))
    }
}

impl Output {
    /// Wraps a pipe or socket, and sets it to non-blocking mode.
    ///
    /// # Errors
    /// See [`Input::new`].
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        if is_socket(&descriptor)? {
            return Ok(Self::Socket(socket(descriptor)?));
        }
        Ok(Self::Pipe(pipe::Sender::from_owned_fd(descriptor)?))
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Half(half) => Pin::new(half).poll_read(cx, buffer),
        }
    }
}

impl Output {
    /// Writes as many bytes as possible without blocking.
    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write_vectored(parts),
            Self::Socket(socket) => socket.try_write_vectored(parts),
            Self::Half(half) => half.try_write_vectored(parts),
        }
    }

    /// Completes when the output may accept more bytes.
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.writable().await,
            Self::Socket(socket) => socket.writable().await,
            Self::Half(half) => half.writable().await,
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Half(half) => Pin::new(half).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Self::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Self::Half(half) => Pin::new(half).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Half(half) => Pin::new(half).poll_shutdown(cx),
        }
    }
}

/// Creates a connection within this process. The input reads what is written to the output.
///
/// # Errors
/// Returns the operating system's error.
pub fn pair() -> io::Result<(Input, Output)> {
    let (reading, writing) = UnixStream::pair()?;
    Ok((Input::Socket(reading), Output::Socket(writing)))
}

fn is_socket(descriptor: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
    if !matches!(kind, FileType::Socket | FileType::Fifo) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the descriptor is neither a pipe nor a socket",
        ));
    }
    Ok(kind == FileType::Socket)
}

fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(descriptor);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Outbox, Outgoing};
    use tokio::io::AsyncReadExt;

    async fn through(from: OwnedFd, to: OwnedFd) {
        let (mut from, to) = (Input::new(from).unwrap(), Outbox::new(Output::new(to).unwrap()));
        let sent = vec![7; 300_000];
        to.send(Outgoing::line(sent.clone()));
        tokio::spawn(async move { to.drained().await });
        let mut got = Vec::new();
        from.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, sent);
    }

    #[tokio::test]
    async fn pipes_and_sockets_carry_bytes_and_eof() {
        let (from, to) = rustix::pipe::pipe().unwrap();
        through(from, to).await;
        let (from, to) = std::os::unix::net::UnixStream::pair().unwrap();
        through(from.into(), to.into()).await;
    }

    #[tokio::test]
    async fn a_file_and_the_wrong_end_of_a_pipe_are_refused() {
        let file = tempfile::tempfile().unwrap();
        let error = Input::new(file.into()).unwrap_err();
        assert_eq!(error.to_string(), "the descriptor is neither a pipe nor a socket");
        let (from, _to) = rustix::pipe::pipe().unwrap();
        assert!(Output::new(from).is_err());
    }
}
