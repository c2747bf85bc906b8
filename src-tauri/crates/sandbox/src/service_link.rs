//! Launcher's end of a run's service link. The link carries the run's requests to use services on this computer, and
//! the launcher's connections to ports of the run.
//!
//! The requesting side sends one stream per request over the link. Each stream begins with a port (two bytes,
//! big-endian).

use std::{
    fs, io,
    io::Write,
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
};

use crate::{fd_passing, listening::is_listening, services::ALLOWED};

/// Launcher's end of the service link of one run.
#[derive(Debug)]
pub struct ServiceLink(UnixStream);

/// A run's pending request to connect to a service on this computer. Dropping it refuses the connection.
#[derive(Debug)]
pub struct ServiceRequest {
    /// Port to which the run wants to connect.
    pub port: u16,
    /// Stream of the request. It becomes readable when the program gives up waiting.
    pub stream: UnixStream,
}

impl ServiceLink {
    pub(crate) fn new(link: UnixStream) -> Self {
        Self(link)
    }

    /// Clones the handle to the link.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits for the next request. Fails after the run has exited.
    pub fn next(&self) -> io::Result<ServiceRequest> {
        let stream = UnixStream::from(fd_passing::receive(&self.0)?);
        let mut port = [0; 2];
        io::Read::read_exact(&mut &stream, &mut port)?;
        Ok(ServiceRequest { port: u16::from_be_bytes(port), stream })
    }

    /// Connects to a port on which a program in the run listens. Blocking.
    pub fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.write_all(&port.to_be_bytes())?;
        fd_passing::send(&self.0, theirs)?;
        let connected = fd_passing::receive_or_byte(&ours)?;
        connected.map(TcpStream::from).map_err(|_| io::ErrorKind::ConnectionRefused.into())
    }
}

impl ServiceRequest {
    /// Allows the connection. Returns the listener on the port inside the sandbox, or `None` if the port is already in
    /// use there. Blocking.
    pub fn allow(mut self) -> io::Result<Option<TcpListener>> {
        self.stream.write_all(&[ALLOWED])?;
        Ok(fd_passing::receive_or_byte(&self.stream)?.ok().map(TcpListener::from))
    }
}

/// Returns `true` if a program on this computer listens on the port.
#[must_use]
pub fn is_host_port_listening(port: u16) -> bool {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    tables.iter().any(|table| fs::read_to_string(table).is_ok_and(|text| is_listening(&text, port)))
}
