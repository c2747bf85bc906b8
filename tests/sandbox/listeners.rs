//! Listening sockets on the host. The kernel queues connections to them, and the test counts the connections after the
//! sandbox has exited.
//!
//! Variables:
//!
//! - `USTREAM`, `UDGRAM`, `UPACKETS`: socket paths outside the sandbox.
//! - `UWORK`: a socket path in the session sandbox directory.
//! - `UABSTRACT`, `UX11`: abstract socket names.
//! - `PORT`: a TCP port on every address of the host. `PORT6`: a TCP port on its IPv6 loopback address. `UPORT`: a UDP
//!   port.
//! - `UPIPE`: a named pipe in the granted directory.
//! - `LAN`: a non-loopback address of the host if it has one, otherwise its loopback address.

use std::{
    fs::File,
    io::{Read, Write},
    net::{IpAddr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::OpenOptionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::scene::Scene;

pub(crate) struct Listeners {
    unix: Vec<(&'static str, String, UnixListener)>,
    datagrams: (String, UnixDatagram),
    pipe: (String, File),
    tcp: [TcpListener; 2],
    udp: UdpSocket,
    multicast: UdpSocket,
    lan: IpAddr,
}

/// Content of the named pipe.
const IN_PIPE: &[u8] = b"in the pipe";

/// Multicast group used for service discovery on the local network.
const GROUP: std::net::Ipv4Addr = std::net::Ipv4Addr::new(239, 255, 77, 77);

impl Listeners {
    pub(crate) fn open(scene: &Scene) -> Self {
        let by_path = |variable, name: &str| {
            let path = scene.path(name);
            (variable, path.clone(), UnixListener::bind(path).unwrap())
        };
        let by_name = |variable, name: String| {
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            (variable, format!("@{name}"), UnixListener::bind_addr(&address).unwrap())
        };
        let own_name = format!("{}{}", scene.secret, scene.queue());
        let unix = vec![
            by_path("USTREAM", "outside/stream"),
            by_path("UWORK", "work/stream"),
            by_path("UDOCKER", "docker.sock"),
            by_path("UAGENT", "agent.1"),
            by_path("UBUS", "bus"),
            by_name("UABSTRACT", scene.queue()),
            by_name("UX11", format!("/tmp/.X11-unix{}", scene.queue())),
            by_name("USECRET", own_name),
        ];
        let path = scene.path("outside/datagrams");
        let datagrams = (path.clone(), UnixDatagram::bind(path).unwrap());
        let pipe = scene.path("granted/pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut ends = File::options().read(true).write(true).custom_flags(flags).open(&pipe).unwrap();
        ends.write_all(IN_PIPE).unwrap();
        let pipe = (pipe, ends);
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let multicast = UdpSocket::bind((GROUP, 0)).unwrap();
        // Joins the group through any interface that reaches it, if there is one.
        let _ = multicast.join_multicast_v4(&GROUP, &std::net::Ipv4Addr::UNSPECIFIED);
        let tcp = ["0.0.0.0:0", "[::1]:0"].map(|address| TcpListener::bind(address).unwrap());
        unix.iter().for_each(|(.., listener)| listener.set_nonblocking(true).unwrap());
        tcp.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        datagrams.1.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        multicast.set_nonblocking(true).unwrap();
        Self { unix, datagrams, pipe, tcp, udp, multicast, lan: lan() }
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let [four, six] =
            self.tcp.each_ref().map(|listener| listener.local_addr().unwrap().port().to_string());
        let unix = self.unix.iter().map(|(variable, path, _)| (*variable, path.clone()));
        // The name of this socket is itself a secret.
        let unix = unix.filter(|(variable, _)| *variable != "USECRET");
        let rest = [
            ("UDGRAM", self.datagrams.0.clone()),
            ("UPIPE", self.pipe.0.clone()),
            ("PORT", four),
            ("PORT6", six),
            ("UPORT", self.udp.local_addr().unwrap().port().to_string()),
            ("MULTICAST", self.multicast.local_addr().unwrap().to_string()),
            ("LAN", self.lan.to_string()),
        ];
        unix.chain(rest).collect()
    }

    /// Returns the TCP port.
    pub(crate) fn port(&self) -> u16 {
        self.tcp[0].local_addr().unwrap().port()
    }

    /// Returns the TCP port in the format of the kernel's socket table.
    pub(crate) fn port_in_table(&self) -> String {
        format!(":{:04X} 00000000:0000 0A", self.port())
    }

    /// Describes each socket that received a connection or data, and a named pipe whose content changed.
    pub(crate) fn heard(&self) -> Vec<String> {
        let mut heard = Vec::new();
        for (name, _, listener) in &self.unix {
            if listener.accept().is_ok() {
                heard.push(format!("{name} was called"));
            }
        }
        for listener in &self.tcp {
            if let Ok((_, from)) = listener.accept() {
                heard.push(format!("{} was called from {from}", listener.local_addr().unwrap()));
            }
        }
        let mut bytes = [0; 256];
        let unix = self.datagrams.1.recv(&mut bytes).map(|_| "the socket for datagrams was written to");
        let udp = self.udp.recv(&mut bytes).map(|_| "the port for datagrams was written to");
        let multicast = self.multicast.recv(&mut bytes).map(|_| "the multicast group was written to");
        let length = (&self.pipe.1).read(&mut bytes).unwrap_or_default();
        if bytes.get(..length) != Some(IN_PIPE) {
            heard.push("the named pipe was written to or emptied".to_owned());
        }
        heard.extend([unix, udp, multicast].into_iter().flatten().map(str::to_owned));
        heard
    }
}

/// Returns the address from which the host reaches other machines. Sends no packet.
fn lan() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    match socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) {
        Ok(address) => address.ip(),
        Err(_) => IpAddr::from([127, 0, 0, 1]),
    }
}
