//! Tests the `network` settings by observing which connections reach a server.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::json;

use super::CommandFixture;

/// Server on the host's loopback interface that counts requests.
struct Host {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Host {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let count = asked.clone();
        // The thread runs until the test process exits.
        thread::spawn(move || {
            for caller in listener.incoming() {
                let mut caller = caller.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                // Ignores the request's content, and ignores errors because the client may have hung up.
                let _ = caller.read(&mut [0; 4096]);
                let _ = caller
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere");
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[test]
fn no_allowed_domain_means_no_network_and_no_proxy() {
    let host = Host::new();
    let desk = CommandFixture::new().with("network/deniedDomains", json!(["*"]));
    assert!(
        desk.stderr_of_failure(&format!("curl -sS http://127.0.0.1:{}/", host.port))
            .contains("Failed to connect")
    );
    assert!(desk.stderr_of_failure("curl -sS http://127.0.0.1:3128/").contains("Failed to connect"));
    assert_eq!((desk.stdout_of("env | grep -ic proxy || true").as_str(), host.asked()), ("0\n", 0));
}

#[test]
fn only_allowed_domains_are_reachable() {
    let host = Host::new();
    let port = host.port;
    let allowed = json!([format!("localhost:{port}"), "files.example.test"]);
    let desk = CommandFixture::new().with("network/allowedDomains", allowed);
    let get = |url: &str| format!("curl -sS --fail-with-body {url}");
    assert_eq!(desk.stdout_of(&get(&format!("http://localhost:{port}/"))), "here");
    assert_eq!(desk.stdout_of(&get(&format!("--proxytunnel http://localhost:{port}/"))), "here");
    let by_socks = format!("--noproxy '' --proxy socks5h://127.0.0.1:3128 http://localhost:{port}/");
    assert_eq!(desk.stdout_of(&get(&by_socks)), "here");
    let connect =
        format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | {} --connect localhost {port}", own_program());
    assert!(desk.stdout_of(&connect).ends_with("here"));
    assert_eq!(host.asked(), 4);
    for (url, why) in [
        (format!("http://127.0.0.1:{port}/"), "is an IP address"),
        ("http://localhost:1/".into(), "not on the list of allowed domains"),
        ("http://other.example.test/".into(), "not on the list of allowed domains"),
    ] {
        let outcome = desk.line(&get(&url));
        assert!(outcome.status == Some(22) && outcome.output.contains(why), "{url}: {outcome:?}");
    }
    assert!(
        desk.stderr_of_failure(&format!("curl -sS --noproxy '*' http://127.0.0.1:{port}/"))
            .contains("Failed to connect")
    );
    assert_eq!(host.asked(), 4);
}

#[test]
fn denied_domains_and_addresses_take_precedence() {
    let host = Host::new();
    let port = host.port;
    let url = format!("http://localhost:{port}/");
    let get = format!("curl -sS --fail-with-body {url}");
    let desk = CommandFixture::new().with("network/allowedDomains", json!([format!("localhost:{port}")]));
    let desk = desk.with("network/deniedDomains", json!(["localhost:1"]));
    let desk = desk.with("network/deniedResolvedAddresses", json!(["10.0.0.0/8"]));
    assert_eq!(desk.stdout_of(&get), "here");
    let mut desk = desk.with("network/deniedDomains", json!([format!("*:{port}")]));
    let outcome = desk.line(&get);
    assert!(outcome.status == Some(22) && outcome.output.contains("list of denied domains"), "{outcome:?}");
    desk.set("network/deniedDomains", json!([]));
    desk.set("network/deniedResolvedAddresses", json!(["127.0.0.0/8", "::1"]));
    let outcome = desk.line(&get);
    assert!(outcome.output.contains("deniedResolvedAddresses"), "{outcome:?}");
    assert_eq!(host.asked(), 1);
}

#[test]
fn invalid_domain_is_refused_before_anything_runs() {
    for (key, entry, why) in [
        ("allowedDomains", "*", "covers too much"),
        ("allowedDomains", "*.com", "covers too much"),
        ("allowedDomains", "https://example.com", "is not a host"),
        ("deniedDomains", "example.com:0", "the port must be"),
        ("deniedResolvedAddresses", "10.0.0.0/33", "invalid address range"),
    ] {
        let output =
            CommandFixture::new().with(&format!("network/{key}"), json!([entry])).expect_rejected_settings();
        assert!(output.contains(&format!("network.{key}")) && output.contains(why), "{output}");
    }
}

#[test]
fn debug_reports_connections() {
    let host = Host::new();
    let rule = format!("localhost:{}", host.port);
    let desk = CommandFixture::new().with("network/allowedDomains", json!([rule]));
    let line = format!("curl -sS http://{rule}/; curl -sS http://b.test/ >/dev/null");
    assert_eq!(desk.line(&line).complained, "");
    let received = desk.run(&["-d", "-c", &line]).complained;
    assert!(
        received.contains(&format!("ironcurtain-sandbox: http {rule} allowed by `{rule}`\n")),
        "{received}"
    );
    assert!(
        received.contains("ironcurtain-sandbox: http b.test:80 refused: `b.test:80` is not on"),
        "{received}"
    );
}

fn own_program() -> String {
    crate::harness::supervisor().to_str().unwrap().to_owned()
}
