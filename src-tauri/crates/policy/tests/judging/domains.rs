//! Tests which targets patterns cover, and which strings have a target.

use ironcurtain_policy::{Destination, HostPattern, Role, is_ip_address};

fn covers(pattern: &str, url: &str) -> bool {
    Destination::parse(Role::FetchUrl, url)
        .domain()
        .is_some_and(|domain| HostPattern::parse(pattern).covers(domain))
}

fn covers_remote(pattern: &str, url: &str) -> bool {
    Destination::parse(Role::GitRemoteUrl, url)
        .domain()
        .is_some_and(|domain| HostPattern::parse(pattern).covers(domain))
}

#[test]
fn a_star_covers_named_public_hosts_only() {
    for url in ["https://a.com", "http://a.co.uk/x?y", "https://A.COM.:8443/"] {
        assert!(covers("*", url), "{url}");
    }
    for url in [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://x.localhost/",
        "http://db.internal/",
        "http://nas.local/",
        "ftp://a.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "a.com",
        "",
        "http://",
        "//a.com",
    ] {
        assert!(!covers("*", url), "{url}");
    }
}

#[test]
fn local_targets_need_an_explicit_pattern() {
    assert!(covers("127.0.0.1", "http://0x7f.1/"));
    assert!(covers("localhost", "http://localhost:3000/"));
    assert!(covers("*.corp.internal", "https://git.corp.internal/"));
    assert!(covers("[::1]", "http://[::1]/"));
    assert!(!covers("*.0.0.1", "http://127.0.0.1/"));
}

#[test]
fn starred_host_covers_itself_and_its_subdomains() {
    for url in ["https://d.org", "https://a.d.org", "https://a.b.D.org."] {
        assert!(covers("*.d.org", url), "{url}");
    }
    for url in ["https://evild.org", "https://d.org.evil.net", "https://org"] {
        assert!(!covers("*.d.org", url), "{url}");
    }
    assert!(!covers("d.org", "https://a.d.org"));
    assert!(!covers("*.", "https://a.d.org"));
    assert!(!covers("", "https://a.d.org"));
}

#[test]
fn host_of_an_address_is_the_connected_one() {
    assert!(!covers("github.com", "https://github.com@evil.net/"));
    assert!(!covers("github.com", "https://evil.net/?x=github.com"));
    assert!(!covers("github.com", "https://evil.net#github.com"));
    assert!(!covers("github.com", "https://evil.net\\@github.com/"));
    assert!(covers("github.com", "https://user:pw@github.com/"));
}

#[test]
fn a_host_covers_its_repositories_and_a_repository_only_itself() {
    for remote in [
        "https://github.com/acme/app.git",
        "https://github.com/acme/app/",
        "https://github.com/acme/app/.git/",
        "git@github.com:acme/app.git",
        "ssh://git@github.com:22/acme/app",
        "git://GitHub.com/acme/app",
    ] {
        assert!(covers_remote("github.com", remote), "{remote}");
        assert!(covers_remote("github.com/acme/app", remote), "{remote}");
        assert!(!covers_remote("github.com/acme/app2", remote), "{remote}");
        assert!(!covers_remote("github.com/acme", remote), "{remote}");
    }
}

#[test]
fn remote_without_a_target_is_covered_by_no_pattern() {
    for remote in [
        "origin",
        "../other",
        "/srv/a.git",
        "file:///srv/a.git",
        "ext::sh -c id",
        "-oProxyCommand=id:x",
        ":x",
        "",
        "ftp://github.com/a",
        "[::1]:a",
        "a/b:c",
        "https://",
    ] {
        assert_eq!(Destination::parse(Role::GitRemoteUrl, remote).domain(), None, "{remote}");
    }
    assert_eq!(Destination::parse(Role::GitRemoteUrl, "evil.com:a/b").domain(), Some("evil.com/a/b"));
    assert_eq!(Destination::parse(Role::GitRemoteUrl, "git@0x7f.1:a").domain(), Some("127.0.0.1/a"));
}

#[test]
fn urls_are_sent_normalized_and_other_remotes_as_written() {
    let web = |raw: &str| Destination::parse(Role::FetchUrl, raw).text().to_owned();
    assert_eq!(web("HTTPS://A.com:443/x/../y"), "https://a.com/y");
    assert_eq!(web("https://a.com"), "https://a.com");
    assert_eq!(web("https://a.com/"), "https://a.com");
    assert_eq!(web("https://a.com/x/"), "https://a.com/x/");
    assert_eq!(web("no url"), "no url");
    let remote = |raw: &str| Destination::parse(Role::GitRemoteUrl, raw).text().to_owned();
    assert_eq!(remote("git@GitHub.com:a/b"), "git@GitHub.com:a/b");
    assert_eq!(remote("https://GitHub.com:443/a/b"), "https://github.com/a/b");
}

#[test]
fn address_is_sent_as_written_if_every_parser_finds_the_judged_host() {
    let address_to_send = |raw: &str| Destination::parse(Role::FetchUrl, raw).address_to_send().to_owned();
    for raw in [
        "HTTPS://A.com:443/x/../y",
        "https://a.com/",
        "http://a.com:8080?q=%7Ea#\\b",
        "https://[::1]/a//b",
        "data:text/plain;base64,aGVsbG8=",
        "demo://Resource/../1",
    ] {
        assert_eq!(address_to_send(raw), raw);
    }
    for (raw, judged) in [
        ("http://0x7f.1/", "http://127.0.0.1"),
        ("https:a.com/x", "https://a.com/x"),
        ("https:\\\\a.com/x", "https://a.com/x"),
        ("https://a.com\\@b.com/", "https://a.com/@b.com/"),
        ("https://u@a.com/./", "https://u@a.com"),
        ("https://%61.com/x", "https://a.com/x"),
        ("https://a.com:0443/", "https://a.com"),
        (" https://a.com/x", "https://a.com/x"),
        ("https://a.com/\tx", "https://a.com/x"),
        ("https://a.com/\u{e4}", "https://a.com/%C3%A4"),
    ] {
        assert_eq!(address_to_send(raw), judged, "{raw}");
    }
}

#[test]
fn ip_addresses_are_recognized_in_any_notation() {
    for host in ["1.2.3.4", "999.1.1.1", "0x7f.1", "2130706433", "::1", "a:b", "[::1]"] {
        assert!(is_ip_address(host), "{host}");
    }
    for host in ["a.com", "1.2.3.4\n", "1.2.3.4.com", "1..2.3", "999.1.1", "999.1.1.1.1", ""] {
        assert!(!is_ip_address(host), "{host}");
    }
}

#[test]
fn remote_without_a_target_is_sent_as_written() {
    // Normalization would turn these addresses into a different form: in `a:/b`, `a` is a host.
    for raw in
        ["httphttps:/tpss:1//:a.//h://../", "a:/b/c://../..", "ssh:/ok.org/x://../y", "file:///srv/x/../y"]
    {
        let remote = Destination::parse(Role::GitRemoteUrl, raw);
        assert_eq!((remote.text(), remote.domain()), (raw, None));
    }
    let twin = Destination::parse(Role::GitRemoteUrl, "ssh://git@ok.org/x/../y.git");
    assert_eq!((twin.text(), twin.domain()), ("ssh://git@ok.org/y.git", Some("ok.org/y")));
}

#[test]
fn sent_address_parses_as_the_judged_one() {
    for (raw, text) in [
        ("file:", "file:///"),
        ("http://ok.org", "http://ok.org"),
        ("http://ok.org/", "http://ok.org"),
        ("http://ok.org/?/", "http://ok.org/?/"),
        ("http://ok.org#/", "http://ok.org/#/"),
    ] {
        let judged = Destination::parse(Role::FetchUrl, raw);
        assert_eq!(judged.text(), text);
        for address_to_send in [text, judged.address_to_send()] {
            let read = Destination::parse(Role::FetchUrl, address_to_send);
            let all = |destination: &Destination| {
                (
                    destination.text().to_owned(),
                    destination.host_and_port().map(|(host, port)| (host.to_owned(), port)),
                )
            };
            assert_eq!(all(&read), all(&judged), "{address_to_send}");
        }
    }
}

#[test]
fn trailing_dots_of_a_host_are_ignored_in_every_script() {
    for (raw, host) in [
        ("http://ok.org。。/", "ok.org"),
        ("http://ok.org../", "ok.org"),
        ("http://127.0.0.1。。/", "127.0.0.1"),
        ("http://127.1../", "127.0.0.1"),
    ] {
        let web = Destination::parse(Role::FetchUrl, raw);
        assert_eq!(web.domain(), Some(host), "{raw}");
        assert_eq!(HostPattern::Any.covers(host), host == "ok.org");
    }
}

#[test]
fn remote_that_changes_when_sent_has_no_target() {
    // The URL parser escapes characters in these addresses, and an address with escapes has no target.
    for raw in ["ssh://^it@ok.org/a", "ssh://h\u{f6}.org/a", "git://\"x@ok.org/a"] {
        let remote = Destination::parse(Role::GitRemoteUrl, raw);
        assert_eq!((remote.text(), remote.domain()), (raw, None));
    }
    let twin = Destination::parse(Role::GitRemoteUrl, "ssh://it@ok.org/\"a");
    assert_eq!((twin.text(), twin.domain()), ("ssh://it@ok.org/%22a", Some("ok.org/%22a")));
    assert_eq!(Destination::parse(Role::GitRemoteUrl, twin.text()), twin);
}
