//! Tests HTTP CONNECT and plain HTTP requests.

use crate::fixture::{Peer, TestProxy, read_head, read_to_end, refusal_of};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Starts a proxy that allows one local server, both by name and by address.
async fn proxy(answer: &'static str) -> (TestProxy, Peer) {
    let peer = Peer::http(answer).await;
    let port = peer.port;
    let proxy = TestProxy::new(&[&format!("files.test:{port}"), &format!("127.0.0.1:{port}")], &[]);
    proxy.names.set("files.test", &["127.0.0.1"]);
    (proxy, peer)
}

fn get(url: &str, host: &str, more: &str) -> Vec<u8> {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n").into_bytes()
}

#[tokio::test]
async fn a_plain_request_is_forwarded_without_proxy_headers() {
    let (proxy, peer) = proxy("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\nhi").await;
    let host = format!("Files.TEST.:{}", peer.port);
    let more = "Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nX-Mine: 1\r\nX-Kept: a\r\nConnection: X-Mine, Host\r\nTE: trailers\r\nUpgrade: h2c\r\n";
    let answer = proxy.send_and_read(&get(&format!("http://{host}/a%20b?c=d"), &host, more)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhi"), "{answer}");
    let (lower, kept) = (answer.to_lowercase(), ["x-end: 2"]);
    assert!(
        kept.iter().all(|k| lower.contains(k)) && !lower.contains("x-hop") && !lower.contains("keep-alive"),
        "{answer}"
    );
    let received = peer.received(1).await;
    let mut lines: Vec<_> = received[0].trim_end().split("\r\n").map(str::to_lowercase).collect();
    lines.sort();
    let expected = [
        "connection: close".to_owned(),
        "get /a%20b?c=d http/1.1".to_owned(),
        format!("host: files.test:{}", peer.port),
        "x-kept: a".to_owned(),
    ];
    assert_eq!(lines, expected);
    let recorded = format!("http files.test:{0} allowed by files.test:{0} [127.0.0.1]", peer.port);
    assert_eq!(proxy.events.lines(1).await, [recorded]);
}

#[tokio::test]
async fn bodies_pass_and_a_connection_carries_several_requests() {
    let (proxy, peer) = proxy(OK).await;
    let host = format!("files.test:{}", peer.port);
    let mut stream = proxy.connect().await;
    let first = format!(
        "POST http://{host}/1 HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    );
    stream.write_all(first.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    let mut body = [0; 2];
    stream.read_exact(&mut body).await.unwrap();
    // The second request on the same connection is for a different host.
    stream.write_all(&get("http://other.test/", "other.test", "")).await.unwrap();
    let (status, code, text) = refusal_of(&read_to_end(&mut stream).await);
    assert_eq!((status, code.as_str()), (403, "unknown-domain"));
    assert_eq!(text, "IronCurtain: `other.test:80` is not on the list of allowed domains.\n");
    assert!(peer.received(1).await[0].contains("3\r\nabc\r\n0\r\n\r\n"));
    assert_eq!(proxy.names.looked_up(), ["files.test"], "refused names are not resolved");
}

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let (proxy, peer) = proxy(OK).await;
    let host = format!("files.test:{}", peer.port);
    let url = format!("http://{host}/");
    for (what, bytes) in [
        ("another host", get(&url, "other.test", "")),
        ("another port", get(&url, "files.test", "")),
        ("two hosts", get(&url, &host, "Host: other.test\r\n")),
        ("no host", format!("GET {url} HTTP/1.1\r\n\r\n").into_bytes()),
        ("a login in the host", get(&format!("http://u:p@{host}/"), &host, "")),
        ("only a path", get("/", &host, "")),
        ("another scheme", get(&format!("https://{host}/"), &host, "")),
        ("ftp", get(&format!("ftp://{host}/"), &host, "")),
        ("plain HTTP on the TLS port", get("http://files.test:443/", "files.test:443", "")),
        ("two lengths", get(&url, &host, "Content-Length: 1\r\nContent-Length: 2\r\n")),
        ("a folded header", get(&url, &host, "X: a\r\n b\r\n")),
        ("whitespace before the colon", get(&url, &host, "X : a\r\n")),
        ("a bare line feed in a name", get(&url, &host, "X\n: a\r\n")),
        ("an unsupported transfer encoding", get(&url, &host, "Transfer-Encoding: chunked, identity\r\n")),
        ("no host in CONNECT", b"CONNECT :80 HTTP/1.1\r\n\r\n".to_vec()),
        ("no port in CONNECT", b"CONNECT files.test HTTP/1.1\r\nHost: files.test\r\n\r\n".to_vec()),
        ("a login in CONNECT", format!("CONNECT u@{host} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()),
    ] {
        let answer = proxy.send_and_read(&bytes).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.0 400 "),
            "{what}: {answer:?}"
        );
    }
    assert!(
        proxy.send_and_read(&get(&url, &host, "")).await.ends_with("hi"),
        "the unambiguous request passes"
    );
    assert_eq!(peer.received(1).await.len(), 1);
}

#[tokio::test]
async fn a_chunked_request_with_a_length_is_forwarded_as_chunked_only() {
    let (proxy, peer) = proxy(OK).await;
    let host = format!("files.test:{}", peer.port);
    let request = format!(
        "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    );
    let answer = proxy.send_and_read(request.as_bytes()).await;
    let received = match answer.starts_with("HTTP/1.1 200") {
        true => peer.received(1).await.remove(0).to_lowercase(),
        false => String::new(),
    };
    assert!(!received.contains("content-length") && !received.contains("get / "), "{answer}\n{received}");
}

#[tokio::test]
async fn every_refusal_gives_a_reason_and_is_recorded() {
    let proxy = TestProxy::new(
        &["a.test", "b.test:22", "*.pkg.test", "gone.test", "metadata.test", "127.0.0.1:1"],
        &["bad.pkg.test"],
    );
    proxy.names.set("metadata.test", &["8.8.8.8 169.254.169.254"]);
    for (target, status, code, text) in [
        ("other.test:443", 403, "unknown-domain", "`other.test:443` is not on the list of allowed domains"),
        ("a.test:8443", 403, "unknown-domain", "`a.test:8443` is not on the list of allowed domains"),
        ("b.test:443", 403, "unknown-domain", "`b.test:443` is not on the list of allowed domains"),
        ("pkg.test:443", 403, "unknown-domain", "`pkg.test:443` is not on the list of allowed domains"),
        ("BAD.pkg.test.:443", 403, "denied-domain", "`bad.pkg.test` is on the list of denied domains"),
        (
            "127.0.0.1:443",
            403,
            "address-literal",
            "`127.0.0.1:443` is an IP address, which the list of allowed domains does not cover",
        ),
        (
            "0x7f.1:443",
            403,
            "address-literal",
            "`127.0.0.1:443` is an IP address, which the list of allowed domains does not cover",
        ),
        (
            "[::ffff:8.8.8.8]:443",
            403,
            "address-literal",
            "`8.8.8.8:443` is an IP address, which the list of allowed domains does not cover",
        ),
        ("a.test:0", 400, "bad-host", "`a.test:0` is not a valid host name"),
        ("a..test:443", 400, "bad-host", "`a..test` is not a valid host name"),
        ("gone.test:443", 502, "unresolvable", "`gone.test` cannot be resolved: no such host"),
        (
            "metadata.test:443",
            403,
            "not-public",
            "`metadata.test:443` resolves to 169.254.169.254, which hands out this machine's credentials",
        ),
        (
            "127.0.0.1:1",
            502,
            "unreachable",
            "`127.0.0.1:1` cannot be reached: Connection refused (os error 111)",
        ),
    ] {
        let expected = (status, code.to_owned(), format!("IronCurtain: {text}.\n"));
        assert_eq!(proxy.refusal(target).await, expected, "{target}");
    }
    let lines = proxy.events.lines(14).await;
    let expected = [
        "connect other.test:443 refused unknown-domain []",
        "connect a.test:8443 refused unknown-domain []",
        "connect b.test:443 refused unknown-domain []",
        "connect pkg.test:443 refused unknown-domain []",
        "connect bad.pkg.test:443 refused denied-domain []",
        "connect 127.0.0.1:443 refused address-literal []",
        "connect 127.0.0.1:443 refused address-literal []",
        "connect 8.8.8.8:443 refused address-literal []",
        "connect a.test:0:0 refused bad-host []",
        "connect a..test:443:0 refused bad-host []",
        "connect gone.test:443 failed unresolvable []",
        "connect metadata.test:443 refused not-public [8.8.8.8 169.254.169.254]",
        "connect 127.0.0.1:1 allowed by 127.0.0.1:1 [127.0.0.1]",
        "connect 127.0.0.1:1 failed unreachable [127.0.0.1]",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_decision_that_cannot_be_recorded_refuses() {
    let (proxy, peer) = proxy(OK).await;
    let target = format!("files.test:{}", peer.port);
    *proxy.events.broken.lock().unwrap() = Some("the disk is full".into());
    let (status, code, text) = proxy.refusal(&target).await;
    assert_eq!((status, code.as_str()), (403, "not-recorded"));
    assert_eq!(
        text,
        format!("IronCurtain: the decision on `{target}` could not be recorded: the disk is full.\n")
    );
    *proxy.events.broken.lock().unwrap() = None;
    let mut tunnel = proxy.tunnel(&target).await;
    tunnel.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    assert!(read_to_end(&mut tunnel).await.ends_with("hi"));
}
