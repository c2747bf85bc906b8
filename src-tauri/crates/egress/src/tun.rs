//! Network of programs that ignore the proxy variables: reads IP packets from a TUN device and hands each TCP connection
//! to the sandbox's proxy.
//!
//! - A connection is an ordinary `CONNECT` request to the proxy, so it has the same rules, questions and record. This
//!   module decides nothing, and its process needs no other permission than to connect to the proxy.
//! - A SYN is answered only after the proxy's response: a refusal is a RST, and a question suspends the `connect` call.
//! - Names are resolved without DNS traffic: the module `dns` answers each query.
//! - Packets may be hostile. Connections, buffers and names are bounded, and packets beyond these limits are dropped.
//! - There is no other network: UDP is answered with an ICMP error, and all other packets are dropped.

mod connecting_sockets;
mod connection;
mod device;
mod dns;
mod flows;
mod names;
mod packet;
mod proxy;
mod relay;

use crate::host::{Host, HostPort};
use connecting_sockets::ConnectingSockets;
use device::TunDevice;
use flows::{FlowState, Flows};
use names::HostNames;
use packet::{ClientPacket, Flow};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

pub use device::MTU;
pub use names::{CLIENT, NETWORK_BITS, RESOLVER};

/// Maximum number of packets that are read before other tasks run.
const BATCH: usize = 64;
/// Interval for checking whether programs still wait for their connections.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// TUN device of a sandbox, and the proxy that gets its connections.
#[derive(Debug)]
pub struct TunNetwork {
    /// Device that reads and writes one IP packet at a time.
    pub device: File,
    /// Address of the sandbox's proxy.
    pub proxy: SocketAddr,
    /// The `tcp` and `tcp6` tables in `/proc/self/net`, opened in the sandbox's network namespace.
    pub tables: Vec<File>,
}

/// Serves a TUN device until it fails, and returns the error. Must run on a single-threaded runtime.
pub async fn serve_tun(network: TunNetwork) -> io::Error {
    let device = match TunDevice::new(network.device) {
        Ok(device) => Rc::new(device),
        Err(error) => return error,
    };
    let mut router =
        Router { device, names: HostNames::default(), flows: Flows::default(), proxy: network.proxy };
    let mut connecting_sockets = ConnectingSockets::new(network.tables);
    LocalSet::new().run_until(async move { router.run(&mut connecting_sockets).await }).await
}

/// Distributes packets to connections.
struct Router {
    device: Rc<TunDevice>,
    names: HostNames,
    flows: Flows,
    proxy: SocketAddr,
}

impl Router {
    async fn run(&mut self, connecting_sockets: &mut ConnectingSockets) -> io::Error {
        let mut packet = vec![0; MTU];
        let mut checks = interval(CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                readable = self.device.readable() => if let Err(error) = readable { return error },
                _ = checks.tick() => {
                    self.flows.cancel_abandoned(|| connecting_sockets.find());
                    continue;
                }
            }
            for _ in 0..BATCH {
                match self.device.try_read(&mut packet) {
                    Ok(length) => self.handle(packet.get(..length).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return error,
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn handle(&mut self, bytes: &[u8]) {
        match packet::parse(bytes) {
            Some(ClientPacket::Tcp { flow, is_syn, is_rst }) => {
                self.handle_tcp(flow, bytes, (is_syn, is_rst))
            }
            Some(ClientPacket::Query { port, message }) => {
                let answer = dns::answer(message, &mut self.names);
                let reply = answer.and_then(|answer| packet::resolver_datagram(port, &answer));
                self.write(reply);
            }
            Some(ClientPacket::Datagram) => self.write(packet::unreachable(bytes)),
            None => {}
        }
    }

    fn handle_tcp(&mut self, flow: Flow, bytes: &[u8], (is_syn, is_rst): (bool, bool)) {
        match self.flows.get(flow) {
            Some(FlowState::Open(relay)) => relay.receive(bytes, &self.device),
            // A repeated SYN, or the SYN of a newer attempt with the same port. The attempt that is in progress has the
            // same target.
            Some(FlowState::Pending(pending)) if is_syn => pending.replace_syn(bytes),
            Some(FlowState::Pending(_)) => {}
            None if is_syn => {
                let target = HostPort { host: self.host(flow), port: flow.port };
                self.flows.open(flow, bytes, (target, self.proxy), &self.device);
            }
            None if is_rst => {}
            None => self.write(packet::reset(bytes)),
        }
    }

    /// Returns the name that the resolver gave this address, or the address itself.
    fn host(&mut self, flow: Flow) -> Host {
        let name = self.names.name_of(flow.address);
        name.map_or(Host::Address(IpAddr::V4(flow.address)), |name| Host::Name(name.to_owned()))
    }

    fn write(&self, packet: Option<Vec<u8>>) {
        packet.into_iter().for_each(|packet| self.device.write(&packet));
    }
}
