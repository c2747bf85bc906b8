//! Parses the sandbox's packets, and builds the packets that are not part of a TCP connection.
//!
//! - Only complete IPv4 packets from the sandbox's own address count.

use super::names::{CLIENT, RESOLVER};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv4DstUnreachable, Icmpv4Packet, Icmpv4Repr, IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket,
    TcpRepr, UdpPacket, UdpRepr,
};
use std::net::Ipv4Addr;

const DNS: u16 = 53;
const HOP_LIMIT: u8 = 64;
/// Size in bytes of the payload that an ICMP error quotes (RFC 792).
const QUOTED_LEN: usize = 8;

/// TCP connection of the sandbox: its own port, and the address and port of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub(super) client_port: u16,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
}

/// Packet from the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientPacket<'a> {
    /// Segment of a TCP connection.
    Tcp {
        flow: Flow,
        /// `true` for a SYN, which requests a connection.
        is_syn: bool,
        /// `true` for a RST, which gets no response.
        is_rst: bool,
    },
    /// Message to the resolver.
    Query {
        /// Port that gets the response.
        port: u16,
        message: &'a [u8],
    },
    /// Other UDP packet.
    Datagram,
}

/// Parses a packet. Returns `None` for a packet that is dropped.
pub(super) fn parse(packet: &[u8]) -> Option<ClientPacket<'_>> {
    let (header, payload) = parse_ip(packet)?;
    if header.next_header == IpProtocol::Tcp {
        let segment = TcpPacket::new_checked(payload).ok()?;
        let flow =
            Flow { client_port: segment.src_port(), address: header.dst_addr, port: segment.dst_port() };
        let is_syn = segment.syn() && !segment.ack() && !segment.rst() && !segment.fin();
        let received = ClientPacket::Tcp { flow, is_syn, is_rst: segment.rst() };
        return is_unicast(header.dst_addr).then_some(received);
    }
    if header.next_header == IpProtocol::Udp {
        let datagram = UdpPacket::new_checked(payload).ok()?;
        if header.dst_addr == RESOLVER && datagram.dst_port() == DNS {
            return Some(ClientPacket::Query { port: datagram.src_port(), message: datagram.payload() });
        }
        return Some(ClientPacket::Datagram);
    }
    None
}

fn is_unicast(address: Ipv4Addr) -> bool {
    !(address.is_multicast() || address.is_broadcast() || address.is_unspecified())
}

/// Returns the RST that refuses a TCP segment (RFC 9293, section 3.10.7.1).
pub(super) fn reset(packet: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = parse_ip(packet)?;
    let segment = TcpPacket::new_checked(payload).ok()?;
    let acknowledged = segment.ack().then(|| segment.ack_number());
    let repr = TcpRepr {
        src_port: segment.dst_port(),
        dst_port: segment.src_port(),
        control: TcpControl::Rst,
        seq_number: acknowledged.unwrap_or_default(),
        ack_number: acknowledged.is_none().then(|| segment.seq_number() + segment.segment_len()),
        window_len: 0,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let (from, checksums) = (header.dst_addr, ChecksumCapabilities::default());
    let emit = |bytes: &mut [u8]| {
        repr.emit(&mut TcpPacket::new_unchecked(bytes), &from.into(), &CLIENT.into(), &checksums);
    };
    assemble(from, IpProtocol::Tcp, repr.buffer_len(), emit)
}

/// Returns the ICMP error "port unreachable" for a UDP packet.
pub(super) fn unreachable(packet: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = parse_ip(packet)?;
    if !is_unicast(header.dst_addr) {
        return None;
    }
    let repr = Icmpv4Repr::DstUnreachable {
        reason: Icmpv4DstUnreachable::PortUnreachable,
        header,
        data: payload.get(..QUOTED_LEN)?,
    };
    let emit = |bytes: &mut [u8]| {
        repr.emit(&mut Icmpv4Packet::new_unchecked(bytes), &ChecksumCapabilities::default())
    };
    assemble(RESOLVER, IpProtocol::Icmp, repr.buffer_len(), emit)
}

/// Returns a UDP packet from the resolver to a port of the sandbox.
pub(super) fn resolver_datagram(port: u16, message: &[u8]) -> Option<Vec<u8>> {
    let repr = UdpRepr { src_port: DNS, dst_port: port };
    let emit = |bytes: &mut [u8]| {
        let (mut packet, checksums) = (UdpPacket::new_unchecked(bytes), ChecksumCapabilities::default());
        let copy = |payload: &mut [u8]| payload.copy_from_slice(message);
        repr.emit(&mut packet, &RESOLVER.into(), &CLIENT.into(), message.len(), copy, &checksums);
    };
    assemble(RESOLVER, IpProtocol::Udp, repr.header_len() + message.len(), emit)
}

/// Parses the IP header of a complete packet from the sandbox.
fn parse_ip(packet: &[u8]) -> Option<(Ipv4Repr, &[u8])> {
    let packet = Ipv4Packet::new_checked(packet).ok()?;
    if packet.more_frags() || packet.frag_offset() != 0 {
        return None;
    }
    // The local kernel generated the packet, so verifying its checksums is unnecessary.
    let header = Ipv4Repr::parse(&packet, &ChecksumCapabilities::ignored()).ok()?;
    (header.src_addr == CLIENT).then(|| (header, packet.payload()))
}

fn assemble(
    from: Ipv4Addr,
    protocol: IpProtocol,
    length: usize,
    emit: impl FnOnce(&mut [u8]),
) -> Option<Vec<u8>> {
    let header = Ipv4Repr {
        src_addr: from,
        dst_addr: CLIENT,
        next_header: protocol,
        payload_len: length,
        hop_limit: HOP_LIMIT,
    };
    let mut bytes = vec![0; header.buffer_len() + length];
    header.emit(&mut Ipv4Packet::new_unchecked(&mut bytes), &ChecksumCapabilities::default());
    emit(bytes.get_mut(header.buffer_len()..)?);
    Some(bytes)
}
