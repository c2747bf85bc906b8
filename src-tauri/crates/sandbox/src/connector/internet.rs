//! Connects internet sockets for programs that may stop waiting.
//!
//! - A connection through the TUN device takes as long as the user's answer. Meanwhile, the socket must not be held for
//!   a program that was killed or interrupted, because its question would stay open.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    net::sockopt::{Timeout, socket_error, socket_timeout},
};

use crate::sys::notify;

/// Interval for checking whether the program is still waiting.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Connects a stream socket as `connect` does, but fails with `EINTR` when `is_waiting` returns `false`.
pub(super) fn connect(socket: &OwnedFd, address: &[u8], is_waiting: impl Fn() -> bool) -> Result<(), i32> {
    let flags = fcntl_getfl(socket).map_err(errno_code)?;
    if flags.contains(OFlags::NONBLOCK) {
        return notify::connect(socket, address);
    }
    let limit = socket_timeout(socket, Timeout::Send).map_err(errno_code)?;
    // The flag belongs to the program's socket too, so it is set only for the call that starts the connection.
    fcntl_setfl(socket, flags | OFlags::NONBLOCK).map_err(errno_code)?;
    let begun = notify::connect(socket, address);
    fcntl_setfl(socket, flags).map_err(errno_code)?;
    match begun {
        Err(libc::EINPROGRESS) => finish(socket, limit, is_waiting),
        done => done,
    }
}

/// Waits until the connection is made or refused.
fn finish(socket: &OwnedFd, limit: Option<Duration>, is_waiting: impl Fn() -> bool) -> Result<(), i32> {
    let began = Instant::now();
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&CHECK_INTERVAL)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return socket_error(socket).map_err(errno_code)?.map_err(errno_code),
            Err(error) => return Err(errno_code(error)),
        }
        if limit.is_some_and(|limit| began.elapsed() >= limit) {
            return Err(libc::EINPROGRESS);
        }
        if !is_waiting() {
            return Err(libc::EINTR);
        }
    }
}

fn errno_code(error: Errno) -> i32 {
    error.raw_os_error()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

    use super::*;

    fn address(ip: Ipv4Addr, port: u16) -> Vec<u8> {
        let family = libc::sa_family_t::try_from(libc::AF_INET).unwrap().to_ne_bytes();
        [&family[..], &port.to_be_bytes(), &ip.octets(), &[0; 8]].concat()
    }

    fn new_socket() -> OwnedFd {
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn a_connection_has_the_result_of_the_call_and_leaves_the_flags() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = address(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let socket = new_socket();
        assert_eq!(connect(&socket, &address, || true), Ok(()));
        assert!(!fcntl_getfl(&socket).unwrap().contains(OFlags::NONBLOCK));
        drop(listener);
        assert_eq!(connect(&new_socket(), &address, || true), Err(libc::ECONNREFUSED));
    }
}
