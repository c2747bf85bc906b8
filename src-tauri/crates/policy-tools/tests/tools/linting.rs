//! Findings about policies that load and are questionable all the same.

use crate::scene::{Scene, path, policy, spelled};
use ironcurtain_policy::{Annotations, DynamicLists, Policy, ProtectedPaths, defaults};
use ironcurtain_policy_tools::lint::lint;
use serde_json::{Value, json};

/// The findings about rules, or those about tools.
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

/// All that is said of one server `s` with these tools.
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
fn a_rule_that_the_ones_before_leave_nothing_is_found() {
    let wide = ("wide", within("read-path", "/a"), "allow");
    let shadowed = "rule `late`, field `if`: never decides: all it covers is already";
    assert_eq!(
        about_rules(&[wide.clone(), ("late", within("read-path", "/a/b"), "deny")]),
        [format!("{shadowed} decided otherwise by `wide`")]
    );
    assert_eq!(
        about_rules(&[wide.clone(), ("late", within("read-path", "/a"), "allow")]),
        [format!("{shadowed} decided by `wide`")]
    );
    for open in [within("read-path", "/ab"), within("write-path", "/a"), json!({ "roles": ["read-path"] })] {
        assert_eq!(about_rules(&[wide.clone(), ("late", open, "deny")]), [""; 0]);
    }
    // An address that nobody understands is denied, and not allowed.
    let host = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["d.org"] } });
    assert_eq!(about_rules(&[("wide", host.clone(), "allow"), ("late", host.clone(), "deny")]), [""; 0]);
    assert_eq!(about_rules(&[("wide", host.clone(), "deny"), ("late", host, "allow")]).len(), 1);
    let two = [
        ("reads", json!({ "roles": ["read-path"] }), "escalate"),
        ("writes", json!({ "roles": ["write-path"] }), "escalate"),
        ("late", json!({ "roles": ["read-path", "write-path"], "server": ["filesystem"] }), "deny"),
    ];
    assert_eq!(about_rules(&two), [format!("{shadowed} decided otherwise by `reads`, `writes`")]);
    assert_eq!(about_rules(&two[1..]), [""; 0]);
}

#[test]
fn hosts_shadow_hosts() {
    let hosts = |allowed: &[&str]| json!({ "domains": { "roles": ["fetch-url"], "allowed": allowed } });
    let is_shadowed = |wide: &[&str], narrow: &[&str]| {
        let found = about_rules(&[("wide", hosts(wide), "deny"), ("late", hosts(narrow), "allow")]);
        found.iter().any(|finding| finding.contains("never decides"))
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
fn a_rule_that_can_never_hold_is_found() {
    let one = |conditions: Value| about_rules(&[("r", conditions, "deny")]);
    assert_eq!(one(json!({ "tool": [] })), ["rule `r`, field `if.tool`: is empty, so it never holds"]);
    assert_eq!(
        one(json!({ "server": ["nope"] })),
        ["rule `r`, field `if.server`: no annotated tool is named by it"]
    );
    assert_eq!(
        one(json!({ "tool": ["nope"] })),
        ["rule `r`, field `if.tool`: no annotated tool is named by it"]
    );
    assert_eq!(
        one(json!({ "tool": ["read"], "roles": ["delete-path"] })),
        ["rule `r`, field `if.roles`: no tool it names has an argument of its roles"]
    );
    // A call of this one always names a file, and is judged by that.
    assert_eq!(
        one(json!({ "tool": ["write"], "roles": ["none"] })),
        ["rule `r`, field `if.roles`: no tool it names has an argument of its roles"]
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
fn a_rule_that_opens_too_much_is_found_and_one_that_denies_it_is_not() {
    for (at, shown) in [("/", "/"), ("~", "/home/ann"), ("/home", "/home")] {
        let expected =
            format!("rule `r`, field `if.paths.within`: `{shown}` holds the whole home: name a folder in it");
        assert_eq!(about_rules(&[("r", within("read-path", at), "allow")]), [expected]);
        assert_eq!(about_rules(&[("r", within("read-path", at), "deny")]), [""; 0]);
    }
    assert_eq!(about_rules(&[("r", within("read-path", "~/docs"), "allow")]), [""; 0]);
    let any = |then| {
        about_rules(&[("r", json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*"] } }), then)])
    };
    assert_eq!(
        any("escalate"),
        ["rule `r`, field `if.domains.allowed`: `*` covers every public host: name the hosts"]
    );
    assert_eq!(any("deny"), [""; 0]);
}

#[test]
fn tools_that_no_rule_speaks_about_are_found() {
    let tools =
        findings(&[("reads", json!({ "roles": ["read-path"], "server": ["filesystem"] }), "allow")], false);
    assert!(tools.contains(
        &"tool `filesystem/move`: denied outside the session folder and what is granted: no rule about it speaks about `delete-path`".to_owned()
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
fn a_rule_that_allows_every_path_or_every_host_is_found_however_it_says_so() {
    let every = |roles: &str| {
        format!("rule `r`, field `if`: allows every value of {roles}: name folders, hosts or lists")
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
fn a_tool_that_names_something_only_sometimes_is_looked_at_both_ways() {
    let guard = json!({ "condition": { "arg": "dry", "equals": true }, "roles": ["none"] });
    let tools = json!({ "t": { "dry": ["none"], "path": { "default": ["write-path"], "when": [guard] } } });
    let asks = ("writes", json!({ "roles": ["write-path"] }), "escalate");
    let dry = ("dry", json!({ "roles": ["none"], "tool": ["t"] }), "allow");
    assert_eq!(about_tools(&tools, &[asks.clone(), dry.clone()]), [""; 0]);
    let denied = "tool `s/t`: denied where it names no file and no address: no rule covers it then";
    assert_eq!(about_tools(&tools, &[asks]), [denied]);
    let outside = "tool `s/t`: denied outside the session folder and what is granted: no rule about it speaks about `write-path`";
    assert_eq!(about_tools(&tools, std::slice::from_ref(&dry)), [outside]);
    let always = json!({ "t": { "path": ["write-path"] } });
    let dead = "rule `dry`, field `if.roles`: no tool it names has an argument of its roles";
    assert_eq!(about_tools(&always, &[dry]), [dead, outside]);
}

#[test]
fn a_tool_about_which_only_a_rule_speaks_that_never_holds_is_found() {
    let tools = json!({ "u": { "url": ["fetch-url"] }, "o": { "owner": ["github-owner"] } });
    let none = ("none", json!({ "domains": { "roles": ["fetch-url"], "allowed": [] } }), "allow");
    assert_eq!(
        about_tools(&tools, &[none]),
        [
            "rule `none`, field `if.domains.allowed`: is empty, so it never holds",
            "tool `s/o`: denied: no rule about it speaks about `github-owner`",
            "tool `s/u`: denied where its server may reach the host, unless that is granted: no rule about it speaks about `fetch-url`",
        ]
    );
}

#[test]
fn what_is_probably_not_meant_as_it_is_written_is_found() {
    let one = |conditions: Value, then| about_rules(&[("r", conditions, then)]);
    let unknown =
        |field: &str, name: &str| format!("rule `r`, field `{field}`: nothing annotated is called `{name}`");
    assert_eq!(one(json!({ "tool": ["read", "wirte"] }), "deny"), [unknown("if.tool", "wirte")]);
    assert_eq!(one(json!({ "server": ["other", "nosuch"] }), "deny"), [unknown("if.server", "nosuch")]);
    assert_eq!(
        one(json!({ "server": ["filesystem"], "tool": ["read", "get"] }), "deny"),
        [unknown("if.tool", "get")]
    );
    assert_eq!(
        one(json!({ "server": ["nosuch"], "tool": ["read"] }), "deny"),
        ["rule `r`, field `if.server`: no annotated tool is named by it"]
    );
    let closed = "rule `r`, field `if.paths.within`: never decides: `/home/ann/.ssh/keys` is protected, and all in it is denied whatever rules say";
    assert_eq!(one(within("read-path", "~/.ssh/keys"), "allow"), [closed]);
    assert_eq!(one(within("read-path", "~/.ssh/keys"), "deny"), [""; 0]);
    for letter in ['*', '?', '$'] {
        let wildcard = format!(
            "rule `r`, field `if.paths.within`: `{letter}` is a letter like any other here: name the folder itself"
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
fn a_rule_is_not_called_as_what_is_decided_without_one() {
    let load = |name: &str| {
        let file = json!({ "rules": [{ "name": name, "if": {}, "then": "allow" }] }).to_string();
        Policy::from_json(&file, "p", &spelled, &DynamicLists::default())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for name in ["grant", "default-deny", "structural-protected-path", "structural-mine"] {
        let expected =
            format!("`p`, line 1, rule `{name}`, field `name`: `{name}` is a reserved name: rename the rule");
        assert_eq!(load(name), Err(expected));
    }
    assert_eq!([load("grants"), load("deny"), load("my-structural-rule")], [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn nothing_is_said_of_what_ships() {
    let shipped = Policy::from_json(defaults::POLICY_JSON, "p", &spelled, &DynamicLists::default()).unwrap();
    let annotations = Annotations::from_json(defaults::ANNOTATIONS_JSON, "a").unwrap();
    assert_eq!(lint(&shipped, &annotations, &protected(), &path("/home/ann")), []);
}

#[test]
fn a_rule_about_what_is_not_judged_beside_paths_is_told_for_which_tools() {
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
            "rule `r`, field `{field}`: is not looked at for `s/attach`: where a tool names paths, addresses or repositories, these alone are judged"
        )
    };
    for then in ["allow", "escalate", "deny"] {
        assert_eq!(all(json!({ "lists": listed }), then), [passed("if.lists")]);
        assert_eq!(all(json!({ "tool": ["attach"], "lists": listed }), then), [passed("if.lists")]);
        assert_eq!(all(json!({ "roles": ["email-address"] }), then), [passed("if.roles")]);
        assert_eq!(all(json!({ "tool": ["send"], "lists": listed }), then), [""; 0]);
    }
    let none = "rule `r`, field `if.roles`: no tool it names has an argument of its roles";
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
fn a_rule_about_what_reaches_nothing_leaves_the_rest_to_others() {
    let free = || ("shut", json!({ "reaches": "nothing" }), "allow");
    assert_eq!(about_rules(&[free(), ("rest", json!({}), "escalate")]), [""; 0]);
    let again = ("again", json!({ "reaches": "nothing", "server": ["other"] }), "allow");
    let shadowed = about_rules(&[free(), again]);
    assert!(shadowed[0].contains("rule `again`, field `if`: never decides"), "{shadowed:?}");
    assert_eq!(about_rules(&[("rest", json!({}), "escalate"), free()]).len(), 1);
    let tools = json!({ "t": {} });
    let always = "s/t: always denied: no rule covers it";
    assert!(about_tools(&tools, &[free()]).iter().any(|told| told.contains("always denied")), "{always}");
}
