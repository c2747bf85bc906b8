//! TCP connection with a program in the sandbox.
//!
//! - Each connection has a TCP stack of its own, which gets only this connection's packets. Its memory is allocated when
//!   the connection is accepted.

use super::device::{MTU, TunDevice};
use super::packet::Flow;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration as StackDuration, Instant as StackInstant};
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// Size in bytes of the buffer for each direction. Must have room for several packets of the maximum size.
const BUFFER_LEN: usize = 128 * 1024;
/// Time after which a connection whose program acknowledges nothing is reset. The kernel acknowledges data even for a
/// stopped program.
const ACK_TIMEOUT: StackDuration = StackDuration::from_secs(120);

/// Connection that was accepted.
pub(super) struct TcpConnection {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    created: Instant,
}

impl TcpConnection {
    /// Accepts a connection by responding to its SYN. Returns `None` if the stack cannot listen on the port.
    pub(super) fn accept(flow: Flow, syn: &[u8], device: &TunDevice) -> Option<Self> {
        let created = Instant::now();
        let mut config = Config::new(HardwareAddress::Ip);
        // Makes the sequence numbers unpredictable.
        config.random_seed = RandomState::new().hash_one(flow);
        let device_port = &mut StackDevice { device, incoming: None };
        let mut interface = Interface::new(config, device_port, StackInstant::ZERO);
        // The stack has the target's address. A prefix of length zero makes the sandbox reachable without a route.
        interface.update_ip_addrs(|addresses| {
            // There is room for two addresses.
            let _ = addresses.push(IpCidr::new(flow.address.into(), 0));
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_LEN]);
        let mut socket = Socket::new(buffer(), buffer());
        // Delays would only slow the copying between two connections.
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(None);
        socket.set_timeout(Some(ACK_TIMEOUT));
        socket.listen((flow.address, flow.port)).ok()?;
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let socket = sockets.add(socket);
        let mut connection = Self { interface, sockets, socket, created };
        connection.receive(syn, device);
        connection.send(device);
        Some(connection)
    }

    pub(super) fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Handles a packet of this connection.
    pub(super) fn receive(&mut self, packet: &[u8], device: &TunDevice) {
        let device_port = &mut StackDevice { device, incoming: Some(packet) };
        self.interface.poll_ingress_single(self.now(), device_port, &mut self.sockets);
    }

    /// Sends all packets that are due.
    pub(super) fn send(&mut self, device: &TunDevice) {
        let device_port = &mut StackDevice { device, incoming: None };
        self.interface.poll(self.now(), device_port, &mut self.sockets);
    }

    /// Returns the time after which [`send`](Self::send) must be called again, or `None` if nothing is due.
    pub(super) fn delay(&mut self) -> Option<Duration> {
        self.interface.poll_delay(self.now(), &self.sockets).map(Into::into)
    }

    /// Returns `true` if no more packets need to be exchanged. The stack would wait for repeated packets, which do not
    /// occur on a device without packet loss.
    pub(super) fn is_closed(&mut self) -> bool {
        matches!(self.socket().state(), State::Closed | State::TimeWait)
    }

    fn now(&self) -> StackInstant {
        StackInstant::from_micros(i64::try_from(self.created.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

/// Device of one stack.
struct StackDevice<'a> {
    device: &'a TunDevice,
    incoming: Option<&'a [u8]>,
}

struct ReceivedPacket<'a>(&'a [u8]);

struct PacketSender<'a>(&'a TunDevice);

impl Device for StackDevice<'_> {
    type RxToken<'a>
        = ReceivedPacket<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = PacketSender<'a>
    where
        Self: 'a;

    fn receive(&mut self, _: StackInstant) -> Option<(ReceivedPacket<'_>, PacketSender<'_>)> {
        Some((ReceivedPacket(self.incoming.take()?), PacketSender(self.device)))
    }

    fn transmit(&mut self, _: StackInstant) -> Option<PacketSender<'_>> {
        Some(PacketSender(self.device))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        // The local kernel generates the packets, so verifying their checksums is unnecessary. It verifies the
        // checksums of the packets that it receives.
        let mut checksum = ChecksumCapabilities::default();
        (checksum.ipv4, checksum.tcp) = (Checksum::Tx, Checksum::Tx);
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities.checksum = checksum;
        capabilities
    }
}

impl RxToken for ReceivedPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl TxToken for PacketSender<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.write_with(length, fill)
    }
}
