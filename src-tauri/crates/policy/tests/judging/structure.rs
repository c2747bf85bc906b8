//! Tests the built-in decisions that no rule can change. Each test pairs a denied call with a similar allowed one.

use crate::scene::{Scene, fields, grant, path, severity};
use ironcurtain_paths::protected::IN_PROJECT;
use ironcurtain_policy::{
    Access, AllowedHosts, Annotations, Fact, GrantKind, HostGrant, ProtectedPaths, ReadOnlyPath,
    ReadOnlyReason, Verdict,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn protected_path_is_refused_regardless_of_grants_and_answers() {
    let mut scene = Scene::allowing_all();
    scene.protected = [path("/home/ann/.ssh")].into_iter().collect();
    scene.grants = vec![grant("g", "/", GrantKind::Tree, &[Access::Read, Access::Write, Access::Delete])];
    for (tool, arguments) in [
        ("read", json!({ "path": "/home/ann/.ssh/id" })),
        ("read", json!({ "path": "/home/ann/.ssh" })),
        ("many", json!({ "paths": ["/a", "/home/ann/.ssh/id"] })),
        ("move", json!({ "source": "/a", "destination": "/home/ann/.ssh/id" })),
    ] {
        assert_eq!(
            scene.verdict_text("filesystem", tool, &arguments),
            "deny structural-protected-path",
            "{arguments}"
        );
    }
    assert_eq!(
        scene.verdict_text("filesystem", "read", &json!({ "path": "/home/ann/.sshd" })),
        "allow grant"
    );
}

#[test]
fn recursion_above_a_protected_path_is_refused() {
    let mut scene = Scene::allowing_all();
    scene.protected = [path("/home/ann/.ssh")].into_iter().collect();
    for (tool, arguments) in [
        ("search", json!({ "path": "/home/ann", "pattern": "id" })),
        ("search", json!({ "path": "/", "pattern": "id" })),
        ("list", json!({ "path": "/home/ann", "recursive": true })),
        ("list", json!({ "path": "/home", "recursive": 1 })),
        ("delete", json!({ "path": "/home" })),
        ("move", json!({ "source": "/home/ann", "destination": "/a" })),
    ] {
        assert_eq!(
            scene.verdict_text("filesystem", tool, &arguments),
            "deny structural-protected-path",
            "{arguments}"
        );
    }
    for (tool, arguments) in [
        ("read", json!({ "path": "/home/ann" })),
        ("search", json!({ "path": "/home/bob", "pattern": "id" })),
        ("list", json!({ "path": "/home/bob", "recursive": true })),
        ("list", json!({ "path": "/home/ann", "recursive": false })),
        ("list", json!({ "path": "/home/ann" })),
    ] {
        assert_eq!(scene.verdict_text("filesystem", tool, &arguments), "allow all", "{arguments}");
    }
}

#[test]
fn read_only_path_can_be_read_but_not_changed_or_removed() {
    let mut scene = Scene::allowing_all();
    let kept = [
        (path("/w/app/target/debug"), ReadOnlyReason::OurPrograms),
        (path("/home/ann/.cursor/mcp.json"), ReadOnlyReason::ClientConfiguration),
    ];
    let kept = kept.map(|(path, reason)| ReadOnlyPath { path, reason });
    scene.protected = ProtectedPaths::default().with_read_only(kept.into());
    scene.grants = vec![grant("g", "/", GrantKind::Tree, &[Access::Read, Access::Write, Access::Delete])];
    let denied = |tool, arguments: Value| match scene.judge("filesystem", tool, &arguments) {
        Verdict::Deny(denial) => format!("{}: {}", denial.rule, denial.reason),
        other @ (Verdict::Allow(_) | Verdict::Escalate(_)) => panic!("{other:?}"),
    };
    let programs = "structural-protected-path: argument `path`: `/w/app/target/debug/ironcurtain-sandbox` cannot be changed by agents (`/w/app/target/debug`): it contains IronCurtain's own programs, which run outside every sandbox";
    assert_eq!(denied("write", json!({ "path": "/w/app/target/debug/ironcurtain-sandbox" })), programs);
    assert!(denied("delete", json!({ "path": "/w/app" })).contains("(`/w/app/target/debug`)"));
    assert!(denied("move", json!({ "source": "/w/app/target", "destination": "/a" })).contains("`source`"));
    let client = denied("write", json!({ "path": "/home/ann/.cursor/mcp.json" }));
    assert!(client.contains("cannot be changed by agents: it names programs that agent clients start"));
    for (tool, arguments) in [
        ("read", json!({ "path": "/w/app/target/debug/ironcurtain-sandbox" })),
        ("search", json!({ "path": "/w/app", "pattern": "x" })),
        ("write", json!({ "path": "/w/app/target/x" })),
        ("write", json!({ "path": "/w/app" })),
        ("delete", json!({ "path": "/w/app/target/debugger" })),
        ("read", json!({ "path": "/home/ann/.cursor/mcp.json" })),
    ] {
        assert_eq!(scene.verdict_text("filesystem", tool, &arguments), "allow grant", "{tool} {arguments}");
    }
}

#[test]
fn writing_autostart_files_in_a_project_asks_despite_rules_and_grants() {
    let mut scene = Scene::allowing_all();
    let asks = "escalate structural-starts-programs";
    let write = |scene: &Scene, at: &str| scene.verdict_text("filesystem", "write", &json!({ "path": at }));
    assert_eq!(write(&scene, "/w/app/.mcp.json"), "allow all");
    scene.protected = ProtectedPaths::default().with_autostart_files(IN_PROJECT);
    for name in [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"] {
        assert_eq!(write(&scene, &format!("/w/app/{name}")), asks, "{name}");
    }
    let verdict = scene.judge("filesystem", "write", &json!({ "path": "/w/app/.cursor/mcp.json" }));
    let Verdict::Escalate(escalation) = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        &*escalation.by.reason,
        "`/w/app/.cursor/mcp.json` runs outside the sandbox when you open this folder in Cursor"
    );
    scene.grants = vec![grant("g", "/w", GrantKind::Tree, &[Access::Read, Access::Write])];
    assert_eq!(write(&scene, "/w/app/.mcp.json"), asks);
    for other in
        ["/w/app/mcp.json", "/w/app/a.mcp.json", "/w/x.vscode/mcp.json", "/w/.mcp.json/x", "/box/.mcp.json"]
    {
        assert!(write(&scene, other).starts_with("allow"), "{other}");
    }
    assert_eq!(
        scene.verdict_text("filesystem", "read", &json!({ "path": "/w/app/.mcp.json" })),
        "allow grant"
    );
    // Moving a folder may create an autostart file inside it.
    let moved = |to: &str| {
        let call = json!({ "source": "/box/x", "destination": to });
        scene.verdict_text("filesystem", "move", &call)
    };
    assert_eq!(moved("/w/app/.cursor"), asks);
    assert!(
        moved("/w/app/cursor").starts_with("allow") && write(&scene, "/w/app/.cursor").starts_with("allow")
    );
    scene.approved = escalation.values.to_vec();
    assert!(write(&scene, "/w/app/.cursor/mcp.json").starts_with("allow"));
    scene.policy = crate::scene::policy(&[("no", json!({}), "deny")]);
    assert_eq!(write(&scene, "/w/app/.mcp.json"), "deny no");
    (scene.policy, scene.grants) = (crate::scene::policy(&[]), Vec::new());
    assert_eq!(write(&scene, "/w/app/.mcp.json"), "deny default-deny");
}

#[test]
fn a_sandbox_in_a_protected_folder_is_open_and_its_neighbours_are_not() {
    let mut scene = Scene::new(&[]);
    scene.sandbox = Some(path("/state/sessions/1/sandbox"));
    scene.protected = [path("/state"), path("/state/sessions/1/sandbox/.keys")].into_iter().collect();
    let read = |at: &str| scene.verdict_text("filesystem", "read", &json!({ "path": at }));
    assert_eq!(read("/state/sessions/1/sandbox/a"), "allow structural-sandbox-allow");
    assert_eq!(read("/state/sessions/1/sandbox/.keys/k"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/1/session.log"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/2/sandbox/a"), "deny structural-protected-path");
    assert_eq!(read("/state/sessions/1/sandbox-twin"), "deny structural-protected-path");
}

#[test]
fn listing_allowed_folders_is_allowed_only_on_the_filesystem_server() {
    let mut scene = Scene::new(&[]);
    let tool = json!({ "toolName": "list_allowed_directories", "args": { "x": ["none"] } });
    let servers = json!({ "filesystem": { "tools": [tool] }, "other": { "tools": [tool] } });
    let file = json!({ "servers": servers }).to_string();
    scene.annotations = Annotations::from_json(&file, "annotations.json").unwrap();
    let ask = |server: &str, arguments| scene.verdict_text(server, "list_allowed_directories", &arguments);
    assert_eq!(ask("filesystem", json!({})), "allow structural-introspection-allow");
    assert_eq!(ask("other", json!({})), "deny default-deny");
    assert_eq!(ask("filesystem", json!({ "x": 1 })), "deny default-deny");
}

#[test]
fn sandbox_decides_only_roles_entirely_inside_it_on_its_servers() {
    let mut scene = Scene::new(&[]);
    let verdict =
        |scene: &Scene, tool: &str, arguments: Value| scene.verdict_text("filesystem", tool, &arguments);
    assert_eq!(verdict(&scene, "read", json!({ "path": "/box/a" })), "allow structural-sandbox-allow");
    assert_eq!(verdict(&scene, "read", json!({ "path": "/boxes/a" })), "deny default-deny");
    assert_eq!(verdict(&scene, "many", json!({ "paths": ["/box/a", "/b"] })), "deny default-deny");
    assert_eq!(
        verdict(&scene, "move", json!({ "source": "/box/a", "destination": "/b" })),
        "deny default-deny"
    );
    assert_eq!(scene.verdict_text("other", "read", &json!({ "path": "/box/a" })), "deny default-deny");
    scene.grants = vec![grant("g", "/b", GrantKind::File, &[Access::Read])];
    let mixed = verdict(&scene, "many", json!({ "paths": ["/box/a", "/b"] }));
    assert_eq!(mixed, "allow structural-sandbox-allow+grant");
}

#[test]
fn path_in_the_sandbox_is_judged_with_the_other_values_of_its_role() {
    let scene = Scene::new(&[("b", json!({ "paths": { "roles": ["read-path"], "within": "/b" } }), "allow")]);
    let verdict = |paths: Value| scene.verdict_text("filesystem", "many", &json!({ "paths": paths }));
    assert_eq!(verdict(json!(["/box/a", "/b/x"])), "deny default-deny");
    assert_eq!(verdict(json!(["/box/a"])), "allow structural-sandbox-allow");
    assert_eq!(verdict(json!(["/b/x"])), "allow b");
}

#[test]
fn gate_and_rule_ask_about_a_value_once() {
    let mut scene = Scene::new(&[("ask", json!({}), "escalate")]);
    scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec![])]));
    let Verdict::Escalate(escalation) = scene.judge("other", "get", &json!({ "url": "https://a.org/" }))
    else {
        panic!()
    };
    let rules: Vec<&str> = escalation.values.iter().map(|asked| asked.by.rule.as_ref()).collect();
    assert_eq!(rules, ["structural-domain-escalate"]);
}

#[test]
fn address_outside_the_gate_asks_unless_a_rule_denies() {
    let allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["ok.org".to_owned()])]));
    let evil = json!({ "url": "https://evil.net/x" });
    let with = |rules: &[(&str, Value, &str)]| {
        let mut scene = Scene::new(rules);
        scene.allowed_hosts = allowed_hosts.clone();
        scene
    };
    let open = with(&[("all", json!({}), "allow")]);
    assert_eq!(open.verdict_text("other", "get", &evil), "escalate structural-domain-escalate");
    assert_eq!(open.verdict_text("other", "get", &json!({ "url": "https://ok.org/x" })), "allow all");
    assert_eq!(
        open.verdict_text("other", "get", &json!({ "url": "not a url" })),
        "escalate structural-domain-escalate"
    );
    let shut = with(&[("no", json!({ "roles": ["fetch-url"] }), "deny")]);
    assert_eq!(shut.verdict_text("other", "get", &evil), "deny no");
    let save = json!({ "url": "https://evil.net/x", "path": "/a" });
    assert_eq!(
        with(&[("no", json!({ "roles": ["write-path"] }), "deny")]).verdict_text("other", "save", &save),
        "deny no"
    );
    let mut uncovered = with(&[]);
    assert_eq!(uncovered.verdict_text("other", "get", &evil), "escalate structural-domain-escalate");
    let Verdict::Escalate(escalation) = uncovered.judge("other", "get", &evil) else { panic!() };
    uncovered.approved = escalation.values;
    assert_eq!(uncovered.verdict_text("other", "get", &evil), "allow structural-domain-escalate");
    let other = json!({ "url": "https://worse.net/x" });
    assert_eq!(uncovered.verdict_text("other", "get", &other), "escalate structural-domain-escalate");
    assert_eq!(uncovered.verdict_text("other", "save", &save), "deny default-deny");
}

#[test]
fn granted_host_needs_no_approval_on_its_port_unless_a_rule_denies() {
    let get = |url: &str| json!({ "url": url });
    let granting = |rules: &[(&str, Value, &str)], port: u16| {
        let mut scene = Scene::new(rules);
        scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec![])]));
        scene.hosts = vec![HostGrant { id: "g".into(), created_ms: 1000, host: "a.org".into(), port }];
        scene
    };
    let asks = [("ask", json!({}), "escalate")];
    let scene = granting(&asks, 443);
    assert_eq!(scene.verdict_text("other", "get", &get("https://A.org./x")), "allow grant");
    for url in ["http://a.org/x", "https://a.org:8443/", "https://b.a.org/", "https://a.org.evil.net/"] {
        let verdict = scene.verdict_text("other", "get", &get(url));
        assert_eq!(verdict, "escalate structural-domain-escalate", "{url}");
    }
    let shut = granting(&[("no", json!({ "roles": ["fetch-url"] }), "deny")], 443);
    assert_eq!(shut.verdict_text("other", "get", &get("https://a.org/x")), "deny no");
    // For a repository, the grant covers only the connection to the host.
    let push = |scene: &Scene| {
        let arguments = fields(&json!({ "path": "/r", "remote": "git@a.org:o/r" }));
        let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
        let remotes = Fact::Remotes(vec!["git@a.org:o/r".into()]);
        let call = plan.resolve(vec![Fact::Path(path("/r")), remotes]).unwrap();
        let Verdict::Escalate(escalation) = scene.judge_call(&call) else { panic!() };
        escalation.values.iter().map(|asked| asked.by.rule.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(push(&granting(&asks, 443)), ["structural-domain-escalate", "ask"]);
    assert_eq!(push(&granting(&asks, 22)), ["ask", "ask"]);
}

#[test]
fn a_host_with_a_port_is_open_on_that_port_alone() {
    let mut scene = Scene::allowing_all();
    let hosts = ["a.org:8443", "*.b.org:80", "[::1]:3000", "localhost:3000", "c.org"].map(str::to_owned);
    scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), hosts.into())]));
    let verdict = |url: &str| scene.verdict_text("other", "get", &json!({ "url": url }));
    for url in [
        "https://a.org:8443/",
        "http://x.b.org/",
        "http://[::1]:3000/",
        "http://localhost:3000/x",
        "http://c.org/",
    ] {
        assert_eq!(verdict(url), "allow all", "{url}");
    }
    for url in ["https://a.org/", "https://x.b.org/", "http://localhost/", "http://[::1]/"] {
        assert_eq!(verdict(url), "escalate structural-domain-escalate", "{url}");
    }
}

#[test]
fn remote_without_a_port_uses_the_port_of_its_scheme() {
    let mut scene = Scene::allowing_all();
    let hosts = ["ssh.org:22", "git.org:9418", "web.org:443"].map(str::to_owned);
    scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), hosts.into())]));
    let verdict = |url: &str| scene.verdict_text("other", "push", &json!({ "path": "/r", "remote": url }));
    // The last host ends in another script's full stop, which git would escape before passing it to ssh.
    let known = [
        "ssh://git@ssh.org/a",
        "git@ssh.org:a",
        "git://git.org/a",
        "https://web.org/a",
        "https://web.org\u{3002}/a",
    ];
    for url in known {
        assert_eq!(verdict(url), "allow all", "{url}");
    }
    for url in [
        "git://ssh.org/a",
        "ssh://git@git.org/a",
        "ssh://git@web.org/a",
        "ssh://git@ssh.org:443/a",
        "ssh://git@ssh.org\u{3002}/a",
    ] {
        assert_eq!(verdict(url), "escalate structural-domain-escalate", "{url}");
    }
}

#[test]
fn unknown_remote_does_not_bypass_the_gate() {
    let mut scene = Scene::new(&[("all", json!({}), "allow")]);
    let verdict = |scene: &Scene, remote: Option<&str>| {
        let arguments = fields(&json!({ "path": "/r", "remote": remote }));
        let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
        let call = plan.resolve(vec![Fact::Path(path("/r")), Fact::Remotes(vec![])]).unwrap();
        severity(&scene.judge_call(&call))
    };
    for remote in [Some("nowhere"), Some(""), None] {
        assert_eq!(verdict(&scene, remote), 0, "{remote:?} without a gate");
    }
    scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["*".to_owned()])]));
    for remote in [Some("nowhere"), Some(""), None] {
        assert_eq!(verdict(&scene, remote), 1, "{remote:?}");
    }
}

#[test]
fn gate_does_not_ask_about_unknown_addresses_without_a_rule() {
    let verdict = |rules: &[(&str, Value, &str)], hosts: &[&str], url: &str| {
        let mut scene = Scene::new(rules);
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), hosts)]));
        scene.verdict_text("other", "get", &json!({ "url": url }))
    };
    let (asked, refused) = ("escalate structural-domain-escalate", "deny default-deny");
    for url in ["ftp://ok.org/x", "gopher://ok.org"] {
        assert_eq!(verdict(&[], &["ok.org"], url), refused, "{url}");
        assert_eq!(verdict(&[("all", json!({}), "allow")], &["ok.org"], url), asked, "{url}");
    }
    for url in ["ftp://a.org/x", "http://", "nothing"] {
        assert_eq!(verdict(&[], &["ok.org"], url), asked, "{url}");
        assert_eq!(verdict(&[], &["*"], url), refused, "{url}");
    }
    assert_eq!(verdict(&[], &["ok.org"], "https://a.org/"), asked);
    assert_eq!(verdict(&[], &["ok.org"], "http://localhost/"), asked);
    assert_eq!(verdict(&[], &["*"], "http://localhost/"), refused);
    assert_eq!(verdict(&[], &["*"], "http://1.2.3.4/"), asked);
}

#[test]
fn gate_does_not_ask_about_unknown_addresses_if_another_value_is_denied() {
    let remotes = json!({ "roles": ["git-remote-url"] });
    let verdict = |then: &str, facts: &[&str]| {
        let mut scene = Scene::new(&[("remotes", remotes.clone(), then)]);
        scene.allowed_hosts =
            AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["ok.org".to_owned()])]));
        let arguments = fields(&json!({ "path": "/r", "remote": "https://ok.org/x" }));
        let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
        let remotes = facts.iter().map(|text| (*text).to_owned()).collect();
        let call = plan.resolve(vec![Fact::Path(path("/r")), Fact::Remotes(remotes)]).unwrap();
        scene.verdict_text_of(&call)
    };
    for then in ["allow", "escalate"] {
        // No rule covers the repository, and approval of an unknown address would not change that.
        assert_eq!(verdict(then, &["(not known)"]), "deny default-deny", "{then}");
        assert_eq!(verdict(then, &["https://ok.org/x"]), "deny default-deny", "{then}");
        assert_eq!(verdict(then, &["https://evil.net/x"]), "escalate structural-domain-escalate", "{then}");
    }
}

#[test]
fn empty_address_does_not_bypass_the_gate_without_git() {
    let mut scene = Scene::new(&[("all", json!({}), "allow")]);
    let push = |scene: &Scene, remote: &Value| {
        severity(&scene.judge("other", "push", &json!({ "path": "/r", "remote": remote })))
    };
    assert_eq!(push(&scene, &json!("")), 0);
    scene.allowed_hosts = AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["*".to_owned()])]));
    assert_eq!(push(&scene, &json!("")), 1);
    assert_eq!(push(&scene, &Value::Null), 0);
}

#[test]
fn gate_asks_about_remotes_from_git_if_a_rule_covers_them() {
    let path_only = [("path", json!({ "roles": ["read-path"] }), "allow")];
    let verdict = |rules: &[(&str, Value, &str)], remote: &Value| {
        let mut scene = Scene::new(rules);
        scene.allowed_hosts =
            AllowedHosts::new(&BTreeMap::from([("other".to_owned(), vec!["ok.org".to_owned()])]));
        let arguments = fields(&json!({ "path": "/r", "remote": remote }));
        let plan = scene.annotations.plan("other", "push", &arguments).unwrap();
        let facts = vec![Fact::Path(path("/r")), Fact::Remotes(vec!["https://evil.net/x".to_owned()])];
        severity(&scene.judge_call(&plan.resolve(facts).unwrap()))
    };
    for absent in [Value::Null, json!("")] {
        assert_eq!(verdict(&[("all", json!({}), "allow")], &absent), 1);
        assert_eq!(verdict(&path_only, &absent), 2);
    }
    assert_eq!(verdict(&path_only, &json!("origin")), 1);
}
