//! Hosts that are not on the list: questions, grants, permissions for one call, and revocation.

use super::test_network::{inside, world};
use super::{HELLO, network_log, proxy_table};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach, TextPart, Verb};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

const OTHER: &str = "http://other.example.test/hello";
const THIRD: &str = "http://third.example.test/hello";

fn asking() -> Value {
    json!({ "allowedDomains": ["files.example.test"], "deniedDomains": ["evil.example.test"], "askUnknown": true })
}

fn allow(world: &World, lifetime: Lifetime) {
    world.user.will(Next::Allow(Reach::Host, lifetime));
}

#[test]
fn unknown_host_asks_and_answer_lasts_its_lifetime() {
    inside("network::questions::unknown_host_asks_and_answer_lasts_its_lifetime", |_| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Once);
        assert_eq!(client.fetch_unjudged(OTHER), HELLO);
        let asked = world.user.asked();
        let question = &asked[0];
        let line = &question.consequences[0];
        assert_eq!((asked.len(), line.verb, question.tool.as_deref()), (1, Verb::Reach, None));
        assert_eq!(line.object, [TextPart::Untrusted("other.example.test:80".to_owned())]);
        assert!(question.client.claimed_name.is_some() && question.sandboxed);
        assert!(world.grants().is_empty());

        allow(&world, Lifetime::Session);
        assert_eq!(client.fetch_unjudged(OTHER), HELLO);
        assert_eq!(client.fetch_unjudged(OTHER), HELLO);
        assert_eq!(world.user.asked().len(), 1, "one grant for the call and one for the session");
        let grants = world.grants();
        let short = |grant: &ironcurtain_protocol::GrantView| {
            (grant.kind.clone(), grant.path.clone(), grant.access.clone(), grant.lifetime.clone())
        };
        let expected =
            ("host".into(), "other.example.test:80".into(), vec!["reach".into()], "this session".into());
        assert_eq!(grants.iter().map(short).collect::<Vec<_>>(), [expected]);
        client.hang_up();
        eventually("the session's grants have ended", TIMEOUT, || world.grants().is_empty());

        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Always);
        assert_eq!(client.fetch_unjudged(OTHER), HELLO);
        client.hang_up();
        assert_eq!(world.connect("fetcher").fetch_unjudged(OTHER), HELLO);
        assert_eq!(world.user.asked().len(), 1);
        // Uses are counted asynchronously.
        eventually("both uses are counted", TIMEOUT, || world.grants()[0].uses == 2);
        assert_eq!(
            network_log(&world),
            [
                "other.example.test:80 allow once",
                "other.example.test:80 allow grant",
                "other.example.test:80 allow grant",
                "other.example.test:80 allow grant",
                "other.example.test:80 allow grant",
            ]
        );
        assert!(world.audit().intact);
    });
}

#[test]
fn denied_host_is_reported_and_not_asked_again_at_once() {
    inside("network::questions::denied_host_is_reported_and_not_asked_again_at_once", |ground| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        for _ in 0..2 {
            let said = client.fetch_unjudged(OTHER);
            let expected =
                "403 said-no: IronCurtain: `other.example.test:80` was not allowed: the user denied it.";
            assert_eq!(said, expected);
        }
        assert_eq!(world.user.asked().len(), 1);
        assert!(client.fetch_unjudged("http://evil.example.test/hello").starts_with("403 denied-domain"));
        assert_eq!((world.user.asked().len(), ground.reached().len()), (0, 0));
        // The permission covers only this host.
        allow(&world, Lifetime::Once);
        assert_eq!(client.fetch_unjudged(THIRD), HELLO);
    });
}

#[test]
fn approval_does_not_open_private_address() {
    inside("network::questions::approval_does_not_open_private_address", |ground| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Session);
        for _ in 0..2 {
            let said = client.fetch_unjudged("http://sly.example.test/hello");
            assert!(
                said.starts_with("403 not-public: IronCurtain: `sly.example.test:80` resolves to 10.9.9.9"),
                "{said}"
            );
        }
        assert_eq!((world.user.asked().len(), world.grants().len()), (1, 1));
        assert!(ground.reached().is_empty());
    });
}

#[test]
fn host_questions_of_a_server_leave_room_for_the_agent() {
    inside("network::questions::host_questions_of_a_server_leave_room_for_the_agent", |_| {
        let world = world(&asking());
        let settings = json!({ "questionsPerMinute": 5, "denialHoldsSeconds": 0 });
        std::fs::write(world.home.config.join("config.json"), settings.to_string()).unwrap();
        let mut client = world.connect("fetcher");
        for n in 0..6 {
            let said = client.fetch_unjudged(&format!("http://{n}.example.test/hello"));
            let denied = if n < 3 { "the user denied it" } else { "was asked 3 times within a minute" };
            assert!(said.starts_with("403 said-no") && said.contains(denied), "{said}");
        }
        assert_eq!(world.user.asked().len(), 3);
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(client.fetch_judged(OTHER).ok(), HELLO);
        client.fetch_judged(THIRD).refused("DENIED: the user denied this call");
        client.fetch_judged(THIRD).refused("was asked 5 times within a minute");
    });
}

#[test]
fn concurrent_connections_to_one_host_are_one_question() {
    inside("network::questions::concurrent_connections_to_one_host_are_one_question", |ground| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        let table = proxy_table(world.sessions()[0].server_pid.unwrap());
        let until_all_are_there = move |_: &_| {
            eventually("twelve connections are open", TIMEOUT, || {
                let open = std::fs::read_to_string(&table).unwrap();
                open.lines().filter(|line| line.contains(" 0100007F:0C38 01 ")).count() >= 12
            });
        };
        let then = Box::new(Next::Allow(Reach::Host, Lifetime::Session));
        world.user.will(Next::After(Box::new(until_all_are_there), then));
        assert_eq!(client.call_free_tool("many", OTHER), HELLO);
        assert_eq!((world.user.asked().len(), ground.reached().len()), (1, 12));
    });
}

#[test]
fn revoked_host_is_disconnected_before_confirmation_and_asks_again() {
    inside("network::questions::revoked_host_is_disconnected_before_confirmation_and_asks_again", |_| {
        let network = json!({ "allowedDomains": ["files.example.test:8443"], "askUnknown": true });
        let world = world(&network);
        let mut client = world.connect("fetcher");
        let pid = world.sessions()[0].server_pid;
        allow(&world, Lifetime::Session);
        assert_eq!(client.call_free_tool("hold", "other.example.test:8443"), "HTTP/1.1 200 OK");
        assert_eq!(client.call_free_tool("hold", "files.example.test:8443"), "HTTP/1.1 200 OK");
        assert_eq!(client.call_free_tool("alive", ""), "alive alive");
        assert_eq!(world.revoke_only_grant(), Vec::<String>::new(), "no restart is needed");
        assert_eq!(client.call_free_tool("alive", ""), "cut alive");
        assert_eq!(client.call_free_tool("hold", "other.example.test:8443"), "HTTP/1.1 403 Forbidden");
        assert_eq!((world.user.asked().len(), world.sessions()[0].server_pid), (2, pid));
        let log = network_log(&world);
        assert!(log.contains(&"other.example.test:8443 deny withdrawn".to_owned()), "{log:#?}");
    });
}

#[test]
fn expired_host_grant_closes_its_connections() {
    inside("network::questions::expired_host_grant_closes_its_connections", |_| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Hour);
        assert_eq!(client.call_free_tool("hold", "other.example.test:8443"), "HTTP/1.1 200 OK");
        let grant = &world.grants()[0];
        assert!(grant.expires_ms.is_some() && grant.session.is_none());
        // Other sessions of the same client can use the grant too, and lose access when it is revoked.
        let mut other = world.connect("fetcher");
        assert_eq!(other.call_free_tool("hold", "other.example.test:8443"), "HTTP/1.1 200 OK");
        let revoked = world.request(Request::Revoke { grant: grant.id.clone() });
        assert!(matches!(revoked, Reply::Revoked { .. }), "{revoked:?}");
        assert_eq!(
            (client.call_free_tool("alive", ""), other.call_free_tool("alive", "")),
            ("cut".into(), "cut".into())
        );
    });
}

#[test]
fn host_allowed_for_call_is_not_asked_again() {
    inside("network::questions::host_allowed_for_call_is_not_asked_again", |_| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(client.fetch_judged(OTHER).ok(), HELLO);
        let asked = world.user.asked();
        let line = &asked[0].consequences[0];
        assert_eq!((asked.len(), line.verb), (1, Verb::Fetch));
        assert_eq!(line.object, [TextPart::Untrusted(OTHER.to_owned())]);
        assert_eq!(
            asked[0].offers.iter().map(|offer| offer.reach).collect::<Vec<_>>(),
            [Reach::Paths, Reach::Host]
        );
        // The permission was only for that call.
        assert!(client.fetch_unjudged(OTHER).starts_with("403 said-no"));
        assert_eq!(world.user.asked().len(), 1);

        allow(&world, Lifetime::Session);
        assert_eq!(client.fetch_judged(THIRD).ok(), HELLO);
        assert_eq!((client.fetch_judged(THIRD).ok(), client.fetch_unjudged(THIRD).as_str()), (HELLO, HELLO));
        assert_eq!(world.user.asked().len(), 1);
        world.revoke_only_grant();
        client.fetch_judged(THIRD).refused("DENIED: the user denied this call");
        assert!(client.fetch_unjudged(THIRD).starts_with("403 said-no"));
        assert_eq!(world.user.asked().len(), 2);
        let log = network_log(&world);
        assert_eq!(log[0], "other.example.test:80 allow call", "{log:#?}");
    });
}

#[test]
fn host_granted_at_connection_is_not_asked_at_call() {
    inside("network::questions::host_granted_at_connection_is_not_asked_at_call", |_| {
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Session);
        assert_eq!(client.fetch_unjudged(OTHER), HELLO);
        assert_eq!(client.fetch_judged(OTHER).ok(), HELLO);
        assert_eq!(world.user.asked().len(), 1);
        client
            .fetch_judged("http://other.example.test:8443/hello")
            .refused("DENIED: the user denied this call");
    });
}

#[test]
fn approved_call_opens_its_host_even_if_unknown_hosts_are_refused() {
    inside("network::questions::approved_call_opens_its_host_even_if_unknown_hosts_are_refused", |_| {
        let world = world(
            &json!({ "allowedDomains": ["files.example.test"], "deniedDomains": ["evil.example.test"] }),
        );
        let mut client = world.connect("fetcher");
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(client.fetch_judged(OTHER).ok(), HELLO);
        assert!(client.fetch_unjudged(OTHER).starts_with("403 unknown-domain"));
        assert_eq!(world.user.asked().len(), 1);
        // The user can allow a call that names a denied host, but connections to that host still fail.
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert!(client.fetch_judged("http://evil.example.test/hello").ok().starts_with("403 denied-domain"));
        let offers = &world.user.asked()[0].offers;
        assert_eq!(offers.iter().map(|offer| offer.reach).collect::<Vec<_>>(), [Reach::Paths]);
    });
}

#[test]
fn service_of_this_computer_is_asked_about_by_its_port() {
    inside("network::questions::service_of_this_computer_is_asked_about_by_its_port", |ground| {
        let service = TcpListener::bind("127.0.0.1:11434").unwrap();
        std::thread::spawn(move || {
            for stream in service.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{HELLO}",
                    HELLO.len()
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let world = world(&asking());
        let mut client = world.connect("fetcher");
        let said = client.fetch_unjudged("http://localhost:11434/hello");
        assert!(said.starts_with("403 said-no"), "{said}");
        let asked = world.user.asked();
        let object = &asked[0].consequences[1].object;
        let port = TextPart::Untrusted("localhost:11434".to_owned());
        assert_eq!(*object, [TextPart::Fixed("Ollama"), TextPart::Fixed(" on this computer, "), port]);
        // Nothing listens on this port, so no question is asked and the denial does not apply.
        let said = client.fetch_unjudged("http://localhost:11435/hello");
        assert!(said.contains("no program on this computer listens on port 11435"), "{said}");
        // The router and metadata services never raise a question either.
        for url in ["http://9.9.9.1/", "http://169.254.169.254/latest/", "http://metadata.google.internal/"] {
            assert!(client.fetch_unjudged(url).starts_with("403 "), "{url}");
        }
        assert_eq!((asked.len(), world.user.count(), ground.reached().len()), (1, 0, 0));
        client.hang_up();
        // A denial applies to one server in one session.
        let mut client = world.connect("fetcher");
        allow(&world, Lifetime::Session);
        assert_eq!(client.fetch_unjudged("http://127.0.0.1:11434/hello"), HELLO);
        assert_eq!(client.fetch_unjudged("http://localhost:11434/hello"), HELLO);
        assert_eq!(world.grants()[0].path, "localhost:11434");
        world.revoke_only_grant();
        assert!(client.fetch_unjudged("http://localhost:11434/hello").starts_with("403 said-no"));
    });
}
