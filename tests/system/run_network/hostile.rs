//! Attempts to bypass the question: every notation of an address, other names in headers and in TLS, names of this
//! machine and its network, and redirects. Each has a permitted counterpart.

use super::{inside, probe, shell, world};
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Reach};

fn allow(world: &World) {
    world.user.will(Next::Allow(Reach::Host, Lifetime::Session));
}

#[test]
fn addresses_and_local_names_are_never_asked_about() {
    inside("run_network::hostile::addresses_and_local_names_are_never_asked_about", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for (target, code) in [
            ("9.9.9.9", "address-literal"),
            ("9.9.9.9.", "address-literal"),
            ("151587081", "address-literal"),
            ("0x09090909", "address-literal"),
            ("011.011.011.011", "address-literal"),
            ("9.9.2313", "address-literal"),
            ("[::ffff:9.9.9.9]", "address-literal"),
            ("[64:ff9b::909:909]", "address-literal"),
            ("127.0.0.1", "address-literal"),
            ("2130706433", "address-literal"),
            ("[::1]", "address-literal"),
            ("169.254.169.254", "address-literal"),
            ("localhost", "unknown-domain"),
            ("localhost.", "unknown-domain"),
            ("LOCALHOST", "unknown-domain"),
            ("a.localhost", "unknown-domain"),
            ("printer.local", "unknown-domain"),
            ("router", "unknown-domain"),
            ("metadata.google.internal", "unknown-domain"),
        ] {
            let said = probe(&mut shell, &format!("connect '{target}:8443'"));
            assert_eq!(said, format!("403 {code}"), "connect {target}");
            let said = probe(&mut shell, &format!("get 'http://{target}/hello'"));
            assert_eq!(said, format!("403 {code}"), "get {target}");
        }
        for bad in
            ["a b:80", "files.example.test:0", "files.example.test:99999", "user@files.example.test:80"]
        {
            let said = probe(&mut shell, &format!("connect '{bad}'"));
            assert!(said.starts_with("400"), "{bad}: {said}");
        }
        assert_eq!((world.user.count(), ground.reached().len()), (0, 0));
        allow(&world);
        assert_eq!(probe(&mut shell, "connect files.example.test:8443"), "200");
        assert_eq!(probe(&mut shell, "connect FILES.example.test.:8443"), "200");
        assert_eq!(world.user.asked().len(), 1);
    });
}

#[test]
fn approval_never_opens_this_machine_or_its_network() {
    inside("run_network::hostile::approval_never_opens_this_machine_or_its_network", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for name in ["own", "sly", "two", "metadata"] {
            allow(&world);
            let said = probe(&mut shell, &format!("get http://{name}.example.test/hello"));
            assert_eq!(said, "403 not-public", "{name}");
        }
        assert!(ground.reached().is_empty());
        allow(&world);
        assert_eq!(probe(&mut shell, "get http://files.example.test/hello"), "200");
        // The allowed host's name later resolves to another address.
        for address in ["127.0.0.1", "10.9.9.9", "169.254.169.254"] {
            ground.resolve("files.example.test", address);
            let said = probe(&mut shell, "get http://files.example.test/hello");
            assert_eq!(said, "403 not-public", "{address}");
        }
        ground.resolve("files.example.test", "9.9.9.9");
        assert_eq!(probe(&mut shell, "get http://files.example.test/hello"), "200");
        assert_eq!(ground.reached().len(), 2);
    });
}

#[test]
fn headers_and_tls_must_name_the_allowed_host() {
    inside("run_network::hostile::headers_and_tls_must_name_the_allowed_host", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world);
        assert_eq!(probe(&mut shell, "get http://files.example.test/hello"), "200");
        let said = probe(&mut shell, "get http://files.example.test/hello evil.example.test");
        assert_eq!(said, "400 bad-request");
        // The `Host` header of a CONNECT request has no effect. The user was asked about the request's target.
        allow(&world);
        assert_eq!(probe(&mut shell, "connect files.example.test:8443 evil.example.test:8443"), "200");
        let asked = world.user.asked();
        assert!(asked.iter().all(|question| question.denial.starts_with("reaching files.example.test:")));
        allow(&world);
        assert_eq!(probe(&mut shell, "tls files.example.test:443 files.example.test"), "200");
        assert_eq!(probe(&mut shell, "tls files.example.test:443 evil.example.test"), "cut");
        assert_eq!(
            ground.reached(),
            ["9.9.9.9 80 files.example.test", "9.9.9.9 8443", "9.9.9.9 443 files.example.test"]
        );
        // Another port of the same host raises another question, which is denied.
        assert_eq!(probe(&mut shell, "connect files.example.test:22"), "403 said-no");
    });
}

#[test]
fn a_redirect_raises_another_question() {
    inside("run_network::hostile::a_redirect_raises_another_question", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        let follow = |to: &str| format!("curl -sSL 'http://files.example.test/redirect?{to}'");
        allow(&world);
        let denied = shell.run(&follow("http://evil.example.test/hello"));
        assert!(denied.contains("`evil.example.test:80` was not allowed"), "{denied}");
        let private = shell.run(&follow("http://10.9.9.9/hello"));
        assert!(private.contains("`10.9.9.9:80` is an IP address"), "{private}");
        assert_eq!((world.user.asked().len(), ground.reached().len()), (2, 2));
        allow(&world);
        assert_eq!(shell.run(&follow("http://other.example.test/hello")), "hello from outside\nstatus 0\n");
        assert_eq!(world.user.asked().len(), 1);
    });
}
