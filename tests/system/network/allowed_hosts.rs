//! Servers with and without a list of allowed hosts.

use super::test_network::{configure, inside, world};
use super::{HELLO, network_log, proxy_table};
use crate::client::TIMEOUT;
use crate::world::eventually;
use serde_json::json;

#[test]
fn listed_hosts_are_reached_and_others_are_refused_and_recorded() {
    inside(
        "network::allowed_hosts::listed_hosts_are_reached_and_others_are_refused_and_recorded",
        |ground| {
            let world = world(&json!({
                "allowedDomains": ["files.example.test", "sly.example.test", "*.deep.example.test", "third.example.test:8443"],
                "deniedDomains": ["evil.example.test"],
            }));
            let mut client = world.connect("fetcher");
            assert_eq!(client.fetch_unjudged("http://files.example.test/hello"), HELLO);
            assert_eq!(client.call_free_tool("ssh", "third.example.test:8443"), "hello");
            for (url, code) in [
                ("http://other.example.test/hello", "unknown-domain"),
                ("http://files.example.test:8080/hello", "unknown-domain"),
                ("http://evil.example.test/hello", "denied-domain"),
                ("http://sly.example.test/hello", "not-public"),
                ("http://9.9.9.9/hello", "address-literal"),
                ("http://0x9090909/hello", "address-literal"),
                ("http://localhost/hello", "unknown-domain"),
            ] {
                let said = client.fetch_unjudged(url);
                assert!(said.starts_with(&format!("403 {code}: IronCurtain: ")), "{url}: {said}");
            }
            assert!(
                client
                    .call_free_tool("ssh", "other.example.test:22")
                    .starts_with("ironcurtain-sandbox: IronCurtain: `other.example.test:22`")
            );
            assert_eq!(client.call_free_tool("direct", "9.9.9.9:80"), "Network is unreachable");
            assert_eq!(ground.reached(), ["9.9.9.9 80", "9.9.9.9 8443"]);
            assert_eq!(
                network_log(&world),
                [
                    "files.example.test:80 allow files.example.test",
                    "third.example.test:8443 allow third.example.test:8443",
                    "other.example.test:80 deny unknown-domain",
                    "files.example.test:8080 deny unknown-domain",
                    "evil.example.test:80 deny denied-domain",
                    "sly.example.test:80 deny not-public",
                    "9.9.9.9:80 deny address-literal",
                    "9.9.9.9:80 deny address-literal",
                    "localhost:80 deny unknown-domain",
                    "other.example.test:22 deny unknown-domain",
                ]
            );
            assert_eq!(world.user.asked().len(), 0);
            let shown = world.activity();
            let refused = "The server fetcher was refused access to evil.example.test:80: `evil.example.test` is on the list of denied domains";
            assert!(
                shown.iter().any(|one| one.summary == refused && one.paths == ["evil.example.test:80"]),
                "{shown:?}"
            );
            assert!(world.audit().intact);
        },
    );
}

#[test]
fn private_host_needs_its_address_in_the_list() {
    inside("network::allowed_hosts::private_host_needs_its_address_in_the_list", |ground| {
        let spelled = world(&json!({ "allowedDomains": ["sly.example.test", "10.9.9.9"] }));
        assert_eq!(spelled.connect("fetcher").fetch_unjudged("http://sly.example.test/hello"), HELLO);
        assert_eq!(ground.reached(), ["10.9.9.9 80"]);
    });
}

#[test]
fn server_without_hosts_has_no_proxy_and_no_network() {
    inside("network::allowed_hosts::server_without_hosts_has_no_proxy_and_no_network", |ground| {
        for network in [
            json!(false),
            json!({ "allowedDomains": [] }),
            json!({ "allowedDomains": [], "deniedDomains": ["a.test"] }),
        ] {
            let world = world(&network);
            let mut client = world.connect("fetcher");
            assert_eq!(client.call_free_tool("proxies", ""), "", "{network}");
            assert_eq!(client.call_free_tool("direct", "127.0.0.1:3128"), "Connection refused");
            assert_eq!(client.call_free_tool("direct", "9.9.9.9:80"), "Network is unreachable");
        }
        let open = world(&json!({ "allowedDomains": ["files.example.test"] }));
        let mut client = open.connect("fetcher");
        assert!(client.call_free_tool("proxies", "").contains("HTTPS_PROXY"));
        assert_eq!(client.call_free_tool("direct", "127.0.0.1:3128"), "connected");
        assert_eq!(ground.reached(), Vec::<String>::new());
    });
}

#[test]
fn killed_servers_proxy_listener_is_closed_and_restart_gets_its_own() {
    inside(
        "network::allowed_hosts::killed_servers_proxy_listener_is_closed_and_restart_gets_its_own",
        |_| {
            let world = world(&json!({ "allowedDomains": ["files.example.test"] }));
            let mut client = world.connect("fetcher");
            assert_eq!(client.fetch_unjudged("http://files.example.test/hello"), HELLO);
            let supervisor = world.sessions()[0].server_pid.unwrap();
            let listener = listener_of(supervisor);
            assert!(is_open_here(&listener), "the daemon holds the listener");
            let supervisor = rustix::process::Pid::from_raw(supervisor.try_into().unwrap()).unwrap();
            rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
            eventually("the listener is closed", TIMEOUT, || !is_open_here(&listener));
            assert_eq!(client.fetch_unjudged("http://files.example.test/hello"), HELLO);
            let next = listener_of(world.sessions()[0].server_pid.unwrap());
            assert!(next != listener && is_open_here(&next));
            client.hang_up();
            eventually("the next listener is closed", TIMEOUT, || !is_open_here(&next));
        },
    );
}

#[test]
fn host_removed_from_list_is_disconnected() {
    inside("network::allowed_hosts::host_removed_from_list_is_disconnected", |_| {
        let world =
            world(&json!({ "allowedDomains": ["files.example.test:8443", "other.example.test:8443"] }));
        let mut client = world.connect("fetcher");
        for host in ["files.example.test:8443", "other.example.test:8443"] {
            assert_eq!(client.call_free_tool("hold", host), "HTTP/1.1 200 OK");
        }
        assert_eq!(client.call_free_tool("alive", ""), "alive alive");
        configure(&world.home, &json!({ "allowedDomains": ["other.example.test:8443"] }));
        eventually("the connection is cut", TIMEOUT, || client.call_free_tool("alive", "") == "cut alive");
        assert_eq!(client.call_free_tool("hold", "files.example.test:8443"), "HTTP/1.1 403 Forbidden");
        configure(
            &world.home,
            &json!({ "allowedDomains": ["other.example.test:8443", "files.example.test:8443"] }),
        );
        eventually("the host is reachable again", TIMEOUT, || {
            client.call_free_tool("hold", "files.example.test:8443") == "HTTP/1.1 200 OK"
        });
    });
}

/// Returns the sandbox's listening socket in the format of `/proc/net/tcp`.
fn listener_of(supervisor: u32) -> String {
    let table = std::fs::read_to_string(proxy_table(supervisor)).unwrap();
    let listening = table.lines().find(|line| line.contains(" 0100007F:0C38 00000000:0000 0A ")).unwrap();
    format!("socket:[{}]", listening.split_whitespace().nth(9).unwrap())
}

fn is_open_here(socket: &str) -> bool {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|link| link.as_os_str() == socket)
}
