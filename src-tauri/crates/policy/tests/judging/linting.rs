//! What is said about policies that load and are questionable all the same.

use crate::scene::{Scene, path};
use ironcurtain_policy::lint::lint;
use serde_json::{Value, json};

/// The findings about rules, or those about tools.
fn findings(rules: &[(&str, Value, &str)], about_rules: bool) -> Vec<String> {
    let scene = Scene::new(rules);
    lint(&scene.policy, &scene.annotations, &path("/home/ann"))
        .iter()
        .filter(|finding| finding.rule.is_some() == about_rules)
        .map(ToString::to_string)
        .collect()
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
    let two = [
        ("reads", json!({ "roles": ["read-path"] }), "allow"),
        ("writes", json!({ "roles": ["write-path"] }), "escalate"),
        ("late", json!({ "roles": ["read-path", "write-path"], "server": ["filesystem"] }), "deny"),
    ];
    assert_eq!(about_rules(&two), [format!("{shadowed} decided otherwise by `reads`, `writes`")]);
    assert_eq!(about_rules(&two[1..]), [""; 0]);
}

#[test]
fn hosts_shadow_hosts() {
    let hosts = |allowed: &[&str]| json!({ "domains": { "roles": ["fetch-url"], "allowed": allowed } });
    let late = |wide: &[&str], narrow: &[&str]| {
        about_rules(&[("wide", hosts(wide), "deny"), ("late", hosts(narrow), "allow")]).len()
    };
    assert_eq!(late(&["*.d.org"], &["d.org", "a.d.org", "*.b.d.org"]), 1);
    assert_eq!(late(&["*"], &["d.org", "*.e.org"]), 1);
    assert_eq!(late(&["*"], &["localhost"]), 0);
    // Where the late one is `*`, that is one more.
    assert_eq!(late(&["*"], &["*"]), 2);
    assert_eq!(late(&["d.org", "*.e.org"], &["*"]), 1);
    assert_eq!(late(&["d.org"], &["*.d.org"]), 0);
    assert_eq!(late(&["d.org"], &["d.org/a/b"]), 1);
    assert_eq!(late(&["d.org/a/b"], &["d.org"]), 0);
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
        &"tool `filesystem/move`: always denied: no rule about it speaks about `delete-path`".to_owned()
    ));
    assert!(tools.contains(&"tool `other/mail`: always denied: no rule covers it".to_owned()));
    assert!(
        !tools
            .iter()
            .any(|tool| tool.contains("filesystem/read`") || tool.contains("filesystem/list_allowed"))
    );
    assert_eq!(findings(&[("all", json!({}), "escalate")], false), [""; 0]);
}
