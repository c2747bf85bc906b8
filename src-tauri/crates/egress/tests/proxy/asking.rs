//! Tests questions, grants, and revocation during open connections.

use crate::fixture::{Options, Peer, Person, TIMEOUT, TestProxy, read_to_end, refusal_of, wait_until};
use ironcurtain_egress::{GrantedHost, HostAnswer, HostPort, HostRules, ProxyLimits};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Starts a proxy that asks the user, and an echo server whose address is allowed but whose name is not.
async fn proxy(denied: &[&str]) -> (TestProxy, Arc<Person>, Peer, String) {
    let (person, peer) = (Person::new(), Peer::echo().await);
    let rules = HostRules::new([format!("127.0.0.1:{}", peer.port)], denied, true).unwrap();
    let proxy = TestProxy::with(Options { rules, limits: ProxyLimits::default(), ask: Some(person.clone()) });
    proxy.names.set("new.example.test", &["127.0.0.1"]);
    let target = format!("new.example.test:{}", peer.port);
    (proxy, person, peer, target)
}

fn granted(proxy: &TestProxy, target: &str) -> HostRules {
    let grant = GrantedHost { id: "g1".into(), target: HostPort::parse(target, None).unwrap() };
    proxy.rules.borrow().with_grants(vec![grant])
}

async fn assert_usable(tunnel: &mut TcpStream) {
    tunnel.write_all(b"x").await.unwrap();
    assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn an_unknown_name_is_asked_about_and_the_answer_holds_for_this_connection() {
    let (proxy, person, _peer, target) = proxy(&[]).await;
    person.set_answer(Some(HostAnswer::Once));
    assert_usable(&mut proxy.tunnel(&target).await).await;
    person.set_answer(Some(HostAnswer::Denied { why: "the person said no".into() }));
    let (status, code, text) = proxy.refusal(&target).await;
    assert_eq!((status, code.as_str()), (403, "said-no"));
    assert_eq!(text, format!("IronCurtain: `{target}` was not allowed: the person said no.\n"));
    assert_eq!(*person.asked.lock().unwrap(), [target.clone(), target.clone()]);
    let expected = [
        format!("connect {target} allowed once [127.0.0.1]"),
        format!("connect {target} refused said-no []"),
    ];
    assert_eq!(proxy.events.lines(2).await, expected);
}

#[tokio::test]
async fn targets_that_cannot_be_allowed_are_not_asked_about() {
    let (proxy, person, _peer, _) = proxy(&["*.evil.test"]).await;
    person.set_answer(Some(HostAnswer::Once));
    for (target, code) in [
        ("x.evil.test:443", "denied-domain"),
        ("8.8.8.8:443", "address-literal"),
        ("printer.local:80", "unknown-domain"),
        ("localhost:80", "unknown-domain"),
        ("router:80", "unknown-domain"),
    ] {
        assert_eq!(proxy.refusal(target).await.1, code, "{target}");
    }
    assert!(person.asked.lock().unwrap().is_empty() && proxy.names.looked_up().is_empty());
}

#[tokio::test]
async fn approval_does_not_open_private_addresses() {
    let (proxy, person, _peer, _) = proxy(&[]).await;
    proxy.names.set("sly.example.test", &["10.0.0.1"]);
    person.set_answer(Some(HostAnswer::Once));
    assert_eq!(proxy.refusal("sly.example.test:443").await.1, "not-public");
}

#[tokio::test]
async fn connections_at_the_same_time_share_a_question() {
    let (proxy, person, _peer, target) = proxy(&[]).await;
    let answer = async {
        wait_until("the question", || !person.asked.lock().unwrap().is_empty()).await;
        proxy.rules.send_replace(Arc::new(granted(&proxy, &target)));
        person.set_answer(Some(HostAnswer::Granted));
    };
    let (mut one, mut two, ()) = tokio::join!(proxy.tunnel(&target), proxy.tunnel(&target), answer);
    assert_usable(&mut one).await;
    assert_usable(&mut two).await;
    assert_usable(&mut proxy.tunnel(&target).await).await;
    assert_eq!(*person.asked.lock().unwrap(), std::slice::from_ref(&target));
    assert_eq!(
        proxy.events.lines(3).await,
        vec![format!("connect {target} allowed by grant g1 [127.0.0.1]"); 3]
    );
}

#[tokio::test]
async fn a_revoked_connection_is_cut_and_asked_about_again() {
    let (proxy, person, peer, target) = proxy(&[]).await;
    proxy.rules.send_replace(Arc::new(granted(&proxy, &target)));
    let mut kept = proxy.tunnel(&format!("127.0.0.1:{}", peer.port)).await;
    let mut tunnel = proxy.tunnel(&target).await;
    assert_usable(&mut tunnel).await;
    let without = proxy.rules.borrow().with_grants(vec![]);
    proxy.rules.send_replace(Arc::new(without));
    assert_eq!(read_to_end(&mut tunnel).await, "");
    assert_usable(&mut kept).await;
    assert_eq!(proxy.events.lines(3).await[2], format!("connect {target} refused withdrawn [127.0.0.1]"));
    person.set_answer(Some(HostAnswer::Denied { why: "no".into() }));
    assert_eq!(proxy.refusal(&target).await.1, "said-no");
    // The answer has no effect without a grant in the rules.
    person.set_answer(Some(HostAnswer::Granted));
    assert_eq!(proxy.refusal(&target).await.1, "withdrawn");
}

#[tokio::test]
async fn a_once_allowed_connection_is_cut_by_a_deny_and_when_the_rules_sender_drops() {
    let (mut proxy, person, peer, target) = proxy(&[]).await;
    person.set_answer(Some(HostAnswer::Once));
    let mut tunnel = proxy.tunnel(&target).await;
    let address = format!("127.0.0.1:{}", peer.port);
    let rules = |denied: &[&str]| Arc::new(HostRules::new([&address], denied, true).unwrap());
    proxy.rules.send_replace(rules(&["other.test"]));
    assert_usable(&mut tunnel).await;
    proxy.rules.send_replace(rules(&["*.example.test"]));
    assert_eq!(read_to_end(&mut tunnel).await, "");
    assert_eq!(proxy.refusal(&target).await.1, "denied-domain");
    proxy.rules.send_replace(rules(&[]));
    let mut tunnel = proxy.tunnel(&target).await;
    assert_usable(&mut tunnel).await;
    proxy.rules = tokio::sync::watch::Sender::default();
    assert_eq!(read_to_end(&mut tunnel).await, "");
    assert_eq!(proxy.refusal(&target).await.1, "withdrawn");
}

#[tokio::test]
async fn an_in_flight_plain_request_is_cut_too() {
    let peer = Peer::http("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").await;
    let spelled = format!("127.0.0.1:{}", peer.port);
    let proxy = TestProxy::new(&[&spelled], &[]);
    let slow = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = slow.local_addr().unwrap().to_string();
    proxy.rules.send_replace(Arc::new(HostRules::new([&target], [""; 0], false).unwrap()));
    let mut stream = proxy.connect().await;
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut server, _) = slow.accept().await.unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").await.unwrap();
    let mut begun = Vec::new();
    while !begun.ends_with(b"begun") {
        begun.push(stream.read_u8().await.unwrap());
    }
    proxy.rules.send_replace(Arc::new(HostRules::default()));
    assert_eq!(read_to_end(&mut stream).await, "");
    assert_eq!(proxy.events.lines(2).await[1], format!("http {target} refused withdrawn [127.0.0.1]"));
    let (status, code, _) = refusal_of(&proxy.send_and_read(request.as_bytes()).await);
    assert_eq!((status, code.as_str()), (403, "address-literal"));
}

#[tokio::test]
async fn revoked_connections_are_closed_when_all_within_completes() {
    let (proxy, _person, peer, target) = proxy(&[]).await;
    proxy.rules.send_replace(Arc::new(granted(&proxy, &target)));
    let mut kept = proxy.tunnel(&format!("127.0.0.1:{}", peer.port)).await;
    let mut tunnel = proxy.tunnel(&target).await;
    assert_usable(&mut tunnel).await;
    let without = Arc::new(proxy.rules.borrow().with_grants(vec![]));
    assert!(
        timeout(Duration::from_millis(50), proxy.connections.wait_until_allowed(&without)).await.is_err()
    );
    proxy.rules.send_replace(without.clone());
    timeout(TIMEOUT, proxy.connections.wait_until_allowed(&without)).await.unwrap();
    // By now, the refusal is recorded and the target has seen the connection close.
    assert_eq!(proxy.events.lines(3).await[2], format!("connect {target} refused withdrawn [127.0.0.1]"));
    assert_eq!(peer.received(1).await, ["x"]);
    assert_usable(&mut kept).await;
}
