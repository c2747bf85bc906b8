//! Tests port 443, on which only TLS with the allowed server name is forwarded.

use crate::fixture::{Options, TestProxy, read_to_end};
use crate::namespace::{PUBLIC, World, inside};
use ironcurtain_egress::{HostRules, ProxyLimits};
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// ClientHello that curl sends to `files.example.test`.
const CURL: &[u8] = include_bytes!("../../src/hello/captured/curl.bin");

fn proxy() -> TestProxy {
    let rules = HostRules::new(["*.example.test", "*.example.test:8443", "9.9.9.9"], [""; 0], false).unwrap();
    let limits = ProxyLimits { handshake: Duration::from_secs(2), ..ProxyLimits::default() };
    let proxy = TestProxy::with(Options { rules, limits, ask: None });
    proxy.names.set("files.example.test", &[PUBLIC]);
    proxy.names.set("other.example.test", &[PUBLIC]);
    proxy
}

/// Returns `true` if OpenSSL's client completes a handshake.
async fn s_client(proxy: &TestProxy, world: &World, target: &str, more: &[&str]) -> bool {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-proxy", &proxy.address.to_string(), "-connect", target, "-brief", "-CAfile"]);
    command.arg(world.ca()).args(more).stdin(std::process::Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    String::from_utf8_lossy(&output.stderr).contains("CONNECTION ESTABLISHED")
}

#[test]
fn the_client_hello_must_name_the_allowed_host() {
    inside("tls::the_client_hello_must_name_the_allowed_host", async |world| {
        let proxy = proxy();
        let target = "files.example.test:443";
        for more in [
            &["-servername", "files.example.test"][..],
            &["-servername", "FILES.Example.TEST"],
            &["-servername", "files.example.test", "-tls1_2"],
            &["-servername", "files.example.test", "-max_send_frag", "512", "-split_send_frag", "512"],
        ] {
            assert!(s_client(&proxy, &world, target, more).await, "{more:?}");
        }
        assert!(
            s_client(&proxy, &world, "9.9.9.9:443", &["-noservername"]).await,
            "an address that is spelled out"
        );
        let connection_count = world.connection_count();
        assert_eq!(connection_count, 5);
        for more in [
            &["-servername", "other.example.test"][..],
            &["-servername", "files.example.test.evil.test"],
            &["-servername", "files.example.test."],
            &["-noservername"],
        ] {
            assert!(!s_client(&proxy, &world, target, more).await, "{more:?}");
        }
        assert!(!s_client(&proxy, &world, "9.9.9.9:443", &["-servername", "files.example.test"]).await);
        assert_eq!(world.connection_count(), connection_count, "none of these reached the server");
        let lines = proxy.events.lines(15).await;
        let refused: Vec<_> =
            lines.iter().filter(|line| line.contains("refused")).map(String::as_str).collect();
        let expected = [
            "connect files.example.test:443 refused other-name [9.9.9.9]",
            "connect files.example.test:443 refused other-name [9.9.9.9]",
            "connect files.example.test:443 refused other-name [9.9.9.9]",
            "connect files.example.test:443 refused not-tls [9.9.9.9]",
            "connect 9.9.9.9:443 refused other-name [9.9.9.9]",
        ];
        assert_eq!(refused, expected);
    });
}

#[test]
fn anything_but_a_client_hello_is_not_forwarded() {
    inside("tls::anything_but_a_client_hello_is_not_forwarded", async |world| {
        let proxy = proxy();
        let broken = [&CURL[..40], &[0xff; 200]].concat();
        let never_ends = &CURL[..CURL.len() - 1];
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"[..],
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\x03",
            b"\x15\x03\x03\x00\x02\x01\x00",
            b"",
            &broken,
            never_ends,
        ] {
            let mut tunnel = proxy.tunnel("files.example.test:443").await;
            tunnel.write_all(bytes).await.unwrap();
            assert_eq!(read_to_end(&mut tunnel).await, "", "{bytes:?}");
        }
        // The check is repeated over SOCKS, and with a client that closes early.
        let mut socks = proxy.connect().await;
        socks.write_all(b"\x05\x01\x00\x05\x01\x00\x03\x12files.example.test\x01\xbb").await.unwrap();
        socks.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        assert_eq!(read_to_end(&mut socks).await.len(), 12, "two replies, and nothing from the server");
        let mut early = proxy.tunnel("files.example.test:443").await;
        early.write_all(&CURL[..100]).await.unwrap();
        early.shutdown().await.unwrap();
        assert_eq!(read_to_end(&mut early).await, "");
        assert_eq!(world.connection_count(), 0);
        assert!(
            proxy
                .events
                .lines(18)
                .await
                .iter()
                .skip(1)
                .step_by(2)
                .all(|line| line.contains("refused not-tls"))
        );
    });
}

#[test]
fn a_split_client_hello_is_accepted_and_other_ports_carry_anything() {
    inside("tls::a_split_client_hello_is_accepted_and_other_ports_carry_anything", async |world| {
        let proxy = proxy();
        let mut tunnel = proxy.tunnel("files.example.test:443").await;
        tunnel.set_nodelay(true).unwrap();
        for piece in CURL.chunks(7) {
            tunnel.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(tunnel.read_u8().await.unwrap(), 22, "the server sends a handshake record");
        assert!(
            s_client(&proxy, &world, "files.example.test:8443", &["-servername", "other.example.test"]).await
        );
        let mut plain = proxy.tunnel("files.example.test:80").await;
        plain.write_all(b"GET /hello.txt HTTP/1.0\r\n\r\n").await.unwrap();
        assert!(read_to_end(&mut plain).await.ends_with("hello from outside"));
    });
}
