//! Sockets of every family that connect to servers on the host.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    time::Duration,
};

use crate::sys::{Outcome, check, claim, descriptor};

const TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["unix", kind, path, text] => unix(kind, path, text),
        ["from-pair", how, path, text] => from_pair(how, path, text),
        ["bind-unix", path] => UnixListener::bind(path).map(drop).map_err(Into::into),
        ["tcp", address, text] => tcp(address, text),
        ["tcp-as", protocol, address, text] => tcp_as(protocol, address, text),
        ["udp", address, text] => udp(address, text),
        ["family", family, kind, protocol, file] => family_claim(family, kind, protocol, file),
        ["ping", address] => ping(address),
        ["diag"] => diag(),
        ["pair", path] => pair(path),
        ["pass", path] => pass(path),
        ["loopback", address, path] => loopback(address, path),
        ["loopback-udp", address, path] => loopback_udp(address, path),
        _ => return None,
    })
}

/// Returns the address for a path, or for an abstract name if it starts with `@`.
pub(crate) fn unix_address(path: &str) -> Result<(libc::sockaddr_un, u32), Box<dyn std::error::Error>> {
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = match path.strip_prefix('@') {
        Some(name) => format!("\0{name}"),
        None => format!("{path}\0"),
    };
    if name.len() > address.sun_path.len() {
        return Err("the name is too long for a socket".into());
    }
    for (place, byte) in address.sun_path.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed();
    }
    Ok((address, u32::try_from(name.len() + 2)?))
}

fn unix(kind: &str, path: &str, text: &str) -> Outcome {
    let kind = match kind {
        "stream" => libc::SOCK_STREAM,
        "datagram" => libc::SOCK_DGRAM,
        "packets" => libc::SOCK_SEQPACKET,
        _ => return Err("unknown kind".into()),
    };
    let (address, length) = unix_address(path)?;
    // SAFETY: the address has the length passed and outlives the call.
    let socket = unsafe {
        let socket = descriptor(libc::socket(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0))?;
        check(libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length))?;
        socket
    };
    Ok(File::from(socket).write_all(text.as_bytes())?)
}

/// Sends a datagram from one end of a socket pair to a third address.
fn from_pair(how: &str, path: &str, text: &str) -> Outcome {
    let (address, length) = unix_address(path)?;
    let (to, bytes) = ((&raw const address).cast(), text.as_ptr().cast());
    let mut ends = [-1; 2];
    // SAFETY: the array has room for two descriptors, the address and the text have the lengths passed, and all outlive
    // the calls.
    unsafe {
        check(libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()))?;
        let [one, other] = [descriptor(ends[0])?, descriptor(ends[1])?];
        drop(other);
        let sent = match how {
            "connected" => {
                check(libc::connect(one.as_raw_fd(), to, length))?;
                libc::send(one.as_raw_fd(), bytes, text.len(), 0)
            }
            _ => libc::sendto(one.as_raw_fd(), bytes, text.len(), 0, to, length),
        };
        check(sent as i64)?;
    }
    Ok(())
}

fn tcp(address: &str, text: &str) -> Outcome {
    let address: SocketAddr = address.parse()?;
    Ok(TcpStream::connect_timeout(&address, TIMEOUT)?.write_all(text.as_bytes())?)
}

fn v4(address: &str) -> Result<libc::sockaddr_in, Box<dyn std::error::Error>> {
    let SocketAddr::V4(address) = address.parse()? else { return Err("not an IPv4 address".into()) };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    })
}

/// Opens a stream with MPTCP, or with data in the first packet.
fn tcp_as(protocol: &str, address: &str, text: &str) -> Outcome {
    let number = if protocol == "mptcp" { 262 } else { 0 };
    let flags = if protocol == "fast-open" { libc::MSG_FASTOPEN } else { 0 };
    let address = v4(address)?;
    let (to, size) = ((&raw const address).cast(), size_of_val(&address) as u32);
    // SAFETY: the address and the text have the lengths passed and outlive the calls.
    unsafe {
        let socket = descriptor(libc::socket(libc::AF_INET, libc::SOCK_STREAM, number))?;
        if flags == 0 {
            check(libc::connect(socket.as_raw_fd(), to, size))?;
        }
        let (text, length) = (text.as_ptr().cast(), text.len());
        check(libc::sendto(socket.as_raw_fd(), text, length, flags, to, if flags == 0 { 0 } else { size })
            as i64)?;
    }
    Ok(())
}

fn udp(address: &str, text: &str) -> Outcome {
    let address: SocketAddr = address.parse()?;
    let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.set_broadcast(true)?;
    socket.send_to(text.as_bytes(), address)?;
    Ok(())
}

fn family_claim(family: &str, kind: &str, protocol: &str, file: &str) -> Outcome {
    // SAFETY: `socket` takes no pointers.
    descriptor(unsafe { libc::socket(family.parse()?, kind.parse()?, protocol.parse()?) })?;
    claim(file, family)
}

/// Sends an echo request through the socket type that unprivileged users are allowed to open, and waits for the reply.
fn ping(address: &str) -> Outcome {
    // SAFETY: `socket` takes no pointers, and the new descriptor is owned by the returned socket.
    let socket = unsafe {
        let socket = descriptor(libc::socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP))?;
        UdpSocket::from(socket)
    };
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send_to(&[8, 0, 0, 0, 0, 0, 0, 1], address)?;
    socket.recv(&mut [0; 64])?;
    Ok(())
}

/// Lists the names of all unix sockets, which the kernel reports to any process.
fn diag() -> Outcome {
    // A request of 40 bytes: header, family, protocol, states, inode, attributes to report, cookie.
    let mut request = Vec::new();
    request.extend(40u32.to_ne_bytes());
    request.extend(20u16.to_ne_bytes());
    request.extend(0x301u16.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([1, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(1u32.to_ne_bytes());
    request.extend([0; 8]);
    // SAFETY: `socket` takes no pointers.
    let socket =
        descriptor(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 4) })?;
    let mut socket = File::from(socket);
    socket.write_all(&request)?;
    let mut answer = [0; 65_536];
    loop {
        let length = socket.read(&mut answer)?;
        let part = answer.get(..length).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(part));
        // Type 3 marks the end, and type 2 marks an error.
        if matches!(part.get(4), None | Some(2 | 3)) {
            return Ok(());
        }
    }
}

/// Sends a file through a private socket pair.
fn pair(path: &str) -> Outcome {
    let (mut one, mut other) = UnixStream::pair()?;
    one.write_all(&fs::read(path)?)?;
    drop(one);
    println!("{}", io::read_to_string(&mut other)?);
    Ok(())
}

/// Sends a file through a descriptor that is passed over a private socket pair.
fn pass(path: &str) -> Outcome {
    let file = File::open(path)?;
    let (one, other) = UnixStream::pair()?;
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut space = [0u64; 4];
    // SAFETY: every header is within `space`, which is aligned and large enough for one descriptor; all buffers outlive
    // the calls.
    let received = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = space.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file.as_raw_fd());
        check(libc::sendmsg(one.as_raw_fd(), &raw const message, 0) as i64)?;
        check(libc::recvmsg(other.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) as i64)?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() {
            return Err("no descriptor received".into());
        }
        OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned())
    };
    drop(file);
    println!("{}", io::read_to_string(File::from(received))?);
    Ok(())
}

/// Sends a file over the sandbox's own loopback interface.
fn loopback(address: &str, path: &str) -> Outcome {
    let listener = TcpListener::bind(address)?;
    let mut caller = TcpStream::connect(listener.local_addr()?)?;
    let (mut called, _) = listener.accept()?;
    caller.write_all(&fs::read(path)?)?;
    drop(caller);
    println!("{}", io::read_to_string(&mut called)?);
    // Prints the kernel's connection table, in which the test looks for the connection.
    println!("{}", fs::read_to_string("/proc/net/tcp")?);
    Ok(())
}

fn loopback_udp(address: &str, path: &str) -> Outcome {
    let listener = UdpSocket::bind(address)?;
    listener.set_read_timeout(Some(TIMEOUT))?;
    UdpSocket::bind(address)?.send_to(&fs::read(path)?, listener.local_addr()?)?;
    let mut bytes = [0; 4096];
    let length = listener.recv(&mut bytes)?;
    println!("{}", String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()));
    Ok(())
}
