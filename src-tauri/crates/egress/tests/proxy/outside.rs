//! Tests redirects, DNS rebinding, and names that resolve to private addresses, to public addresses, or to the
//! machine's own addresses.

use crate::fixture::{TestProxy, refusal_of};
use crate::namespace::{OWN, PRIVATE, PUBLIC, PUBLIC_V6, inside};

/// Requests a page over plain HTTP.
async fn get(proxy: &TestProxy, host: &str) -> String {
    let request =
        format!("GET http://{host}/hello.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    proxy.send_and_read(request.as_bytes()).await
}

#[test]
fn a_name_may_resolve_to_public_addresses_only() {
    inside("outside::a_name_may_resolve_to_public_addresses_only", async |world| {
        let proxy =
            TestProxy::new(&["*.example.test", "spelled.example.test:80", "8.8.8.8:80"], &["1.1.1.1"]);
        for (name, addresses) in
            [("public", "9.9.9.9"), ("public-v6", "2620:fe::9"), ("nat64", "64:ff9b::9.9.9.9 9.9.9.9")]
        {
            let host = format!("{name}.example.test");
            proxy.names.set(&host, &[addresses]);
            if name != "nat64" {
                assert!(get(&proxy, &host).await.ends_with("hello from outside"), "{name}");
            }
        }
        let connection_count = world.log();
        assert_eq!(
            connection_count.iter().map(|(host, ..)| host.as_str()).collect::<Vec<_>>(),
            [PUBLIC, PUBLIC_V6]
        );
        for (name, addresses, code) in [
            ("private", PRIVATE, "not-public"),
            ("mixed", "9.9.9.9 10.9.9.9", "not-public"),
            ("mixed-first", "10.9.9.9 9.9.9.9", "not-public"),
            ("loopback", "127.0.0.1", "not-public"),
            ("loopback-v6", "::1", "not-public"),
            ("unspecified", "0.0.0.0", "not-public"),
            ("mapped", "::ffff:10.9.9.9", "not-public"),
            ("nat64-private", "64:ff9b::10.9.9.9", "not-public"),
            ("6to4-private", "2002:a09:909::1", "not-public"),
            ("link-local", "fe80::1", "not-public"),
            ("metadata", "169.254.169.254", "not-public"),
            ("metadata-v6", "fd00:ec2::254", "not-public"),
            ("shared", "100.64.0.1", "not-public"),
            ("multicast", "224.0.0.1", "not-public"),
            ("own", OWN, "not-public"),
            ("own-v6", "2620:fe::1", "not-public"),
            ("denied", "1.1.1.1", "denied-address"),
            ("denied-mapped", "::ffff:1.1.1.1", "denied-address"),
        ] {
            let host = format!("{name}.example.test");
            proxy.names.set(&host, &[addresses]);
            let (status, got, text) = refusal_of(&get(&proxy, &host).await);
            assert_eq!((status, got.as_str()), (403, code), "{name}: {text}");
        }
        let own = refusal_of(&get(&proxy, "own.example.test").await).2;
        assert_eq!(
            own,
            "IronCurtain: `own.example.test:80` resolves to 9.9.9.1, which is this machine's own.\n"
        );
        assert_eq!(world.log(), connection_count, "none of these was dialled");
    });
}

#[test]
fn a_private_address_that_is_written_out_is_reachable() {
    inside("outside::a_private_address_that_is_written_out_is_reachable", async |_world| {
        let proxy =
            TestProxy::new(&["intra.example.test", PRIVATE, "own.example.test:8080", "9.9.9.1:8080"], &[]);
        proxy.names.set("intra.example.test", &[PRIVATE]);
        proxy.names.set("own.example.test", &[OWN]);
        assert!(get(&proxy, "intra.example.test").await.ends_with("hello from outside"));
        assert!(get(&proxy, PRIVATE).await.ends_with("hello from outside"));
        let own = tokio::net::TcpListener::bind((OWN, 8080)).await.unwrap();
        let tunnel = proxy.tunnel("own.example.test:8080").await;
        drop((own.accept().await.unwrap(), tunnel));
    });
}

#[test]
fn a_rebinding_name_is_judged_at_every_lookup() {
    inside("outside::a_rebinding_name_is_judged_at_every_lookup", async |world| {
        let proxy = TestProxy::new(&["rebind.example.test"], &[]);
        proxy.names.set("rebind.example.test", &[PUBLIC, PRIVATE, PUBLIC]);
        assert!(get(&proxy, "rebind.example.test").await.ends_with("hello from outside"));
        assert_eq!(proxy.names.looked_up().len(), 1, "one look-up for one connection");
        let (status, code, text) = refusal_of(&get(&proxy, "rebind.example.test").await);
        assert_eq!((status, code.as_str()), (403, "not-public"));
        assert_eq!(
            text,
            "IronCurtain: `rebind.example.test:80` resolves to 10.9.9.9, which is in a private network.\n"
        );
        assert!(get(&proxy, "rebind.example.test").await.ends_with("hello from outside"));
        assert!(world.log().iter().all(|(host, ..)| host == PUBLIC));
    });
}

#[test]
fn the_second_address_is_tried_when_the_first_does_not_answer() {
    inside("outside::the_second_address_is_tried_when_the_first_does_not_answer", async |_world| {
        // The first address is unreachable.
        let proxy = TestProxy::new(&["two.example.test"], &[]);
        proxy.names.set("two.example.test", &["8.8.8.8 9.9.9.9"]);
        assert!(get(&proxy, "two.example.test").await.ends_with("hello from outside"));
        let expected = "http two.example.test:80 allowed by two.example.test [8.8.8.8 9.9.9.9]";
        assert_eq!(proxy.events.lines(1).await, [expected]);
    });
}
