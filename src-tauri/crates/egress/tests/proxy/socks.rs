//! Tests SOCKS5 requests.

use crate::fixture::{Peer, TestProxy, read_to_end};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Negotiates a method, sends a request and returns the reply code.
async fn ask(proxy: &TestProxy, request: &[u8]) -> (u8, TcpStream) {
    let mut stream = proxy.connect().await;
    stream.write_all(&[5, 2, 1, 0]).await.unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    stream.write_all(request).await.unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!((reply[0], &reply[2..]), (5, &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    (reply[1], stream)
}

fn by_name(name: &str, port: u16) -> Vec<u8> {
    [&[5, 1, 0, 3, u8::try_from(name.len()).unwrap()], name.as_bytes(), &port.to_be_bytes()].concat()
}

fn by_address(address: [u8; 4], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 1], &address[..], &port.to_be_bytes()].concat()
}

#[tokio::test]
async fn names_are_judged_and_addresses_must_be_written_out() {
    let (peer, other) = (Peer::echo().await, Peer::echo().await);
    let (port, unspelled) = (peer.port, other.port);
    let proxy =
        TestProxy::new(&[&format!("echo.test:{port}"), &format!("127.0.0.1:{port}"), "*.test.example"], &[]);
    proxy.names.set("echo.test", &["127.0.0.1"]);
    for request in [by_name("Echo.test.", port), by_name("127.1", port), by_address([127, 0, 0, 1], port)] {
        let (code, mut stream) = ask(&proxy, &request).await;
        assert_eq!(code, 0);
        stream.write_all(b"SSH-2.0-x").await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, "SSH-2.0-x");
    }
    let mapped = [&[5, 1, 0, 4][..], &[0; 10], &[255, 255, 127, 0, 0, 1], &unspelled.to_be_bytes()].concat();
    for request in [
        by_name("other.test", 443),
        by_name("127.0.0.1", unspelled),
        by_name("2130706433", unspelled),
        by_name("::1", unspelled),
        by_name("", 443),
        by_name("a b", 443),
        by_address([127, 0, 0, 1], unspelled),
        by_address([8, 8, 8, 8], 443),
        mapped,
    ] {
        let (code, mut stream) = ask(&proxy, &request).await;
        assert_eq!((code, read_to_end(&mut stream).await.as_str()), (2, ""), "{request:?}");
    }
    assert!(other.received.borrow().is_empty());
    let lines = proxy.events.lines(12).await;
    assert_eq!(lines[3], "socks5 other.test:443 refused unknown-domain []");
    assert_eq!(lines[4], format!("socks5 127.0.0.1:{unspelled} refused address-literal []"));
    assert_eq!(lines[7], "socks5 :443:0 refused bad-host []");
}

#[tokio::test]
async fn only_connect_without_authentication_is_supported() {
    let proxy = TestProxy::new(&["a.test", "127.0.0.1:1"], &[]);
    for command in [2, 3] {
        let request = [&[5, command], &by_name("a.test", 80)[2..]].concat();
        assert_eq!(ask(&proxy, &request).await.0, 7);
    }
    assert_eq!(ask(&proxy, &[5, 1, 0, 9, 0, 0]).await.0, 8);
    assert_eq!(ask(&proxy, &by_address([127, 0, 0, 1], 1)).await.0, 4, "allowed, but nothing listens");
    assert_eq!(ask(&proxy, &by_name("a.test", 80)).await.0, 4, "allowed, but it has no address");
    assert_eq!(
        proxy.send_and_read(&[5, 1, 2]).await.as_bytes(),
        b"\x05\xef\xbf\xbd",
        "only an authentication method is offered"
    );
    assert_eq!(proxy.send_and_read(&[4, 1, 0, 80, 127, 0, 0, 1, 0]).await, "", "version 4 is not supported");
    assert_eq!(proxy.send_and_read(b"\x16\x03\x01").await, "", "TLS to the proxy is not supported");
}
