//! Tests that ambiguous values cannot bypass a rule that denies or requires approval.

use crate::scene::{Scene, load, spelled};
use ironcurtain_policy::{Destination, DynamicLists, LoadError, Mismatch, Policy, Role, StepBasis};
use serde_json::{Value, json};

/// Addresses that hide a host from a pattern, as an agent might write them.
const HIDDEN: [&str; 12] = [
    "",
    "evil.example",
    "ftp://evil.example/x",
    "git+ssh://evil.example/x",
    "ssh+git://evil.example/x",
    "[git@evil.example]:x",
    "git@[evil.example]:x",
    "ext::ssh evil.example",
    "ssh://github.com?@evil.example/x",
    "ssh://evil.example%2f@github.com/x",
    "https://github.com\\@evil.example/x",
    "-oProxyCommand=evil",
];

fn push(remote: &str) -> Value {
    json!({ "path": "/r", "remote": remote })
}

fn domains(role: &str, allowed: &[&str]) -> Value {
    json!({ "domains": { "roles": [role], "allowed": allowed } })
}

#[test]
fn an_unknown_address_does_not_evade_a_deny_rule() {
    let evil = domains("git-remote-url", &["evil.example"]);
    let scene = Scene::new(&[("evil", evil, "deny"), ("all", json!({}), "allow")]);
    for remote in HIDDEN {
        assert_eq!(scene.verdict_text("other", "push", &push(remote)), "deny evil", "{remote}");
    }
    let others =
        ["https://good.example/x", "git@good.example:x", "ssh://git@good.example/x", "/srv/r", "../r"];
    for remote in others {
        assert_eq!(scene.verdict_text("other", "push", &push(remote)), "allow all", "{remote}");
    }
}

#[test]
fn uncertain_asking_rule_precedes_allow_rules_but_not_deny_rules() {
    let asks = ("asks", domains("fetch-url", &["evil.example"]), "escalate");
    let verdict = |others: &[(&str, Value, &str)], url: &str| {
        let rules: Vec<_> = std::iter::once(asks.clone()).chain(others.to_vec()).collect();
        Scene::new(&rules).verdict_text("other", "get", &json!({ "url": url }))
    };
    let [allow, deny] = ["allow", "deny"].map(|then| ("rest", json!({}), then));
    let (known, unknown) = ("https://good.example/", "ftp://evil.example/");
    assert_eq!(verdict(&[], unknown), "deny default-deny");
    assert_eq!(verdict(std::slice::from_ref(&deny), unknown), "deny rest");
    assert_eq!(verdict(std::slice::from_ref(&allow), unknown), "escalate asks");
    assert_eq!(verdict(&[allow], known), "allow rest");
    assert_eq!(verdict(&[deny], "https://evil.example/"), "escalate asks");
}

#[test]
fn allow_rule_covers_no_uncertain_value() {
    let good = domains("git-remote-url", &["*", "github.com", "*.github.com"]);
    let paths = json!({ "roles": ["read-path"] });
    let scene = Scene::new(&[("good", good, "allow"), ("paths", paths, "allow")]);
    for remote in HIDDEN {
        assert_eq!(scene.verdict_text("other", "push", &push(remote)), "deny default-deny", "{remote}");
    }
    assert_eq!(scene.verdict_text("other", "push", &push("https://github.com/x")), "allow paths+good");
}

#[test]
fn star_in_a_deny_rule_covers_every_host() {
    let scene = Scene::new(&[("none", domains("fetch-url", &["*"]), "deny"), ("all", json!({}), "allow")]);
    let all = [
        "https://example.org/",
        "http://localhost/",
        "http://127.1/",
        "http://[::1]/",
        "http://x.internal/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "http://",
        "",
    ];
    for url in all {
        assert_eq!(scene.verdict_text("other", "get", &json!({ "url": url })), "deny none", "{url}");
    }
    // A local file is not on a host, and the host of a file on another machine is unknown.
    let twin = Scene::new(&[("one", domains("fetch-url", &["a.org"]), "deny"), ("all", json!({}), "allow")]);
    for url in ["https://example.org/", "http://localhost/", "http://127.1/", "file:///etc/passwd"] {
        assert_eq!(twin.verdict_text("other", "get", &json!({ "url": url })), "allow all", "{url}");
    }
    for url in ["file://example.org/share/x", "data:text/plain,x", "http://"] {
        assert_eq!(twin.verdict_text("other", "get", &json!({ "url": url })), "deny one", "{url}");
    }
}

#[test]
fn a_value_next_to_another_does_not_hide_it_from_a_rule_that_denies() {
    let evil = domains("fetch-url", &["evil.example"]);
    let get = |urls: Value| json!({ "url": urls });
    let (evil_one, good) = ("https://evil.example/", "https://good.example/");
    for (then, verdict) in [("deny", "deny evil"), ("escalate", "escalate evil")] {
        let scene = Scene::new(&[("evil", evil.clone(), then), ("all", json!({}), "allow")]);
        for urls in [json!([evil_one]), json!([good, evil_one]), json!([evil_one, good])] {
            assert_eq!(scene.verdict_text("other", "get", &get(urls.clone())), verdict, "{urls}");
        }
        assert_eq!(scene.verdict_text("other", "get", &get(json!([good, good]))), "allow all");
    }
    let list =
        json!({ "lists": [{ "roles": ["email-address"], "allowed": ["evil@b"], "matchType": "emails" }] });
    let mail = |then| Scene::new(&[("one", list.clone(), then), ("rest", json!({}), "escalate")]);
    let both = json!({ "to": ["good@b", "evil@b"] });
    assert_eq!(mail("deny").verdict_text("other", "mail", &both), "deny one");
    assert_eq!(mail("allow").verdict_text("other", "mail", &both), "escalate rest");
    // An allow rule must cover all values of a role.
    let scene = Scene::new(&[("one", evil, "allow"), ("rest", json!({}), "escalate")]);
    assert_eq!(scene.verdict_text("other", "get", &get(json!([evil_one, good]))), "escalate rest");
}

#[test]
fn folder_with_a_denied_path_inside_cannot_be_moved() {
    let within = |then| {
        let secret = json!({ "paths": { "roles": ["read-path"], "within": "/d/a/secret" } });
        Scene::new(&[("secret", secret, then), ("all", json!({}), "allow")])
    };
    let moved = |scene: &Scene, from: &str| {
        scene.verdict_text("filesystem", "move", &json!({ "source": from, "destination": "/d/b" }))
    };
    for from in ["/d", "/d/a", "/d/a/secret", "/d/a/secret/s.txt"] {
        assert_eq!(moved(&within("deny"), from), "deny secret", "{from}");
        assert_eq!(moved(&within("escalate"), from), "escalate secret", "{from}");
    }
    for from in ["/d/a/other", "/d/c"] {
        assert_eq!(moved(&within("deny"), from), "allow all", "{from}");
    }
    // Reading a folder does not affect its contents.
    assert_eq!(within("deny").verdict_text("filesystem", "read", &json!({ "path": "/d/a" })), "allow all");
}

#[test]
fn folder_with_a_denied_path_inside_cannot_be_searched() {
    let within = |roles: &str, then| {
        let secret = json!({ "paths": { "roles": [roles], "within": "/d/a/secret" } });
        Scene::new(&[("secret", secret, then), ("all", json!({}), "allow")])
    };
    for folder in ["/d", "/d/a", "/d/a/secret", "/d/a/secret/below"] {
        for (tool, more) in [("search", json!({ "pattern": "x" })), ("list", json!({ "recursive": true }))] {
            let mut arguments = more;
            arguments["path"] = json!(folder);
            let verdict = |roles, then| within(roles, then).verdict_text("filesystem", tool, &arguments);
            assert_eq!(verdict("read-path", "deny"), "deny secret", "{arguments}");
            assert_eq!(verdict("read-path", "escalate"), "escalate secret", "{arguments}");
            assert_eq!(verdict("write-path", "deny"), "allow all", "{arguments}");
        }
    }
    for (tool, arguments) in [
        ("search", json!({ "path": "/d/b", "pattern": "x" })),
        ("list", json!({ "path": "/d/a", "recursive": false })),
    ] {
        assert_eq!(
            within("read-path", "deny").verdict_text("filesystem", tool, &arguments),
            "allow all",
            "{arguments}"
        );
    }
}

#[test]
fn folder_with_a_listed_path_inside_is_covered_by_rules_that_refuse() {
    let listed = |roles: &[&str], then| {
        let secret =
            json!({ "lists": [{ "roles": roles, "allowed": ["/d/a/secret"], "matchType": "identifiers" }] });
        Scene::new(&[("secret", secret, then), ("all", json!({}), "allow")])
    };
    for folder in ["/d", "/d/a"] {
        let search = json!({ "path": folder, "pattern": "x" });
        let list = |is_recursive: bool| json!({ "path": folder, "recursive": is_recursive });
        for (then, expected) in [("deny", "deny secret"), ("escalate", "escalate secret")] {
            let verdict = |tool: &str, arguments: &Value| {
                listed(&["read-path"], then).verdict_text("filesystem", tool, arguments)
            };
            assert_eq!(verdict("search", &search), expected);
            assert_eq!(verdict("list", &list(true)), expected);
            assert_eq!(verdict("list", &list(false)), "allow all");
            assert_eq!(verdict("read", &json!({ "path": folder })), "allow all");
            assert_eq!(verdict("search", &json!({ "path": "/d/b", "pattern": "x" })), "allow all");
        }
        let moved = json!({ "source": folder, "destination": "/e" });
        let verdict = listed(&["delete-path"], "deny").verdict_text("filesystem", "move", &moved);
        assert_eq!(verdict, "deny secret");
    }
    // A rule that allows listed paths does not allow the folder around them.
    let allowed =
        json!({ "lists": [{ "roles": ["read-path"], "allowed": ["/d/a"], "matchType": "identifiers" }] });
    let scene = Scene::new(&[("listed", allowed, "allow")]);
    let search =
        |folder: &str| scene.verdict_text("filesystem", "search", &json!({ "path": folder, "pattern": "x" }));
    assert_eq!((search("/d/a"), search("/d")), ("allow listed".to_owned(), "deny default-deny".to_owned()));
}

#[test]
fn host_is_found_in_every_spelling() {
    let pairs = [
        ("b\u{fc}cher.de", "https://xn--bcher-kva.de/"),
        ("*.b\u{fc}cher.de", "https://a.b\u{fc}cher.de/"),
        ("EVIL.example.", "https://evil.example/"),
        ("evil.example/", "https://evil.example/x"),
        ("[::ffff:102:304]", "http://[::ffff:1.2.3.4]/"),
        ("::1", "http://[0:0:0:0:0:0:0:1]/"),
        ("127.1", "http://127.0.0.1/"),
    ];
    for (pattern, url) in pairs {
        let rules = [("evil", domains("fetch-url", &[pattern]), "deny"), ("all", json!({}), "allow")];
        assert_eq!(
            Scene::new(&rules).verdict_text("other", "get", &json!({ "url": url })),
            "deny evil",
            "{pattern}"
        );
        let rules = [("good", domains("fetch-url", &[pattern]), "allow")];
        assert_eq!(
            Scene::new(&rules).verdict_text("other", "get", &json!({ "url": url })),
            "allow good",
            "{pattern}"
        );
    }
}

#[test]
fn a_repository_that_is_denied_is_denied_in_every_spelling() {
    let repository = domains("git-remote-url", &["github.com/Evil/Repo"]);
    let verdict = |then: &str, path: &str| {
        let rules = [("one", repository.clone(), then), ("all", json!({}), "allow")];
        Scene::new(&rules).verdict_text("other", "push", &push(&format!("https://github.com/{path}")))
    };
    for path in ["Evil/Repo", "evil/repo.git", "Evil//Repo", "Evil/./Repo/", "Evil/%52epo"] {
        assert_eq!(verdict("deny", path), "deny one", "{path}");
    }
    assert_eq!(verdict("deny", "evil/repository"), "allow all");
    // Allowing one spelling does not allow the others.
    let only =
        Scene::new(&[("rest", json!({ "roles": ["read-path"] }), "allow"), ("one", repository, "allow")]);
    let verdict_text =
        |path: &str| only.verdict_text("other", "push", &push(&format!("https://github.com/{path}")));
    assert_eq!(verdict_text("Evil/Repo"), "allow rest+one");
    assert_eq!(verdict_text("evil/repo"), "deny default-deny");
}

#[test]
fn names_on_a_list_that_denies_are_found_in_any_case_and_in_any_shape() {
    let owners = |then| {
        let list = json!({ "lists": [{ "roles": ["github-owner"], "allowed": ["EvilCorp"], "matchType": "identifiers" }] });
        Scene::new(&[
            ("one", list, then),
            ("all", json!({ "roles": ["github-repo"] }), "allow"),
            ("rest", json!({}), "escalate"),
        ])
    };
    let verdict_text = |scene: &Scene, owner: &str| {
        scene.verdict_text("other", "repo", &json!({ "owner": owner, "repo": "r" }))
    };
    assert_eq!(verdict_text(&owners("deny"), "evilcorp"), "deny one");
    assert_eq!(verdict_text(&owners("deny"), "EvilCorp"), "deny one");
    assert_eq!(verdict_text(&owners("deny"), "goodcorp"), "escalate rest");
    assert_eq!(verdict_text(&owners("allow"), "evilcorp"), "escalate rest");

    let list =
        json!({ "lists": [{ "roles": ["email-address"], "allowed": ["evil@b"], "matchType": "emails" }] });
    let mail = Scene::new(&[("one", list, "deny"), ("all", json!({}), "allow")]);
    for to in [json!("evil@b"), json!(["evil@b"]), json!([["evil@b"], "evil@b"]), json!({ "to": "evil@b" })] {
        assert_eq!(mail.verdict_text("other", "mail", &json!({ "to": to })), "deny one", "{to}");
    }
    assert_eq!(mail.verdict_text("other", "mail", &json!({ "to": "good@b" })), "allow all");
}

#[test]
fn text_that_is_no_host_matches_only_its_spelling() {
    let odd = [
        "999.1.1.1",
        "localhost ",
        "localhost\u{3002}",
        "\u{24db}ocalhost",
        "user@localhost",
        "evil.net#.x.com",
        "evil.net\\.x.com",
        "a:1",
        "",
    ];
    let any = Scene::new(&[("any", domains("proxy-domain", &["*", "*.x.com"]), "allow")]);
    let none =
        Scene::new(&[("any", domains("proxy-domain", &["y.com", "*"]), "deny"), ("all", json!({}), "allow")]);
    for host in odd {
        assert_eq!(
            any.verdict_text("other", "open", &json!({ "host": host })),
            "deny default-deny",
            "{host:?}"
        );
        assert_eq!(none.verdict_text("other", "open", &json!({ "host": host })), "deny any", "{host:?}");
    }
    assert_eq!(any.verdict_text("other", "open", &json!({ "host": "a.x.com" })), "allow any");
}

#[test]
fn unmatchable_pattern_is_rejected_in_asking_and_denying_rules() {
    let patterns = [
        ("https://evil.example", "is an address; write only its host"),
        ("evil.example:443", "has a port; remove it, because rules apply to every port"),
        ("[::1]:443", "has a port; remove it, because rules apply to every port"),
        ("evil*.example", "unsupported `*` in `evil*.example`"),
        ("*.*.evil.example", "unsupported `*` in `*.*.evil.example`"),
        ("*.evil.example/o/r", "names a repository on more than one host"),
        (" evil.example", "is not a host"),
        ("*.", "is not a host"),
        ("", "is not a host"),
    ];
    let read = |conditions: &Value, then: &str| {
        let file = json!({ "rules": [{ "name": "r", "if": conditions, "then": then }] }).to_string();
        Policy::from_json(&file, "policy.json", &spelled, &DynamicLists::default())
    };
    for (pattern, problem) in patterns {
        let list =
            json!({ "lists": [{ "roles": ["proxy-domain"], "allowed": [pattern], "matchType": "domains" }] });
        let both = [(domains("fetch-url", &[pattern]), "if.domains.allowed"), (list, "if.lists[0].allowed")];
        for (conditions, expected) in both {
            for then in ["deny", "escalate"] {
                match read(&conditions, then) {
                    Err(LoadError::Rule { rule, field, message, .. }) => {
                        assert_eq!((rule.as_str(), field.as_str()), ("r", expected), "{pattern}");
                        assert!(message.contains(problem), "{pattern}: {message}");
                    }
                    other => panic!("{pattern}: {other:?}"),
                }
            }
            // In an allow rule, such a pattern is harmless, because it matches nothing.
            assert!(read(&conditions, "allow").is_ok(), "{pattern}");
        }
    }
    load(
        &json!({ "rules": [{ "name": "r", "if": domains("fetch-url", &["*", "a.org", "*.a.org", "a.org/x/y"]), "then": "deny" }] }),
        &DynamicLists::default(),
    );
}

#[test]
fn crafted_address_has_no_target_and_its_plain_twin_has() {
    let nowhere = [
        "ssh://github.com?@evil.example/x",
        "ssh://github.com#@evil.example/x",
        "ssh://evil.example%2f@github.com/x",
        "ssh://user%40evil.example%2f:22@github.com/x",
        "git://evil.example%2f@github.com/x",
        "https://evil.example\\@github.com/acme/app",
        "https://git%68ub.com/acme/app",
        "https://git\thub.com/acme/app",
        "ssh://git\u{a0}hub.com/x",
        // The URL parser strips the trailing character, but other parsers may keep it.
        "https://github.com ",
        "https://github.com\u{1}",
        "https://github.com\n",
        "ssh://github.com\\.evil.example/x",
        "git://github.com#.evil.example/x",
        "ssh://git%68ub.com/x",
    ];
    for address in nowhere {
        assert_eq!(Destination::parse(Role::GitRemoteUrl, address).domain(), None, "{address}");
    }
    let somewhere = [
        ("https://evil.example?@github.com/acme/app", "evil.example"),
        ("https://evil.example#@github.com/acme/app", "evil.example"),
        ("https://ann%40corp.example@github.com/acme/app", "github.com/acme/app"),
        ("ssh://git@github.com:22/acme/app.git", "github.com/acme/app"),
        ("git://github.com/acme/app", "github.com/acme/app"),
    ];
    for (address, expected) in somewhere {
        assert_eq!(Destination::parse(Role::GitRemoteUrl, address).domain(), Some(expected), "{address}");
    }
}

#[test]
fn explanation_reports_uncertain_matches() {
    let rules = [
        ("good", domains("fetch-url", &["good.example"]), "allow"),
        ("asks", domains("fetch-url", &["evil.example"]), "escalate"),
        ("never", domains("fetch-url", &["worse.example"]), "deny"),
        ("all", json!({}), "allow"),
    ];
    let explain = |rules: &[(&str, Value, &str)]| {
        let scene = Scene::new(rules);
        let call = scene.call("other", "get", &json!({ "url": "ftp://evil.example/" })).unwrap();
        let step = scene.explain(&call).steps.remove(0);
        let StepBasis::Rule { name, .. } = step.basis else { panic!("{:?}", step.basis) };
        let passed: Vec<(String, Mismatch)> =
            step.skipped_rules.iter().map(|(rule, miss)| (rule.to_string(), *miss)).collect();
        (name.to_string(), passed)
    };
    let elsewhere = ("good".to_owned(), Mismatch::NotInDomains);
    let in_doubt = ("asks".to_owned(), Mismatch::Uncertain);
    assert_eq!(explain(&rules), ("never".to_owned(), vec![elsewhere.clone(), in_doubt]));
    let without = [rules[0].clone(), rules[1].clone(), rules[3].clone()];
    assert_eq!(explain(&without), ("asks".to_owned(), vec![elsewhere]));
}
