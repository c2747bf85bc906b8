//! Copies data between a connection of the sandbox and its connection to the proxy.

use super::connection::TcpConnection;
use super::device::TunDevice;
use smoltcp::socket::tcp::{Socket, State};
use std::cell::RefCell;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Accepted connection.
pub(super) struct Relay {
    connection: RefCell<TcpConnection>,
    /// Wakes the task after packets have arrived.
    packet_arrived: Notify,
}

/// Directions in which all data was copied.
#[derive(Debug, Default)]
struct Finished {
    to_upstream: bool,
    to_program: bool,
}

/// Events after which more data can be copied.
#[derive(Debug)]
struct CopyWait {
    upstream: Option<Interest>,
    delay: Option<Duration>,
}

impl Relay {
    pub(super) fn new(connection: TcpConnection) -> Self {
        Self { connection: RefCell::new(connection), packet_arrived: Notify::new() }
    }

    /// Handles a packet of the connection. The task then continues.
    pub(super) fn receive(&self, packet: &[u8], device: &TunDevice) {
        self.connection.borrow_mut().receive(packet, device);
        self.packet_arrived.notify_one();
    }

    /// Copies data until both connections are closed, or one of them fails.
    pub(super) async fn run(&self, mut upstream: TcpStream, device: &TunDevice) {
        let mut finished = Finished::default();
        while let Some(wait) = self.copy(&upstream, &mut finished, device) {
            if self.client_finished() && !finished.to_upstream {
                finished.to_upstream = true;
                // An error means that the proxy has closed the connection, which the next read reports.
                let _ = upstream.shutdown().await;
            }
            let upstream_ready = async {
                match wait.upstream {
                    Some(interest) => upstream.ready(interest).await,
                    None => pending().await,
                }
            };
            let delay_over = async {
                match wait.delay {
                    Some(delay) => sleep(delay).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = self.packet_arrived.notified() => {}
                // The next read or write reports an error.
                _ = upstream_ready => {}
                () = delay_over => {}
            }
        }
    }

    /// Copies what can be copied without waiting. Returns `None` once the connection is over.
    fn copy(&self, upstream: &TcpStream, finished: &mut Finished, device: &TunDevice) -> Option<CopyWait> {
        let mut connection = self.connection.borrow_mut();
        let socket = connection.socket();
        let is_full = to_upstream(socket, upstream).and_then(|is_full| {
            if !finished.to_program && to_program(socket, upstream)? {
                finished.to_program = true;
                socket.close();
            }
            Ok(is_full)
        });
        if is_full.is_err() {
            socket.abort();
        }
        connection.send(device);
        if connection.is_closed() {
            return None;
        }
        let reads = (!finished.to_program && connection.socket().can_send()).then_some(Interest::READABLE);
        let writes = is_full.is_ok_and(|is_full| is_full).then_some(Interest::WRITABLE);
        let upstream = match (reads, writes) {
            (Some(reads), Some(writes)) => Some(reads | writes),
            (reads, writes) => reads.or(writes),
        };
        Some(CopyWait { upstream, delay: connection.delay() })
    }

    /// Returns `true` if the program has closed its side, and everything that it sent was copied.
    fn client_finished(&self) -> bool {
        let mut connection = self.connection.borrow_mut();
        let socket = connection.socket();
        let is_closed = matches!(socket.state(), State::CloseWait | State::Closing | State::LastAck);
        is_closed && !socket.can_recv()
    }
}

/// Sends the program's data to the proxy. Returns `true` if the proxy accepts no more at the moment.
fn to_upstream(socket: &mut Socket<'static>, upstream: &TcpStream) -> io::Result<bool> {
    while socket.can_recv() {
        match socket.recv(|bytes| with_count(upstream.try_write(bytes))) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Ok(Err(error)) => return Err(error),
            Err(_) => break,
        }
    }
    Ok(false)
}

/// Sends the proxy's data to the program. Returns `true` if the proxy has sent everything.
fn to_program(socket: &mut Socket<'static>, upstream: &TcpStream) -> io::Result<bool> {
    while socket.can_send() {
        match socket.send(|space| with_count(upstream.try_read(space))) {
            Ok(Ok(0)) => return Ok(true),
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => break,
            Ok(Err(error)) => return Err(error),
            Err(_) => break,
        }
    }
    Ok(false)
}

/// Adds the number of moved bytes to a result.
fn with_count(result: io::Result<usize>) -> (usize, io::Result<usize>) {
    (result.as_ref().copied().unwrap_or_default(), result)
}
