//! Packets from programs that ignore the proxy.

mod kernel;

use crate::fixture::{Options, Peer, Person, TestProxy, wait_until};
use ironcurtain_egress::tun::{CLIENT, MTU, RESOLVER};
use ironcurtain_egress::{HostAnswer, HostRules, ProxyLimits};
use kernel::{segment, serve_with, served};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{Icmpv4Packet, IpProtocol, Ipv4Packet, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Starts a proxy whose user answers as `person` does.
fn asking(person: &Arc<Person>) -> TestProxy {
    let rules = HostRules::ask_for_all();
    TestProxy::with(Options { rules, limits: ProxyLimits::default(), ask: Some(person.clone()) })
}

#[tokio::test]
async fn a_connection_to_an_allowed_name_carries_data_both_ways() {
    let peer = Peer::echo().await;
    let port = peer.port;
    let proxy = TestProxy::new(&[&format!("echo.example.test:{port}"), &format!("127.0.0.1:{port}")], &[]);
    proxy.names.set("echo.example.test", &["127.0.0.1"]);
    served(&proxy, async |kernel| {
        let address = kernel.resolve("Echo.Example.test").await;
        assert!(proxy.names.looked_up().is_empty(), "resolving a name contacts no resolver");
        let to = (address, port);
        let next = kernel.connect(4000, to).await;
        kernel.tcp(4000, to, segment(101, Some(next), b"hello"));
        let mut echoed = Vec::new();
        while echoed.len() < 5 {
            echoed.extend(kernel.segment().await.payload);
        }
        assert_eq!(echoed, b"hello");
        // Closing the program's side closes the target's, and then the connection.
        let fin = TcpRepr { control: TcpControl::Fin, ..segment(106, Some(next + 5), b"") };
        kernel.tcp(4000, to, fin);
        while kernel.segment().await.control != TcpControl::Fin {}
        kernel.tcp(4000, to, segment(107, Some(next + 6), b""));
        assert_eq!(peer.received(1).await, ["hello"]);
    })
    .await;
    let expected =
        format!("connect echo.example.test:{port} allowed by echo.example.test:{port} [127.0.0.1]");
    assert_eq!(proxy.events.lines(1).await, [expected]);
}

#[tokio::test]
async fn addresses_without_a_name_are_judged_as_addresses() {
    let peer = Peer::echo().await;
    let proxy = TestProxy::new(&["files.example.test", &format!("127.0.0.1:{}", peer.port)], &[]);
    served(&proxy, async |kernel| {
        for address in ["9.9.9.9", "169.254.169.254", "10.0.0.1", "192.168.1.1", "198.18.0.1", "198.18.1.0"] {
            let to = (address.parse().unwrap(), 443);
            kernel.syn(4000, to);
            kernel.refused(4000, to).await;
        }
        // The permitted counterpart, which a real kernel never sends to the device.
        kernel.connect(4000, (Ipv4Addr::LOCALHOST, peer.port)).await;
    })
    .await;
    let lines = proxy.events.lines(7).await;
    assert_eq!(lines[0], "connect 9.9.9.9:443 refused address-literal []");
    assert_eq!(lines[5], "connect 198.18.1.0:443 refused address-literal []");
    assert!(lines[..6].iter().all(|line| line.contains("refused address-literal")), "{lines:#?}");
    assert!(proxy.names.looked_up().is_empty());
}

#[tokio::test]
async fn a_question_suspends_the_connection_and_repeated_syns_are_one_question() {
    let person = Person::new();
    let proxy = asking(&person);
    served(&proxy, async |kernel| {
        let to = (kernel.resolve("a.example.test").await, 8443);
        for _ in 0..5 {
            kernel.syn(4000, to);
        }
        // The answer to a query shows that the stack has handled the segments, without answering them.
        kernel.resolve("b.example.test").await;
        wait_until("the question", || !person.asked.lock().unwrap().is_empty()).await;
        kernel.syn(4000, to);
        kernel.resolve("c.example.test").await;
        assert_eq!(*person.asked.lock().unwrap(), ["a.example.test:8443"]);
        assert!(proxy.names.looked_up().is_empty());
        person.set_answer(Some(HostAnswer::Denied { why: "no".into() }));
        kernel.refused(4000, to).await;
        assert_eq!(person.asked.lock().unwrap().len(), 1);
    })
    .await;
    assert_eq!(proxy.events.lines(1).await, ["connect a.example.test:8443 refused said-no []"]);
}

#[tokio::test]
async fn a_question_is_withdrawn_when_the_socket_is_gone() {
    let person = Person::new();
    let proxy = asking(&person);
    let mut table = tempfile::NamedTempFile::new().unwrap();
    let tables = vec![File::open(table.path()).unwrap()];
    serve_with(&proxy, tables, async |kernel| {
        let to = (kernel.resolve("a.example.test").await, 80);
        let hex = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
        let line =
            |client: &str, port: &str| format!("0: {}:{client} {}:{port} 02 0:0\n", hex(CLIENT), hex(to.0));
        let one = format!("head\n{}", line("0FA0", "0050"));
        table.write_all(format!("{one}{}", line("0FA1", "0051")).as_bytes()).unwrap();
        kernel.syn(4000, to);
        kernel.syn(4001, (to.0, 81));
        wait_until("both questions", || person.waiting() == 2).await;
        // One program gives up, then the other one.
        for (length, left) in [(one.len(), 1), (0, 0)] {
            table.as_file().set_len(length.try_into().unwrap()).unwrap();
            wait_until("the withdrawal", || person.waiting() == left).await;
        }
        assert_eq!(person.asked.lock().unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_thousand_connections_are_bounded() {
    let person = Person::new();
    let proxy = asking(&person);
    served(&proxy, async |kernel| {
        let address = kernel.resolve("a.example.test").await;
        for port in 1..=1000 {
            kernel.syn(4000, (address, port));
            if port % 50 == 0 {
                // Waits until the stack has handled the segments so that none is lost.
                kernel.resolve("b.example.test").await;
            }
        }
        wait_until("256 questions", || person.waiting() == 256).await;
        kernel.resolve("c.example.test").await;
        assert_eq!(person.asked.lock().unwrap().len(), 256);
        // After the refusal of the waiting connections, there is room for others.
        person.set_answer(Some(HostAnswer::Denied { why: "no".into() }));
        for _ in 0..256 {
            assert_eq!(kernel.segment().await.control, TcpControl::Rst);
        }
        kernel.syn(4000, (address, 2000));
        kernel.refused(4000, (address, 2000)).await;
    })
    .await;
}

#[tokio::test]
async fn udp_is_refused_and_other_packets_are_dropped() {
    let proxy = TestProxy::new(&["a.example.test"], &[]);
    served(&proxy, async |kernel| {
        for to in [("9.9.9.9", 53), ("9.9.9.9", 443), ("198.18.0.1", 5353), ("169.254.169.254", 123)] {
            kernel.udp((to.0.parse().unwrap(), to.1), b"data for outside");
            let packet = kernel.packet().await;
            let ip = Ipv4Packet::new_checked(&packet[..]).unwrap();
            let icmp = Icmpv4Packet::new_checked(ip.payload()).unwrap();
            // Destination unreachable, port unreachable.
            assert_eq!((u8::from(icmp.msg_type()), icmp.msg_code()), (3, 3), "{to:?}");
            assert!(icmp.verify_checksum());
        }
        kernel.udp((Ipv4Addr::BROADCAST, 67), b"hello");
        kernel.send(Ipv4Addr::new(9, 9, 9, 9), IpProtocol::Icmp, 8, |bytes| bytes[0] = 8);
        kernel.device.write_all(&[0x60; 60]).unwrap();
        // A segment of no connection is reset, and a RST is ignored.
        let to = (Ipv4Addr::new(9, 9, 9, 9), 80);
        kernel.tcp(4000, to, TcpRepr { control: TcpControl::Rst, ..segment(1, None, b"") });
        kernel.tcp(4000, to, segment(1, Some(TcpSeqNumber(77)), b"x"));
        let answer = kernel.segment().await;
        assert_eq!((answer.control, answer.seq, answer.ack), (TcpControl::Rst, TcpSeqNumber(77), None));
    })
    .await;
}

#[tokio::test]
async fn hostile_packets_change_nothing() {
    let peer = Peer::echo().await;
    let proxy = TestProxy::new(&[&format!("127.0.0.1:{}", peer.port)], &[]);
    served(&proxy, async |kernel| {
        let to = (Ipv4Addr::LOCALHOST, peer.port);
        let next = kernel.connect(4000, to).await;
        let mut runner = TestRunner::deterministic();
        let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12);
        let bytes = proptest::collection::vec(any::<u8>(), 0..100);
        for round in 0..2_000 {
            // Valid segments of the connection, with random changes. The ports stay so that the connection gets them.
            let repr = segment(101 + (round % 7) * 1000, Some(next + 3), b"some data");
            let repr = TcpRepr { src_port: 4000, dst_port: to.1, ..repr };
            let mut tcp = vec![0; repr.buffer_len()];
            let checksums = ChecksumCapabilities::default();
            repr.emit(&mut TcpPacket::new_unchecked(&mut tcp[..]), &CLIENT.into(), &to.0.into(), &checksums);
            for (at, byte) in changes.new_tree(&mut runner).unwrap().current() {
                let at = 4 + at.index(tcp.len() - 4);
                tcp[at] = byte;
            }
            kernel.send(to.0, IpProtocol::Tcp, tcp.len(), |bytes| bytes.copy_from_slice(&tcp));
            let noise = bytes.new_tree(&mut runner).unwrap().current();
            if !noise.is_empty() {
                kernel.device.write_all(&noise).unwrap();
            }
            if round % 20 == 0 {
                // Discards the answers so that the queue does not fill.
                kernel.udp((RESOLVER, 53), b"");
                let mut packet = vec![0; MTU];
                tokio::task::yield_now().await;
                while kernel.packets.try_read(&mut packet).is_ok() {}
            }
        }
        // The stack still works.
        let mut packet = vec![0; MTU];
        while kernel.packets.try_read(&mut packet).is_ok() {}
        kernel.syn(4002, to);
        loop {
            let answer = kernel.segment().await;
            if answer.to == 4002 {
                assert_eq!(answer.control, TcpControl::Syn);
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn revoking_a_host_closes_its_connections() {
    let peer = Peer::echo().await;
    let rule = format!("127.0.0.1:{}", peer.port);
    let proxy = TestProxy::new(&[&rule], &[]);
    served(&proxy, async |kernel| {
        let to = (Ipv4Addr::LOCALHOST, peer.port);
        kernel.connect(4000, to).await;
        proxy.rules.send_replace(Arc::new(HostRules::default()));
        assert_eq!(kernel.segment().await.control, TcpControl::Fin);
        kernel.syn(4001, to);
        while kernel.segment().await.to != 4001 {}
    })
    .await;
    let lines = proxy.events.lines(3).await;
    assert_eq!(
        lines[1..],
        [
            format!("connect {rule} refused withdrawn [127.0.0.1]"),
            format!("connect {rule} refused address-literal []")
        ]
    );
}
