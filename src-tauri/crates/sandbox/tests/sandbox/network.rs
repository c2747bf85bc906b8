//! Tests the proxy as the sandbox's only network access.

use std::{
    io::{Read, Write},
    net::TcpListener,
    time::Instant,
};

use ironcurtain_sandbox::{NetworkAccess, PROXY_PORT, SandboxEvent, launch};

use crate::harness::{Fixture, Probe, supervisor};

#[test]
fn proxied_sandbox_reaches_only_its_launcher() {
    let fixture = Fixture::new();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = fixture.probe_spec();
    spec.network = NetworkAccess::Proxied;
    let mut probe = Probe::start(&spec);
    let listener = probe.egress.take().unwrap().listener().unwrap();
    assert_eq!(listener.local_addr().unwrap().to_string(), format!("127.0.0.1:{PROXY_PORT}"));
    let answering = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut word = [0; 4];
        caller.read_exact(&mut word).unwrap();
        caller.write_all(b"answered").unwrap();
        word
    });
    assert_eq!(probe.send_command(&format!("ask 127.0.0.1:{PROXY_PORT} word")), "ok answered");
    assert_eq!(&answering.join().unwrap(), b"word");
    // The listener is closed, but a process that another test has just forked may hold a copy until it calls `exec`.
    let began = Instant::now();
    while probe.send_command(&format!("connect 127.0.0.1:{PROXY_PORT}")) != "err ECONNREFUSED" {
        assert!(began.elapsed() < crate::harness::TIMEOUT, "the listener is still open");
    }
    assert_eq!(probe.send_command(&format!("connect {}", host.local_addr().unwrap())), "err ECONNREFUSED");
    assert_eq!(probe.send_command("connect 192.0.2.1:80"), "err ENETUNREACH");
    assert_eq!(probe.send_command("fds"), "ok 0 1 2");
}

#[test]
fn sandbox_without_network_has_no_listener() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    assert!(probe.egress.is_none());
    assert_eq!(probe.send_command(&format!("connect 127.0.0.1:{PROXY_PORT}")), "err ECONNREFUSED");
}

#[test]
fn failing_sandbox_ends_the_wait_for_its_listener() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&["no-such-program"]);
    spec.network = NetworkAccess::Proxied;
    let launched = launch(&spec, &supervisor(), |_| ()).unwrap();
    let mut control =
        ironcurtain_sandbox::client::ControlClient::new(launched.control, crate::harness::TIMEOUT).unwrap();
    assert!(matches!(control.event().unwrap(), SandboxEvent::Failed { .. }));
    let mut spec = fixture.probe_spec();
    std::fs::remove_dir(fixture.path("session")).unwrap();
    spec.network = NetworkAccess::Proxied;
    let launched = launch(&spec, &supervisor(), |_| ()).unwrap();
    let error = launched.egress.unwrap().listener().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}
