//! Compares the judge's decisions with those of the existing system. Uses our own recorded cases and, if the existing
//! system is installed next to the checkout or at `IRONCURTAIN_PEER`, also its cases.
//!
//! - Each case must have the same decision here, unless the existing system's authors dispute it. No case must have a
//!   less strict decision.
//! - Only pure operations, and decisions that are based on given facts about the disk and git, are compared.

mod facts;
mod recorded;

use facts::Ground;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AllowedHosts, Annotations, Context, Decision, Destination, DynamicLists, HostPattern, Policy,
    ProtectedPaths, Role, Verdict, WithinError, check_schema, is_ip_address, judge,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Cases that this crate decides more strictly: it denies a symlink loop instead of judging the loop's first link.
const STRICTER: &[&str] = &["fs-sandbox-forms-0102"];

/// Folder that contains our own cases, each recorded with the existing system's decision.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judging/peer/own");

#[test]
fn decisions_match_the_existing_system() {
    let own = answer_all(Path::new(OWN));
    assert_eq!(own, BTreeMap::from([("same", 20)]));
    if let Some(peer) = cases_folder() {
        let tally = answer_all(&peer);
        assert!(tally["same"] > 100, "{tally:?}");
    }
}

/// Judges all cases in a folder and counts them by result. Fails if any result is wrong.
fn answer_all(folder: &Path) -> BTreeMap<&'static str, usize> {
    let mut tally = BTreeMap::<&str, usize>::new();
    let mut wrong = Vec::new();
    let ground = Ground::build(folder);
    for case in ground.cases() {
        let Some(ours) = answer(&ground, &case) else {
            *tally.entry("of other crates").or_default() += 1;
            continue;
        };
        let outcome = compare(&case, &ours);
        *tally.entry(outcome).or_default() += 1;
        if outcome == "wrong" {
            wrong.push(format!("{}: {} instead of {}", case["id"], ours, case["expected"]));
        }
    }
    assert!(wrong.is_empty(), "{tally:?}\n{}", wrong.join("\n"));
    tally
}

/// Returns the folder with the existing system's cases, or `None` if it does not exist. Fails if `IRONCURTAIN_PEER` is
/// set but contains no cases.
fn cases_folder() -> Option<PathBuf> {
    let has_cases = |folder: &Path| folder.join("sample/cases.jsonl").exists();
    match std::env::var_os("IRONCURTAIN_PEER").map(PathBuf::from) {
        Some(named) => {
            assert!(
                has_cases(&named),
                "`IRONCURTAIN_PEER` names `{}`, which holds no cases",
                named.display()
            );
            Some(named)
        }
        None => {
            let default_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/peer");
            has_cases(&default_folder).then_some(default_folder)
        }
    }
}

fn compare(case: &Value, ours: &Value) -> &'static str {
    let disputed = case["disputed"] == json!(true);
    let keys = match case["compare"].as_array() {
        Some(keys) => keys.iter().filter(|key| *key != "rule").cloned().collect(),
        None => case["expected"].as_object().unwrap().keys().cloned().map(Value::String).collect::<Vec<_>>(),
    };
    let same = keys.iter().all(|key| {
        let key = key.as_str().unwrap();
        sorted(&ours[key]) == sorted(&case["expected"][key])
    });
    match (same, disputed, STRICTER.contains(&case["id"].as_str().unwrap())) {
        (true, _, _) => "same",
        (false, true, _) if case.get("acceptable").is_none() => "disputed",
        (false, true, _) if case["acceptable"].as_array().unwrap().contains(&ours["decision"]) => "disputed",
        (false, _, true) if ours["decision"] == "deny" => "stricter",
        (false, _, _) => "wrong",
    }
}

/// Sorts lists of servers, whose order is irrelevant.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(items) = value.as_array_mut().filter(|items| items.iter().all(Value::is_string)) {
        items.sort_by_key(|item| item.to_string());
    }
    value
}

/// Returns this crate's result for a case, or `None` for operations that this crate does not support.
fn answer(ground: &Ground, case: &Value) -> Option<Value> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    match text("op") {
        "evaluate" => Some(decide(ground, case, false)),
        "prepareEvaluate" if case.get("containerWorkspaceDir").is_none() => Some(decide(ground, case, true)),
        "annotation" => Some(annotation(ground, case)),
        "roots" => Some(roots(ground, case)),
        "toMcpRoots" => Some(
            json!({ "mcpRoots": case["roots"].as_array().unwrap().iter().map(mcp_root).collect::<Vec<_>>() }),
        ),
        "requiredServers" => {
            // The existing system implements the `proxy` server itself.
            let policy = policy(ground, case);
            let servers =
                policy.servers().into_iter().filter(|server| *server != "proxy").collect::<Vec<_>>();
            Some(json!({ "servers": servers }))
        }
        "domainMatches" => {
            let allowed = case["allowed"].as_array().unwrap();
            let matches = allowed
                .iter()
                .any(|pattern| HostPattern::parse(pattern.as_str().unwrap()).covers(text("domain")));
            Some(json!({ "value": matches }))
        }
        "isIpAddress" => Some(json!({ "value": is_ip_address(text("input")) })),
        "isWithinDirectory" => {
            let within = ground.resolve(text("directory"), &ground.cwd()).ok()?;
            let path = ground.resolve(text("input"), &ground.cwd()).ok()?;
            Some(json!({ "value": within.contains(&path) }))
        }
        "resolveRealPath" => {
            ground.resolve(text("input"), &ground.cwd()).ok().map(|path| json!({ "value": path }))
        }
        "canonicalize" => canonical(case).map(|(text, _)| json!({ "value": text })),
        "domainOf" => canonical(case).map(|(_, domain)| json!({ "value": domain })),
        "validateArgs" => {
            let fits = check_schema(&case["inputSchema"], case["args"].as_object().unwrap()).is_ok();
            Some(json!({ "valid": fits }))
        }
        _ => None,
    }
}

fn canonical(case: &Value) -> Option<(String, Option<String>)> {
    let (role, input) = (Role::parse(case["role"].as_str()?)?, case["input"].as_str()?);
    match role.category() {
        ironcurtain_policy::Category::Path => None,
        ironcurtain_policy::Category::Url => {
            let destination = Destination::parse(role, input);
            Some((destination.text().to_owned(), destination.domain().map(str::to_owned)))
        }
        ironcurtain_policy::Category::Identifier => Some((input.to_lowercase(), None)),
        ironcurtain_policy::Category::Opaque => Some((input.to_owned(), None)),
    }
}

fn mcp_root(root: &Value) -> Value {
    let path = CanonicalPath::assume_canonical(root["path"].as_str().unwrap()).unwrap();
    json!({ "uri": path.file_uri(), "name": root["name"] })
}

fn roots(ground: &Ground, case: &Value) -> Value {
    let sandbox = ground.resolve(case["allowedDirectory"].as_str().unwrap(), &ground.cwd()).unwrap();
    let policy = policy(ground, case);
    let mut roots = vec![json!({ "path": sandbox, "name": "sandbox" })];
    for rule in policy.rules().iter().filter(|rule| rule.then != Decision::Deny) {
        if let Some(path) = rule.within().filter(|path| roots.iter().all(|root| root["path"] != json!(path)))
        {
            roots.push(json!({ "path": path, "name": rule.name() }));
        }
    }
    json!({ "mcpRoots": roots.iter().map(mcp_root).collect::<Vec<_>>(), "roots": roots })
}

fn annotation(ground: &Ground, case: &Value) -> Value {
    let (server, tool, arguments) = request(case);
    let annotations = annotations(ground, case);
    let known = annotations.get(server, tool).map(|known| {
        known
            .roles(arguments)
            .map(|(name, roles)| {
                (name.to_string(), json!(roles.iter().map(|role| role.name()).collect::<Vec<_>>()))
            })
            .collect::<Map<_, _>>()
    });
    json!({ "args": known })
}

fn decide(ground: &Ground, case: &Value, prepare: bool) -> Value {
    let (server, tool, arguments) = request(case);
    if case["trustedServers"].as_array().unwrap().contains(&json!(server)) {
        return json!({ "decision": "allow" });
    }
    let sandbox = case["allowedDirectory"].as_str().map(|path| ground.resolve(path, &ground.cwd()).unwrap());
    let base = if prepare { sandbox.clone().unwrap_or_else(|| ground.cwd()) } else { ground.cwd() };
    let (annotations, given) = (annotations_taking(ground, case), arguments.clone().into());
    let call = annotations.plan(server, tool, &given).and_then(|plan| {
        let facts = ground.facts(&plan, arguments, &base, prepare)?;
        plan.resolve(facts)
    });
    let call = match call {
        Ok(call) => call,
        Err(denial) => return json!({ "decision": "deny", "rule": denial.rule, "reason": denial.reason }),
    };
    let protected: ProtectedPaths = case["protectedPaths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| ground.resolve(path.as_str().unwrap(), &ground.cwd()).unwrap())
        .collect();
    let allowed_hosts: BTreeMap<String, Vec<String>> =
        serde_json::from_value(case["serverDomainAllowlists"].clone()).unwrap_or_default();
    let allowed_hosts = AllowedHosts::new(&allowed_hosts);
    let context = Context {
        sandbox: sandbox.as_ref(),
        sandbox_servers: &["filesystem".to_owned(), "git".to_owned()],
        ..Context::new(&protected, &allowed_hosts)
    };
    match judge(&policy(ground, case), &context, call) {
        Verdict::Allow(permit) => json!({ "decision": "allow", "rule": permit.reason().rule }),
        Verdict::Escalate(escalation) => json!({ "decision": "escalate", "rule": escalation.by.rule }),
        Verdict::Deny(denial) => json!({ "decision": "deny", "rule": denial.rule, "reason": denial.reason }),
    }
}

fn request(case: &Value) -> (&str, &str, &Map<String, Value>) {
    let request = &case["request"];
    (
        request["serverName"].as_str().unwrap(),
        request["toolName"].as_str().unwrap(),
        request["arguments"].as_object().unwrap(),
    )
}

fn annotations(ground: &Ground, case: &Value) -> Annotations {
    Annotations::from_json(&ground.content("annotations", &case["annotations"]), "annotations").unwrap()
}

fn annotations_taking(ground: &Ground, case: &Value) -> Annotations {
    let (server, tool, arguments) = request(case);
    let file = serde_json::from_str(&ground.content("annotations", &case["annotations"])).unwrap();
    Annotations::from_json(&recorded::taking(&file, server, tool, arguments).to_string(), "annotations")
        .unwrap()
}

fn policy(ground: &Ground, case: &Value) -> Policy {
    let text = ground.content("policies", &case["policy"]);
    let lists = case.get("lists").filter(|lists| !lists.is_null());
    let lists = lists.map(|lists| serde_json::from_str(&ground.content("lists", lists)).unwrap());
    let lists = recorded::with_empty_lists(&serde_json::from_str(&text).unwrap(), lists).to_string();
    let lists = DynamicLists::from_json(&lists, "lists").unwrap();
    let resolve = |raw: &str| {
        // A folder that is a symlink loop contains nothing, so resolving it may fail.
        ground
            .resolve(raw, &ground.cwd())
            .or_else(|_| CanonicalPath::assume_canonical(raw))
            .map_err(WithinError::from)
    };
    Policy::from_json(&text, "policy", &resolve, &lists).unwrap()
}
