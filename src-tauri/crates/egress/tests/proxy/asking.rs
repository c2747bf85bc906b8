//! Tests questions, grants, and revocation during open connections.

use crate::stage::{Options, Peer, Person, Stage, TIMEOUT, refusal_of, rest, until};
use ironcurtain_egress::{GrantedHost, HostAnswer, HostPort, HostRules, ProxyLimits};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Starts a proxy that asks the user, and an echo server whose address is allowed but whose name is not.
async fn stage(denied: &[&str]) -> (Stage, Arc<Person>, Peer, String) {
    let (person, peer) = (Person::new(), Peer::echo().await);
    let rules = HostRules::new([format!("127.0.0.1:{}", peer.port)], denied, true).unwrap();
    let stage = Stage::with(Options { rules, limits: ProxyLimits::default(), ask: Some(person.clone()) });
    stage.names.set("new.example.test", &["127.0.0.1"]);
    let target = format!("new.example.test:{}", peer.port);
    (stage, person, peer, target)
}

fn granted(stage: &Stage, target: &str) -> HostRules {
    let grant = GrantedHost { id: "g1".into(), target: HostPort::parse(target, None).unwrap() };
    stage.rules.borrow().with_grants(vec![grant])
}

async fn works(tunnel: &mut TcpStream) {
    tunnel.write_all(b"x").await.unwrap();
    assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn an_unknown_name_is_asked_about_and_the_answer_holds_for_this_connection() {
    let (stage, person, _peer, target) = stage(&[]).await;
    person.says(Some(HostAnswer::Once));
    works(&mut stage.tunnel(&target).await).await;
    person.says(Some(HostAnswer::Denied { why: "the person said no".into() }));
    let (status, code, text) = stage.refusal(&target).await;
    assert_eq!((status, code.as_str()), (403, "said-no"));
    assert_eq!(text, format!("IronCurtain: `{target}` was not allowed: the person said no.\n"));
    assert_eq!(*person.asked.lock().unwrap(), [target.clone(), target.clone()]);
    let expected = [
        format!("connect {target} allowed once [127.0.0.1]"),
        format!("connect {target} refused said-no []"),
    ];
    assert_eq!(stage.events.lines(2).await, expected);
}

#[tokio::test]
async fn targets_that_cannot_be_allowed_are_not_asked_about() {
    let (stage, person, _peer, _) = stage(&["*.evil.test"]).await;
    person.says(Some(HostAnswer::Once));
    for (target, code) in [
        ("x.evil.test:443", "denied-domain"),
        ("8.8.8.8:443", "address-literal"),
        ("printer.local:80", "unknown-domain"),
        ("localhost:80", "unknown-domain"),
        ("router:80", "unknown-domain"),
    ] {
        assert_eq!(stage.refusal(target).await.1, code, "{target}");
    }
    assert!(person.asked.lock().unwrap().is_empty() && stage.names.asked().is_empty());
}

#[tokio::test]
async fn approval_does_not_open_private_addresses() {
    let (stage, person, _peer, _) = stage(&[]).await;
    stage.names.set("sly.example.test", &["10.0.0.1"]);
    person.says(Some(HostAnswer::Once));
    assert_eq!(stage.refusal("sly.example.test:443").await.1, "not-public");
}

#[tokio::test]
async fn connections_at_the_same_time_share_a_question() {
    let (stage, person, _peer, target) = stage(&[]).await;
    let answer = async {
        until("the question", || !person.asked.lock().unwrap().is_empty()).await;
        stage.rules.send_replace(Arc::new(granted(&stage, &target)));
        person.says(Some(HostAnswer::Granted));
    };
    let (mut one, mut two, ()) = tokio::join!(stage.tunnel(&target), stage.tunnel(&target), answer);
    works(&mut one).await;
    works(&mut two).await;
    works(&mut stage.tunnel(&target).await).await;
    assert_eq!(*person.asked.lock().unwrap(), std::slice::from_ref(&target));
    assert_eq!(
        stage.events.lines(3).await,
        vec![format!("connect {target} allowed by grant g1 [127.0.0.1]"); 3]
    );
}

#[tokio::test]
async fn a_revoked_connection_is_cut_and_asked_about_again() {
    let (stage, person, peer, target) = stage(&[]).await;
    stage.rules.send_replace(Arc::new(granted(&stage, &target)));
    let mut kept = stage.tunnel(&format!("127.0.0.1:{}", peer.port)).await;
    let mut tunnel = stage.tunnel(&target).await;
    works(&mut tunnel).await;
    let without = stage.rules.borrow().with_grants(vec![]);
    stage.rules.send_replace(Arc::new(without));
    assert_eq!(rest(&mut tunnel).await, "");
    works(&mut kept).await;
    assert_eq!(stage.events.lines(3).await[2], format!("connect {target} refused withdrawn [127.0.0.1]"));
    person.says(Some(HostAnswer::Denied { why: "no".into() }));
    assert_eq!(stage.refusal(&target).await.1, "said-no");
    // The answer has no effect without a grant in the rules.
    person.says(Some(HostAnswer::Granted));
    assert_eq!(stage.refusal(&target).await.1, "withdrawn");
}

#[tokio::test]
async fn a_once_allowed_connection_is_cut_by_a_deny_and_when_the_rules_sender_drops() {
    let (mut stage, person, peer, target) = stage(&[]).await;
    person.says(Some(HostAnswer::Once));
    let mut tunnel = stage.tunnel(&target).await;
    let address = format!("127.0.0.1:{}", peer.port);
    let rules = |denied: &[&str]| Arc::new(HostRules::new([&address], denied, true).unwrap());
    stage.rules.send_replace(rules(&["other.test"]));
    works(&mut tunnel).await;
    stage.rules.send_replace(rules(&["*.example.test"]));
    assert_eq!(rest(&mut tunnel).await, "");
    assert_eq!(stage.refusal(&target).await.1, "denied-domain");
    stage.rules.send_replace(rules(&[]));
    let mut tunnel = stage.tunnel(&target).await;
    works(&mut tunnel).await;
    stage.rules = tokio::sync::watch::Sender::default();
    assert_eq!(rest(&mut tunnel).await, "");
    assert_eq!(stage.refusal(&target).await.1, "withdrawn");
}

#[tokio::test]
async fn an_in_flight_plain_request_is_cut_too() {
    let peer = Peer::http("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").await;
    let spelled = format!("127.0.0.1:{}", peer.port);
    let stage = Stage::new(&[&spelled], &[]);
    let slow = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = slow.local_addr().unwrap().to_string();
    stage.rules.send_replace(Arc::new(HostRules::new([&target], [""; 0], false).unwrap()));
    let mut stream = stage.connect().await;
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut server, _) = slow.accept().await.unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").await.unwrap();
    let mut begun = Vec::new();
    while !begun.ends_with(b"begun") {
        begun.push(stream.read_u8().await.unwrap());
    }
    stage.rules.send_replace(Arc::new(HostRules::default()));
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(stage.events.lines(2).await[1], format!("http {target} refused withdrawn [127.0.0.1]"));
    let (status, code, _) = refusal_of(&stage.say(request.as_bytes()).await);
    assert_eq!((status, code.as_str()), (403, "address-literal"));
}

#[tokio::test]
async fn revoked_connections_are_closed_when_all_within_completes() {
    let (stage, _person, peer, target) = stage(&[]).await;
    stage.rules.send_replace(Arc::new(granted(&stage, &target)));
    let mut kept = stage.tunnel(&format!("127.0.0.1:{}", peer.port)).await;
    let mut tunnel = stage.tunnel(&target).await;
    works(&mut tunnel).await;
    let without = Arc::new(stage.rules.borrow().with_grants(vec![]));
    assert!(
        timeout(Duration::from_millis(50), stage.connections.wait_until_allowed(&without)).await.is_err()
    );
    stage.rules.send_replace(without.clone());
    timeout(TIMEOUT, stage.connections.wait_until_allowed(&without)).await.unwrap();
    // By now, the refusal is recorded and the target has seen the connection close.
    assert_eq!(stage.events.lines(3).await[2], format!("connect {target} refused withdrawn [127.0.0.1]"));
    assert_eq!(peer.received(1).await, ["x"]);
    works(&mut kept).await;
}
