//! Tests the proxy's limits on lengths, durations and the number of connections.

use crate::fixture::{Options, Peer, TIMEOUT, TestProxy, read_head, read_to_end, refusal_of};
use ironcurtain_egress::{HostRules, ProxyLimits};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

/// Starts a proxy with the given limits, and an echo server behind it.
async fn proxy(limits: ProxyLimits) -> (TestProxy, Peer, String) {
    let peer = Peer::echo().await;
    let target = format!("127.0.0.1:{}", peer.port);
    let rules = HostRules::new([&target], [""; 0], false).unwrap();
    (TestProxy::with(Options { rules, limits, ask: None }), peer, target)
}

fn short() -> ProxyLimits {
    ProxyLimits { handshake: Duration::from_millis(300), ..ProxyLimits::default() }
}

#[tokio::test]
async fn a_slow_client_is_disconnected() {
    let (proxy, _peer, target) = proxy(short()).await;
    let begun = format!("CONNECT {target} HTTP/1.1\r\nHost");
    for start in [&b""[..], b"\x05", b"\x05\x01\x00\x05\x01\x00\x03\x09a", begun.as_bytes()] {
        let began = Instant::now();
        let mut stream = proxy.connect().await;
        stream.write_all(start).await.unwrap();
        read_to_end(&mut stream).await;
        assert!(began.elapsed() >= Duration::from_millis(250), "{start:?}");
    }
    // A slow trickle of bytes does not extend the timeout.
    let mut stream = proxy.connect().await;
    let (mut read, mut write) = stream.split();
    let drip = async {
        let _ = write.write_all(b"GET http://a.test/ HTTP/1.1\r\n").await;
        while write.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut received = Vec::new();
    let hung_up = tokio::select! {
        () = drip => unreachable!(),
        ended = timeout(TIMEOUT, read.read_to_end(&mut received)) => ended.is_ok(),
    };
    assert!(hung_up);
    drop(proxy.tunnel(&target).await);
}

#[tokio::test]
async fn a_request_head_has_a_maximum_length() {
    let (proxy, _peer, target) = proxy(ProxyLimits::default()).await;
    let long =
        |n: usize| format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nX: {}\r\n\r\n", "a".repeat(n));
    let mut stream = proxy.connect().await;
    stream.write_all(long(30_000).as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    let mut stream = proxy.connect().await;
    // The proxy closes the connection during this write, which may therefore fail.
    let _ = stream.write_all(long(2_000_000).as_bytes()).await;
    assert!(!read_to_end(&mut stream).await.contains(" 200 "));
    let many: String = (0..300).map(|n| format!("X-{n}: a\r\n")).collect();
    let answer = proxy
        .send_and_read(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{many}\r\n").as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn an_idle_tunnel_is_closed_and_an_active_one_stays() {
    let (proxy, _peer, target) =
        proxy(ProxyLimits { idle: Duration::from_millis(600), ..ProxyLimits::default() }).await;
    let (mut silent, mut lively) = (proxy.tunnel(&target).await, proxy.tunnel(&target).await);
    let ends = Instant::now() + Duration::from_millis(1500);
    let talk = async {
        while Instant::now() < ends {
            lively.write_all(b"x").await.unwrap();
            assert_eq!(lively.read_u8().await.unwrap(), b'x');
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (silence, ()) = tokio::join!(read_to_end(&mut silent), talk);
    assert_eq!(silence, "");
}

#[tokio::test]
async fn each_direction_of_a_tunnel_closes_separately() {
    let (proxy, peer, target) = proxy(ProxyLimits::default()).await;
    let mut tunnel = proxy.tunnel(&target).await;
    let sent = "0123456789".repeat(100_000);
    let (mut read, mut write) = tunnel.split();
    let send = async {
        write.write_all(sent.as_bytes()).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut received = String::new();
    let ((), read) = tokio::join!(send, timeout(TIMEOUT, read.read_to_string(&mut received)));
    read.unwrap().unwrap();
    assert!(received == sent && peer.received(1).await[0] == sent);
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let (proxy, _peer, target) = proxy(ProxyLimits { connections: 2, ..ProxyLimits::default() }).await;
    let (first, second) = (proxy.tunnel(&target).await, proxy.tunnel(&target).await);
    let mut third = Box::pin(proxy.tunnel(&target));
    assert!(timeout(Duration::from_millis(200), &mut third).await.is_err(), "the limit is reached");
    drop(first);
    drop(timeout(TIMEOUT, third).await.expect("a slot is free"));
    drop(second);
}

#[tokio::test]
async fn stopping_the_proxy_closes_its_connections() {
    let (proxy, peer, target) = proxy(ProxyLimits::default()).await;
    let mut tunnel = proxy.tunnel(&target).await;
    tunnel.write_all(b"x").await.unwrap();
    assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
    drop(proxy);
    assert_eq!(read_to_end(&mut tunnel).await, "");
    assert_eq!(peer.received(1).await, ["x"]);
}

#[tokio::test]
async fn an_endless_plain_response_is_cut_with_its_client() {
    let (proxy, _peer, target) = proxy(short()).await;
    let mut stream = proxy.connect().await;
    // The echoed request is not a valid response.
    stream
        .write_all(
            format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .await
        .unwrap();
    let (status, code, _) = refusal_of(&read_to_end(&mut stream).await);
    assert_eq!((status, code.as_str()), (502, "unreachable"));
}
