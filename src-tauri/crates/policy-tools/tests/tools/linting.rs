//! Tests the findings about valid but questionable policies.

use crate::scene::{Scene, path, policy, spelled};
use ironcurtain_policy::{Annotations, DynamicLists, Policy, ProtectedPaths, defaults};
use ironcurtain_policy_tools::lint::lint;
use serde_json::{Value, json};

/// Returns the findings as text: those about rules if `about_rules` is `true`, otherwise those about tools.
fn findings(rules: &[(&str, Value, &str)], about_rules: bool) -> Vec<String> {
    let scene = Scene::new(rules);
    lint(&scene.policy, &scene.annotations, &protected(), &path("/home/ann"))
        .iter()
        .filter(|finding| finding.rule.is_some() == about_rules)
        .map(ToString::to_string)
        .collect()
}

fn protected() -> ProtectedPaths {
    [path("/home/ann/.ssh")].into_iter().collect()
}

/// Returns all findings about the tools on the server `s`.
fn about_tools(tools: &Value, rules: &[(&str, Value, &str)]) -> Vec<String> {
    let named = |(name, args): (&String, &Value)| json!({ "toolName": name, "args": args });
    let tools: Vec<Value> = tools.as_object().unwrap().iter().map(named).collect();
    let file = json!({ "servers": { "s": { "tools": tools } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let found = lint(&policy(rules), &annotations, &protected(), &path("/home/ann"));
    found.iter().map(ToString::to_string).collect()
}

fn about_rules(rules: &[(&str, Value, &str)]) -> Vec<String> {
    findings(rules, true)
}

fn within(role: &str, at: &str) -> Value {
    json!({ "paths": { "roles": [role], "within": at } })
}

#[test]
fn a_shadowed_rule_is_found() {
    let wide = ("wide", within("read-path", "/a"), "allow");
    let shadowed = "rule `late`, field `if`: has no effect: everything it covers is already";
    assert_eq!(
        about_rules(&[wide.clone(), ("late", within("read-path", "/a/b"), "deny")]),
        [format!("{shadowed} decided differently by `wide`")]
    );
    assert_eq!(
        about_rules(&[wide.clone(), ("late", within("read-path", "/a"), "allow")]),
        [format!("{shadowed} decided by `wide`")]
    );
    for open in [within("read-path", "/ab"), within("write-path", "/a"), json!({ "roles": ["read-path"] })] {
        assert_eq!(about_rules(&[wide.clone(), ("late", open, "deny")]), [""; 0]);
    }
    // The later rule has an effect: it also denies addresses that cannot be parsed.
    let host = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["d.org"] } });
    assert_eq!(about_rules(&[("wide", host.clone(), "allow"), ("late", host.clone(), "deny")]), [""; 0]);
    assert_eq!(about_rules(&[("wide", host.clone(), "deny"), ("late", host, "allow")]).len(), 1);
    let two = [
        ("reads", json!({ "roles": ["read-path"] }), "escalate"),
        ("writes", json!({ "roles": ["write-path"] }), "escalate"),
        ("late", json!({ "roles": ["read-path", "write-path"], "server": ["filesystem"] }), "deny"),
    ];
    assert_eq!(about_rules(&two), [format!("{shadowed} decided differently by `reads`, `writes`")]);
    assert_eq!(about_rules(&two[1..]), [""; 0]);
}

#[test]
fn a_host_rule_can_be_shadowed_by_another() {
    let hosts = |allowed: &[&str]| json!({ "domains": { "roles": ["fetch-url"], "allowed": allowed } });
    let is_shadowed = |wide: &[&str], narrow: &[&str]| {
        let found = about_rules(&[("wide", hosts(wide), "deny"), ("late", hosts(narrow), "allow")]);
        found.iter().any(|finding| finding.contains("has no effect"))
    };
    for (wide, narrow) in [
        (&["*.d.org"][..], &["d.org", "a.d.org", "*.b.d.org"][..]),
        (&["*"], &["d.org", "*.e.org"]),
        (&["*"], &["*"]),
        (&["d.org"], &["d.org/a/b"]),
    ] {
        assert!(is_shadowed(wide, narrow), "{wide:?} {narrow:?}");
    }
    for (wide, narrow) in [
        (&["*"][..], &["localhost"][..]),
        (&["d.org", "*.e.org"], &["*"]),
        (&["d.org"], &["*.d.org"]),
        (&["d.org/a/b"], &["d.org"]),
    ] {
        assert!(!is_shadowed(wide, narrow), "{wide:?} {narrow:?}");
    }
}

#[test]
fn a_rule_that_never_matches_is_found() {
    let one = |conditions: Value| about_rules(&[("r", conditions, "deny")]);
    assert_eq!(one(json!({ "tool": [] })), ["rule `r`, field `if.tool`: is empty, so it never matches"]);
    assert_eq!(
        one(json!({ "server": ["nope"] })),
        ["rule `r`, field `if.server`: matches no annotated tool"]
    );
    assert_eq!(one(json!({ "tool": ["nope"] })), ["rule `r`, field `if.tool`: matches no annotated tool"]);
    assert_eq!(
        one(json!({ "tool": ["read"], "roles": ["delete-path"] })),
        ["rule `r`, field `if.roles`: no matching tool has an argument with these roles"]
    );
    // Every call to this tool names a file, and the file is judged instead.
    assert_eq!(
        one(json!({ "tool": ["write"], "roles": ["none"] })),
        ["rule `r`, field `if.roles`: no matching tool has an argument with these roles"]
    );
    let apart = json!({ "roles": ["write-path"], "paths": { "roles": ["read-path"], "within": "/a" } });
    assert_eq!(one(apart), ["rule `r`, field `if`: its conditions have no role in common"]);
    for alive in
        [json!({}), json!({ "tool": ["mail"], "roles": ["email-body"] }), json!({ "tool": ["read"] })]
    {
        assert_eq!(one(alive), [""; 0]);
    }
}

#[test]
fn a_too_broad_allow_rule_is_found_but_not_a_deny_rule() {
    for (at, shown) in [("/", "/"), ("~", "/home/ann"), ("/home", "/home")] {
        let expected = format!(
            "rule `r`, field `if.paths.within`: `{shown}` contains the whole home directory; name a folder in it"
        );
        assert_eq!(about_rules(&[("r", within("read-path", at), "allow")]), [expected]);
        assert_eq!(about_rules(&[("r", within("read-path", at), "deny")]), [""; 0]);
    }
    assert_eq!(about_rules(&[("r", within("read-path", "~/docs"), "allow")]), [""; 0]);
    let any = |then| {
        about_rules(&[("r", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } }), then)])
    };
    assert_eq!(
        any("escalate"),
        ["rule `r`, field `if.domains.allowed`: `*` matches every public host; name the hosts"]
    );
    assert_eq!(any("deny"), [""; 0]);
}

#[test]
fn tools_without_a_rule_are_found() {
    let tools =
        findings(&[("reads", json!({ "roles": ["read-path"], "server": ["filesystem"] }), "allow")], false);
    assert!(tools.contains(
        &"tool `filesystem/move`: denied outside the session folder and granted paths: no rule covers its role `delete-path`".to_owned()
    ));
    assert!(tools.contains(&"tool `other/mail`: always denied: no rule covers it".to_owned()));
    assert!(
        !tools
            .iter()
            .any(|tool| tool.contains("filesystem/read`") || tool.contains("filesystem/list_allowed"))
    );
    assert_eq!(findings(&[("all", json!({}), "escalate")], false), [""; 0]);
}

#[test]
fn every_form_of_allowing_all_paths_or_hosts_is_found() {
    let every = |roles: &str| {
        format!("rule `r`, field `if`: allows every value of {roles}; restrict it by folders, hosts or lists")
    };
    let reads = json!({ "roles": ["read-path"] });
    let hosts = json!({ "tool": ["get", "open", "repo"] });
    assert_eq!(about_rules(&[("r", reads.clone(), "allow")]), [every("`read-path`")]);
    assert_eq!(about_rules(&[("r", hosts, "allow")]), [every("`fetch-url`, `proxy-domain`")]);
    let all = "`read-path`, `write-path`, `delete-path`, `fetch-url`, `git-remote-url`, `proxy-domain`";
    assert_eq!(about_rules(&[("r", json!({}), "allow")]), [every(all)]);
    let asks =
        ("asks", json!({ "roles": ["read-path", "write-path", "delete-path", "proxy-domain"] }), "escalate");
    assert_eq!(about_rules(&[asks, ("r", json!({}), "allow")]), [every("`fetch-url`, `git-remote-url`")]);
    let mails = json!({ "tool": ["mail"] });
    let listed =
        json!({ "lists": [{ "roles": ["read-path"], "allowed": ["/a"], "matchType": "identifiers" }] });
    let kept = [(json!({}), "escalate"), (reads, "deny"), (mails, "allow"), (listed, "allow")];
    for (conditions, then) in kept {
        assert_eq!(about_rules(&[("r", conditions, then)]), [""; 0]);
    }
}

#[test]
fn a_tool_with_optional_resources_is_checked_with_and_without() {
    let guard = json!({ "condition": { "arg": "dry", "equals": true }, "roles": ["none"] });
    let tools = json!({ "t": { "dry": ["none"], "path": { "default": ["write-path"], "when": [guard] } } });
    let asks = ("writes", json!({ "roles": ["write-path"] }), "escalate");
    let dry = ("dry", json!({ "roles": ["none"], "tool": ["t"] }), "allow");
    assert_eq!(about_tools(&tools, &[asks.clone(), dry.clone()]), [""; 0]);
    let denied = "tool `s/t`: denied if it names no file or address: no rule covers that case";
    assert_eq!(about_tools(&tools, &[asks]), [denied]);
    let outside = "tool `s/t`: denied outside the session folder and granted paths: no rule covers its role `write-path`";
    assert_eq!(about_tools(&tools, std::slice::from_ref(&dry)), [outside]);
    let always = json!({ "t": { "path": ["write-path"] } });
    let dead = "rule `dry`, field `if.roles`: no matching tool has an argument with these roles";
    assert_eq!(about_tools(&always, &[dry]), [dead, outside]);
}

#[test]
fn a_tool_with_only_a_dead_rule_is_found() {
    let tools = json!({ "u": { "url": ["fetch-url"] }, "o": { "owner": ["github-owner"] } });
    let none = ("none", json!({ "domains": { "roles": ["fetch-url"], "allowed": [] } }), "allow");
    assert_eq!(
        about_tools(&tools, &[none]),
        [
            "rule `none`, field `if.domains.allowed`: is empty, so it never matches",
            "tool `s/o`: denied: no rule covers its role `github-owner`",
            "tool `s/u`: denied if its server can reach the host, unless granted: no rule covers its role `fetch-url`",
        ]
    );
}

#[test]
fn probable_mistakes_are_found() {
    let one = |conditions: Value, then| about_rules(&[("r", conditions, then)]);
    let unknown = |field: &str, name: &str| {
        format!("rule `r`, field `{field}`: no annotated server or tool is named `{name}`")
    };
    assert_eq!(one(json!({ "tool": ["read", "wirte"] }), "deny"), [unknown("if.tool", "wirte")]);
    assert_eq!(one(json!({ "server": ["other", "nosuch"] }), "deny"), [unknown("if.server", "nosuch")]);
    assert_eq!(
        one(json!({ "server": ["filesystem"], "tool": ["read", "get"] }), "deny"),
        [unknown("if.tool", "get")]
    );
    assert_eq!(
        one(json!({ "server": ["nosuch"], "tool": ["read"] }), "deny"),
        ["rule `r`, field `if.server`: matches no annotated tool"]
    );
    let closed = "rule `r`, field `if.paths.within`: has no effect: `/home/ann/.ssh/keys` is protected, and everything in it is always denied";
    assert_eq!(one(within("read-path", "~/.ssh/keys"), "allow"), [closed]);
    assert_eq!(one(within("read-path", "~/.ssh/keys"), "deny"), [""; 0]);
    for letter in ['*', '?', '$'] {
        let wildcard = format!(
            "rule `r`, field `if.paths.within`: `{letter}` is not a wildcard here; name the folder itself"
        );
        assert_eq!(one(within("read-path", &format!("~/Doc{letter}")), "deny"), [wildcard]);
    }
    let both = |listed: &str| {
        let mut conditions = within("read-path", "/srv");
        conditions["lists"] =
            json!([{ "roles": ["read-path"], "allowed": [listed], "matchType": "identifiers" }]);
        conditions
    };
    assert_eq!(
        one(both("/etc"), "deny"),
        ["rule `r`, field `if.lists`: no path on the list is in the folder"]
    );
    assert_eq!(one(both("/srv/a"), "deny"), [""; 0]);
}

#[test]
fn a_rule_cannot_have_the_name_of_a_structural_decision() {
    let load = |name: &str| {
        let file = json!({ "rules": [{ "name": name, "if": {}, "then": "allow" }] }).to_string();
        Policy::from_json(&file, "p", &spelled, &DynamicLists::default())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for name in ["grant", "default-deny", "structural-protected-path", "structural-mine"] {
        let expected =
            format!("`p`, line 1, rule `{name}`, field `name`: `{name}` is a reserved name; rename the rule");
        assert_eq!(load(name), Err(expected));
    }
    assert_eq!([load("grants"), load("deny"), load("my-structural-rule")], [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn shipped_policies_have_no_findings() {
    let shipped = Policy::from_json(defaults::POLICY_JSON, "p", &spelled, &DynamicLists::default()).unwrap();
    let annotations = Annotations::from_json(defaults::ANNOTATIONS_JSON, "a").unwrap();
    assert_eq!(lint(&shipped, &annotations, &protected(), &path("/home/ann")), []);
}

#[test]
fn a_rule_on_unjudged_roles_names_the_affected_tools() {
    let tools = json!({
        "send": { "to": ["email-address"] },
        "attach": { "to": ["email-address"], "file": ["read-path"] },
        "read": { "file": ["read-path"] },
    });
    let listed = json!([{ "roles": ["email-address"], "allowed": ["a@b.org"], "matchType": "emails" }]);
    let rest = ("rest", json!({}), "escalate");
    let all = |conditions: Value, then: &str| about_tools(&tools, &[("r", conditions, then), rest.clone()]);
    let passed = |field: &str| {
        format!(
            "rule `r`, field `{field}`: does not apply to `s/attach`: a tool with paths, addresses or repositories is judged by these alone"
        )
    };
    for then in ["allow", "escalate", "deny"] {
        assert_eq!(all(json!({ "lists": listed }), then), [passed("if.lists")]);
        assert_eq!(all(json!({ "tool": ["attach"], "lists": listed }), then), [passed("if.lists")]);
        assert_eq!(all(json!({ "roles": ["email-address"] }), then), [passed("if.roles")]);
        assert_eq!(all(json!({ "tool": ["send"], "lists": listed }), then), [""; 0]);
    }
    let none = "rule `r`, field `if.roles`: no matching tool has an argument with these roles";
    assert_eq!(all(json!({ "tool": ["read"], "lists": listed }), "deny"), [none]);
    assert_eq!(all(json!({ "roles": ["none"] }), "deny"), [""; 0]);
}

#[test]
fn a_rule_is_not_shadowed_by_one_that_never_decides() {
    let never = ("never", json!({ "roles": [] }), "allow");
    let closed = ("closed", within("read-path", "~/.ssh"), "escalate");
    let late = ("late", within("read-path", "~/.ssh"), "deny");
    let found = about_rules(&[never, closed, late]);
    assert!(found.iter().all(|finding| !finding.starts_with("rule `late`")), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_rule_on_tools_without_resources_shadows_no_other() {
    let free = || ("shut", json!({ "reaches": "nothing" }), "allow");
    assert_eq!(about_rules(&[free(), ("rest", json!({}), "escalate")]), [""; 0]);
    let again = ("again", json!({ "reaches": "nothing", "server": ["other"] }), "allow");
    let shadowed = about_rules(&[free(), again]);
    assert!(shadowed[0].contains("rule `again`, field `if`: has no effect"), "{shadowed:?}");
    assert_eq!(about_rules(&[("rest", json!({}), "escalate"), free()]).len(), 1);
    let tools = json!({ "t": {} });
    let always = "s/t: always denied: no rule covers it";
    assert!(
        about_tools(&tools, &[free()]).iter().any(|finding| finding.contains("always denied")),
        "{always}"
    );
}
