//! The kernel of the sandbox: sends and receives packets through a socket pair instead of a TUN device.

use crate::fixture::{TIMEOUT, TestProxy};
use ironcurtain_egress::tun::{CLIENT, MTU, RESOLVER, TunNetwork, serve_tun};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr,
};
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// The sandbox's end of the device.
pub(super) struct Kernel {
    pub(super) packets: Receiver,
    pub(super) device: File,
}

/// Segment that the stack has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from: (Ipv4Addr, u16),
    pub(super) to: u16,
    pub(super) control: TcpControl,
    pub(super) seq: TcpSeqNumber,
    pub(super) ack: Option<TcpSeqNumber>,
    pub(super) payload: Vec<u8>,
}

/// Runs `body` while the device is served with the proxy at `stage`.
pub(super) async fn served(proxy: &TestProxy, body: impl AsyncFnOnce(&mut Kernel)) {
    serve_with(proxy, Vec::new(), body).await;
}

/// Like [`served`], with the kernel's tables of sockets.
pub(super) async fn serve_with(proxy: &TestProxy, tables: Vec<File>, body: impl AsyncFnOnce(&mut Kernel)) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let device = File::from(ours);
    let packets = Receiver::from_file_unchecked(device.try_clone().unwrap()).unwrap();
    for end in [&device, &File::from(theirs.try_clone().unwrap())] {
        set_socket_send_buffer_size(end, 8 << 20).unwrap();
    }
    let mut kernel = Kernel { packets, device };
    let network = TunNetwork { device: theirs.into(), proxy: proxy.address, tables };
    tokio::select! {
        error = serve_tun(network) => panic!("the device failed: {error}"),
        () = body(&mut kernel) => {}
    }
}

impl Kernel {
    pub(super) fn send(
        &mut self,
        to: Ipv4Addr,
        protocol: IpProtocol,
        length: usize,
        emit: impl FnOnce(&mut [u8]),
    ) {
        let header = Ipv4Repr {
            src_addr: CLIENT,
            dst_addr: to,
            next_header: protocol,
            payload_len: length,
            hop_limit: 64,
        };
        let mut packet = vec![0; header.buffer_len() + length];
        header.emit(&mut Ipv4Packet::new_unchecked(&mut packet), &ChecksumCapabilities::default());
        emit(&mut packet[header.buffer_len()..]);
        self.device.write_all(&packet).unwrap();
    }

    pub(super) fn tcp(&mut self, from: u16, (address, port): (Ipv4Addr, u16), repr: TcpRepr<'_>) {
        let repr = TcpRepr { src_port: from, dst_port: port, ..repr };
        let checksums = ChecksumCapabilities::default();
        self.send(address, IpProtocol::Tcp, repr.buffer_len(), |bytes| {
            let mut segment = TcpPacket::new_unchecked(bytes);
            repr.emit(&mut segment, &CLIENT.into(), &address.into(), &checksums);
        });
    }

    pub(super) fn syn(&mut self, from: u16, to: (Ipv4Addr, u16)) {
        self.tcp(from, to, TcpRepr { control: TcpControl::Syn, ..segment(100, None, b"") });
    }

    pub(super) fn udp(&mut self, to: (Ipv4Addr, u16), message: &[u8]) {
        let repr = UdpRepr { src_port: 5000, dst_port: to.1 };
        self.send(to.0, IpProtocol::Udp, repr.header_len() + message.len(), |bytes| {
            let mut packet = UdpPacket::new_unchecked(bytes);
            let copy = |payload: &mut [u8]| payload.copy_from_slice(message);
            let checksums = ChecksumCapabilities::default();
            repr.emit(&mut packet, &CLIENT.into(), &to.0.into(), message.len(), copy, &checksums);
        });
    }

    pub(super) async fn packet(&mut self) -> Vec<u8> {
        let mut packet = vec![0; MTU];
        loop {
            timeout(TIMEOUT, self.packets.readable()).await.expect("a packet comes").unwrap();
            if let Ok(length) = self.packets.try_read(&mut packet) {
                packet.truncate(length);
                return packet;
            }
        }
    }

    pub(super) async fn segment(&mut self) -> Segment {
        let packet = self.packet().await;
        let ip = Ipv4Packet::new_checked(&packet[..]).unwrap();
        assert!(ip.verify_checksum() && ip.dst_addr() == CLIENT);
        let (from, tcp) = (ip.src_addr(), TcpPacket::new_checked(ip.payload()).unwrap());
        let repr = TcpRepr::parse(&tcp, &from.into(), &CLIENT.into(), &ChecksumCapabilities::default());
        let repr = repr.unwrap();
        Segment {
            from: (from, repr.src_port),
            to: repr.dst_port,
            control: repr.control,
            seq: repr.seq_number,
            ack: repr.ack_number,
            payload: repr.payload.to_vec(),
        }
    }

    /// Resolves a name as a program does.
    pub(super) async fn resolve(&mut self, name: &str) -> Ipv4Addr {
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        name.split('.').for_each(|label| {
            query.push(label.len().try_into().unwrap());
            query.extend(label.as_bytes());
        });
        query.extend([0, 0, 1, 0, 1]);
        self.udp((RESOLVER, 53), &query);
        let packet = self.packet().await;
        let ip = Ipv4Packet::new_checked(&packet[..]).unwrap();
        let udp = UdpPacket::new_checked(ip.payload()).unwrap();
        assert!(udp.verify_checksum(&RESOLVER.into(), &CLIENT.into()));
        assert_eq!((ip.src_addr(), udp.src_port(), udp.dst_port()), (RESOLVER, 53, 5000));
        Ipv4Addr::from(*udp.payload().last_chunk::<4>().unwrap())
    }

    /// Connects, and completes the handshake. Returns the stack's next sequence number.
    pub(super) async fn connect(&mut self, from: u16, to: (Ipv4Addr, u16)) -> TcpSeqNumber {
        self.syn(from, to);
        let answer = self.segment().await;
        assert_eq!((answer.control, answer.from, answer.to), (TcpControl::Syn, to, from));
        assert_eq!(answer.ack, Some(TcpSeqNumber(101)));
        self.tcp(from, to, segment(101, Some(answer.seq + 1), b""));
        answer.seq + 1
    }

    /// Waits for the refusal of a connection.
    pub(super) async fn refused(&mut self, from: u16, to: (Ipv4Addr, u16)) {
        let answer = self.segment().await;
        assert_eq!((answer.control, answer.from, answer.to), (TcpControl::Rst, to, from));
        assert_eq!(answer.ack, Some(TcpSeqNumber(101)));
    }
}

pub(super) fn segment(seq: i32, ack: Option<TcpSeqNumber>, payload: &[u8]) -> TcpRepr<'_> {
    TcpRepr {
        src_port: 0,
        dst_port: 0,
        control: TcpControl::None,
        seq_number: TcpSeqNumber(seq),
        ack_number: ack,
        window_len: 60_000,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload,
    }
}
