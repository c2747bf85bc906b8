//! Lets a run use services on this computer. When the run connects to a loopback port on which none of its own programs
//! listens, this module asks the launcher for permission, and then lets the launcher listen on that port. Runs in the
//! process that connects the run's sockets ([`connector`](crate::connector)).
//!
//! - Sockets are created in the sandbox's network namespace, which the calling thread enters and never leaves.
//! - INVARIANT: a port is opened only after the launcher has allowed it, and only the launcher accepts its
//!   connections.
//!
//! Each request uses its own stream, sent over the link; see [`service_link`](crate::service_link).

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, openat},
    io::Errno,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{fd_passing, listening::is_listening};

/// Byte from the launcher that permits opening the port.
pub(crate) const ALLOWED: u8 = b'y';
/// Byte sent in place of a descriptor if there is no descriptor.
pub(crate) const NO_DESCRIPTOR: u8 = b'n';

/// Interval for checking whether a program is still waiting for its connection.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Timeout for connecting to a program in the run.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Service link of a run, and the network namespace of the run's sandbox.
#[derive(Debug)]
pub(crate) struct Services {
    /// Network namespace of the sandbox.
    network: OwnedFd,
    link: UnixStream,
}

impl Services {
    pub(crate) fn new(network: OwnedFd, link: UnixStream) -> Self {
        Self { network, link }
    }

    /// Returns the descriptors that the connecting process must keep open.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.network.as_fd(), self.link.as_fd()]
    }

    /// Connects the launcher to ports of the run, on request, until the link is closed.
    pub(crate) fn serve(&self) {
        thread::scope(|threads| {
            while let Ok(stream) = fd_passing::receive(&self.link) {
                // If no thread can be spawned, the stream closes, which the launcher treats as an error.
                let _ = thread::Builder::new().stack_size(64 * 1024).spawn_scoped(threads, move || {
                    // Ignores the error: the launcher has exited, or it gets the error when the stream closes.
                    let _ = self.connect_launcher(&UnixStream::from(stream));
                });
            }
        });
    }

    /// Connects to a port of the run and sends the connected socket over `stream`.
    fn connect_launcher(&self, mut stream: &UnixStream) -> io::Result<()> {
        let mut port = [0; 2];
        stream.read_exact(&mut port)?;
        self.enter()?;
        let port = u16::from_be_bytes(port);
        let all =
            [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
        match all.iter().find_map(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).ok()) {
            Some(connection) => fd_passing::send(stream, connection),
            None => stream.write_all(&[NO_DESCRIPTOR]),
        }
    }

    /// Waits until a connection to this address is permitted, or returns an errno. `thread` is the `/proc` directory
    /// of the calling thread, and `is_waiting` returns `true` while that thread is waiting for its call.
    pub(crate) fn request_permission(
        &self,
        address: &[u8],
        thread: &OwnedFd,
        is_waiting: impl Fn() -> bool,
    ) -> Result<(), i32> {
        let Some(port) = loopback_port(address) else { return Ok(()) };
        if is_port_listening(thread, port).map_err(errno_code)? {
            return Ok(());
        }
        let failed = |error: io::Error| error.raw_os_error().unwrap_or(libc::ECONNREFUSED);
        let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
        fd_passing::send(&self.link, &theirs).map_err(failed)?;
        drop(theirs);
        ours.write_all(&port.to_be_bytes()).map_err(failed)?;
        while !is_readable(&ours)? {
            // Dropping the stream withdraws the request.
            if !is_waiting() {
                return Err(libc::EINTR);
            }
        }
        let mut answer = [0];
        if ours.read_exact(&mut answer).is_err() || answer != [ALLOWED] {
            return Err(libc::ECONNREFUSED);
        }
        self.enter().map_err(failed)?;
        match listen(port) {
            Ok(listener) => fd_passing::send(&ours, listener).map_err(failed),
            // The run itself or another connection has already opened the port.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                ours.write_all(&[NO_DESCRIPTOR]).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.network.as_fd(), network)?)
    }
}

/// Listens on a loopback port of the sandbox, with IPv6 and IPv4 if the kernel supports both.
fn listen(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)) {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        bound => bound,
    }
}

fn is_readable(stream: &UnixStream) -> Result<bool, i32> {
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&CHECK_INTERVAL)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(errno_code(error)),
    }
}

/// Returns `true` if a program in the run listens on this port.
fn is_port_listening(thread: &OwnedFd, port: u16) -> Result<bool, Errno> {
    let mut tables = ["net/tcp", "net/tcp6"].into_iter().map(|table| {
        let file = openat(thread, table, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).map_err(|_| Errno::IO)?;
        Ok(is_listening(&text, port))
    });
    tables.try_fold(false, |found, table: Result<bool, Errno>| table.map(|here| found || here))
}

/// Returns the port of a kernel-format address if it refers to this machine (loopback or unspecified).
fn loopback_port(address: &[u8]) -> Option<u16> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let ip = match i32::from(libc::sa_family_t::from_ne_bytes(*family)) {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk::<4>()?),
        libc::AF_INET6 => {
            // The flow label precedes the address.
            let ip = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            match ip.to_ipv4_mapped() {
                Some(ip) => ip,
                None if ip.is_loopback() || ip.is_unspecified() => Ipv4Addr::LOCALHOST,
                None => return None,
            }
        }
        _ => return None,
    };
    (ip.is_loopback() || ip.is_unspecified()).then_some(u16::from_be_bytes(*port)).filter(|port| *port != 0)
}

fn errno_code(error: Errno) -> i32 {
    error.raw_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(ip: [u8; 4], port: u16) -> Vec<u8> {
        let family = libc::sa_family_t::try_from(libc::AF_INET).unwrap().to_ne_bytes();
        [&family[..], &port.to_be_bytes(), &ip, &[0; 8]].concat()
    }

    fn v6(ip: &str, port: u16) -> Vec<u8> {
        let family = libc::sa_family_t::try_from(libc::AF_INET6).unwrap().to_ne_bytes();
        let ip: Ipv6Addr = ip.parse().unwrap();
        [&family[..], &port.to_be_bytes(), &[0; 4], &ip.octets(), &[0; 4]].concat()
    }

    #[test]
    fn only_addresses_of_the_machine_have_a_port() {
        for address in [
            v4([127, 0, 0, 1], 5432),
            v4([127, 9, 9, 9], 5432),
            v4([0, 0, 0, 0], 5432),
            v6("::1", 5432),
            v6("::", 5432),
            v6("::ffff:127.0.0.1", 5432),
            v6("::ffff:0.0.0.0", 5432),
        ] {
            assert_eq!(loopback_port(&address), Some(5432), "{address:?}");
        }
        for address in
            [v4([10, 0, 0, 1], 80), v6("::ffff:10.0.0.1", 80), v6("2001:db8::1", 80), v4([127, 0, 0, 1], 0)]
        {
            assert_eq!(loopback_port(&address), None, "{address:?}");
        }
        assert_eq!(loopback_port(&v4([127, 0, 0, 1], 80)[..7]), None);
        assert_eq!(loopback_port(&[]), None);
    }
}
