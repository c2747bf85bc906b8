//! Tests the rules with tables of targets and expected decisions.

use super::*;

fn rules(allowed: &[&str], denied: &[&str]) -> HostRules {
    HostRules::new(allowed, denied, false).unwrap()
}

fn target(text: &str) -> HostPort {
    HostPort::parse(text, None).unwrap()
}

fn allowed(rules: &HostRules, text: &str) -> bool {
    matches!(rules.judge(&target(text)), HostDecision::Allow { .. })
}

#[test]
fn a_name_covers_itself_and_a_star_the_names_below() {
    let rules = rules(&["Example.com.", "*.pkg.test", "b\u{fc}cher.example"], &[]);
    for text in [
        "example.com:443",
        "EXAMPLE.com.:80",
        "a.pkg.test:443",
        "a.b.c.pkg.test:80",
        "xn--bcher-kva.example:443",
    ] {
        assert!(allowed(&rules, text), "{text}");
    }
    for text in [
        "a.example.com:443",
        "pkg.test:443",
        "evilpkg.test:443",
        "example.com.evil.test:443",
        "xexample.com:443",
    ] {
        let reason = ConnectionRefusal::NotAllowed(text.to_owned());
        assert_eq!(rules.judge(&target(text)), HostDecision::Deny { reason }, "{text}");
    }
}

#[test]
fn ports_are_the_usual_two_unless_spelled() {
    let rules = rules(&["a.test", "b.test:22", "[2606:4700::1]:8443"], &["*:25"]);
    for text in ["a.test:80", "a.test:443", "b.test:22", "[2606:4700::1]:8443"] {
        assert!(allowed(&rules, text), "{text}");
    }
    for text in ["a.test:22", "a.test:8443", "b.test:443", "b.test:80", "[2606:4700::1]:443"] {
        assert!(!allowed(&rules, text), "{text}");
    }
}

#[test]
fn denied_comes_first_on_every_port() {
    let rules = rules(&["*.a.test", "x.a.test:22", "c.test"], &["x.a.test", "*:443"]);
    let denied = |text| rules.judge(&target(text));
    let by = |pattern: &str| HostDecision::Deny { reason: ConnectionRefusal::Denied(pattern.into()) };
    assert_eq!(denied("x.a.test:22"), by("x.a.test"));
    assert_eq!(denied("c.test:443"), by("*:443"));
    assert!(allowed(&rules, "c.test:80") && allowed(&rules, "y.a.test:80"));
    assert!(rules.denies_address("1.2.3.4".parse().unwrap(), 443));
}

#[test]
fn an_address_in_any_notation_is_allowed_only_where_it_is_spelled_out() {
    let rules = rules(&["127.0.0.1:8080", "*.pkg.test", "localhost:3000"], &["9.9.9.9"]);
    for host in ["127.0.0.1", "127.1", "2130706433", "0177.1", "0x7f.0.0.1", "[::ffff:127.0.0.1]"] {
        assert!(allowed(&rules, &format!("{host}:8080")), "{host}");
        let expected = HostDecision::Deny { reason: ConnectionRefusal::Address("127.0.0.1:80".into()) };
        assert_eq!(rules.judge(&target(&format!("{host}:80"))), expected, "{host}");
    }
    let loopback = "127.0.0.1".parse().unwrap();
    assert!(rules.lists_address(&target("a.test:8080"), loopback));
    assert!(!rules.lists_address(&target("a.test:443"), loopback));
    assert!(rules.lists_address(&target("localhost:3000"), "::1".parse().unwrap()));
    assert!(!rules.lists_address(&target("localhost:3000"), "10.0.0.1".parse().unwrap()));
    assert!(rules.denies_address("::ffff:9.9.9.9".parse().unwrap(), 443));
}

#[test]
fn unmatched_names_are_asked_about_if_enabled() {
    let rules = HostRules::new(["a.test"], ["*.evil.test"], true).unwrap();
    assert_eq!(
        rules.judge(&target("New.test:8080")),
        HostDecision::Ask { host: "new.test".into(), port: 8080 }
    );
    for text in ["x.evil.test:443", "1.2.3.4:443", "printer.local:443", "localhost:80", "intranet:443"] {
        assert!(matches!(rules.judge(&target(text)), HostDecision::Deny { .. }), "{text}");
    }
    let granted = rules.with_grants(vec![
        GrantedHost { id: "g1".into(), target: target("new.test:8080") },
        GrantedHost { id: "g2".into(), target: target("x.evil.test:443") },
    ]);
    assert_eq!(
        granted.judge(&target("new.test:8080")),
        HostDecision::Allow { by: PermittedBy::Grant("g1".into()) }
    );
    assert!(matches!(granted.judge(&target("new.test:443")), HostDecision::Ask { .. }));
    assert!(matches!(granted.judge(&target("x.evil.test:443")), HostDecision::Deny { .. }));
}

#[test]
fn rules_that_open_nothing_need_no_proxy() {
    assert!(HostRules::default().is_closed() && rules(&[], &["a.test"]).is_closed());
    assert!(
        !rules(&["a.test"], &[]).is_closed() && !HostRules::new([""; 0], [""; 0], true).unwrap().is_closed()
    );
}

#[test]
fn an_invalid_pattern_is_refused_and_named() {
    let problem = |text: &str| HostRules::new([text], [""; 0], false).unwrap_err();
    for text in ["https://a.test", "a.test/x", "u@a.test", "a.test?x", "a\\b.test"] {
        assert_eq!(problem(text), RuleError::Url(text.into()));
    }
    for text in ["*", "*:443", "*.com", "*.localhost"] {
        assert_eq!(problem(text), RuleError::TooWide(text.into()));
    }
    for text in ["a.*.test", "*a.test", "**.a.test", "*.*.test", "*.1.2.3.4", "*.0.1"] {
        assert_eq!(problem(text), RuleError::Star(text.into()));
    }
    for text in ["::1", "2001:db8::1:443", "a:b:80", "[::1"] {
        assert_eq!(problem(text), RuleError::Brackets(text.into()));
    }
    for text in ["a.test:", "a.test:0", "a.test:080", "a.test:65536", "a.test:https", "[::1]:x"] {
        assert_eq!(problem(text), RuleError::Port(text.into()));
    }
    for text in ["", ".", "a..test", "a b.test", "a%2etest", "[::1%lo]", "*.", "1.2.3.4.5", "a_b.\u{202e}x"] {
        assert_eq!(problem(text), RuleError::Name(text.into()));
    }
    assert_eq!(problem("intranet"), RuleError::Short("intranet".into()));
    let canonical = "127.0.0.1".to_owned();
    assert_eq!(problem("127.1:80"), RuleError::Notation { pattern: "127.1:80".into(), canonical });
    assert!(HostRules::new([""; 0], ["*", "*:22"], false).is_ok());
}

#[test]
fn reachable_hosts_are_the_patterns_and_the_grants_that_nothing_denies() {
    let grant = |text| GrantedHost { id: "g".into(), target: target(text) };
    let rules = rules(&["*.a.test"], &["x.test"]).with_grants(vec![
        grant("b.test:443"),
        grant("c.test:8080"),
        grant("x.test:443"),
        grant("b.test:443"),
    ]);
    assert_eq!(rules.reachable(), ["*.a.test", "b.test", "c.test:8080"]);
}

#[test]
fn services_of_this_computer_are_asked_about_by_port() {
    let rules = |ask| HostRules::new(["127.0.0.1:3000"], ["localhost:22"], ask).unwrap();
    let asking = rules(true).with_local_services();
    let judged = |rules: &HostRules, text: &str| rules.judge(&rules.normalize_target(target(text)));
    let asked = |port| HostDecision::Ask { host: "localhost".to_owned(), port };
    for text in ["localhost:5432", "127.0.0.1:5432", "127.8.8.8:5432", "[::1]:5432"] {
        assert_eq!(judged(&asking, text), asked(5432), "{text}");
        assert!(matches!(judged(&rules(true), text), HostDecision::Deny { .. }), "{text}");
        let silent = rules(false).with_local_services();
        assert!(matches!(judged(&silent, text), HostDecision::Deny { .. }), "{text}");
    }
    assert!(matches!(judged(&asking, "127.0.0.1:3000"), HostDecision::Allow { .. }), "it is written out");
    // The router and the metadata service are never offered for approval.
    for text in [
        "localhost:22",
        "127.0.0.1:22",
        "169.254.169.254:80",
        "192.168.0.1:80",
        "metadata.google.internal:80",
        "_gateway:80",
        "router:80",
        "[fd00:ec2::254]:80",
        "printer.local:631",
        "a.localhost:80",
    ] {
        assert!(matches!(judged(&asking, text), HostDecision::Deny { .. }), "{text}");
    }
    let (loopback, once) = ("127.0.0.1".parse().unwrap(), PermittedBy::Once);
    assert!(asking.allows_local_service(&target("localhost:5432"), loopback, &once));
    assert!(!asking.allows_local_service(&target("localhost:5432"), "192.168.0.1".parse().unwrap(), &once));
    assert!(!asking.allows_local_service(&target("sly.test:5432"), loopback, &once));
    assert!(!rules(true).allows_local_service(&target("localhost:5432"), loopback, &once));
}
