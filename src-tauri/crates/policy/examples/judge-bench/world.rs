//! Policies to benchmark, and the files to which the calls refer.

use crate::mix::Call;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{
    AllowedHosts, Annotations, Context, DynamicLists, Fact, PlannedValue, Policy, ProtectedPaths,
    ResolvedCall, WithinError, defaults,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A policy, and everything else that the judge needs.
pub struct World {
    pub name: String,
    pub policy: Policy,
    annotations: Annotations,
    protected: ProtectedPaths,
    allowed_hosts: AllowedHosts,
    sandbox: CanonicalPath,
    servers: [String; 2],
    resolver: Resolver,
}

/// Temporary home directory with the files to which the calls refer.
pub struct Disk {
    _kept: tempfile::TempDir,
    pub base: String,
}

impl Disk {
    pub fn new() -> Self {
        let kept = tempfile::tempdir().expect("a folder for scratch");
        let base = kept.path().canonicalize().expect("a folder that is there");
        for folder in ["box/src", "Documents", "Downloads"] {
            std::fs::create_dir_all(base.join(folder)).expect("a folder to make");
        }
        let files = ["box/src/main.rs", "box/src/lib.rs", "box/src/a.rs", "box/src/b.rs"];
        for file in files.into_iter().chain(["Documents/plan.md", "Downloads/in.zip", "Downloads/out.txt"]) {
            std::fs::write(base.join(file), "text").expect("a file to write");
        }
        let base = base.to_str().expect("a name in UTF-8").to_owned();
        Self { _kept: kept, base }
    }
}

/// Returns the shipped policy with one additional rule for each other server.
pub fn shipped(disk: &Disk) -> World {
    let mut file: Value = serde_json::from_str(defaults::POLICY_JSON).expect("JSON");
    let rules = file["rules"].as_array_mut().expect("rules");
    for server in ["git", "fetch", "github"] {
        rules.push(
            json!({ "name": format!("{server}-asks"), "if": { "server": [server] }, "then": "escalate" }),
        );
    }
    let name = "shipped policy plus a rule for each other server".to_owned();
    world(disk, name, &file.to_string(), &annotations().to_string(), None)
}

/// Returns a policy with `count` rules that each name a server and a tool, including the servers and tools of the
/// calls.
pub fn generated(disk: &Disk, count: usize) -> World {
    let annotations = annotations();
    let tools = annotations["servers"].as_object().expect("servers").iter().flat_map(|(server, of)| {
        let tools = of["tools"].as_array().expect("tools").iter();
        tools.map(move |tool| (server.clone(), tool["toolName"].as_str().expect("a name").to_owned()))
    });
    let mut named: Vec<(String, String)> = tools.collect();
    named.truncate(count);
    let others = (named.len()..count).map(|at| (format!("server-{}", at % 40), format!("tool-{at}")));
    named.extend(others);
    let rule = |(at, (server, tool)): (usize, &(String, String))| json!({ "name": format!("r{at}"), "if": { "server": [server], "tool": [tool] }, "then": "allow", "reason": "r" });
    let rules: Vec<Value> = named.iter().enumerate().map(rule).collect();
    let name = "rules that name server and tool".to_owned();
    world(disk, name, &json!({ "rules": rules }).to_string(), &annotations.to_string(), None)
}

/// Returns the existing system's coding policy, or `None` if it is not installed.
pub fn existing(disk: &Disk) -> Option<World> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/peer");
    let data = std::env::var_os("IRONCURTAIN_PEER").map_or(beside, PathBuf::from).join("data");
    let read = |name: &str| std::fs::read_to_string(data.join(name)).ok();
    let policy = read("policies/coding-fix.json")?.replace("/tmp/icfix/home/u", &disk.base);
    let (annotations, lists) = (read("annotations/default.json")?, read("lists/generated-coding.json")?);
    Some(world(disk, "the existing system's coding policy".to_owned(), &policy, &annotations, Some(&lists)))
}

fn world(disk: &Disk, name: String, policy: &str, annotations: &str, lists: Option<&str>) -> World {
    let home = path(&disk.base);
    let lists = lists.map(|text| DynamicLists::from_json(text, "lists").expect("lists")).unwrap_or_default();
    let within = |raw: &str| {
        CanonicalPath::assume_canonical(&raw.replacen('~', home.as_str(), 1)).map_err(WithinError::from)
    };
    let policy = Policy::from_json(policy, "policy", &within, &lists).expect("a policy");
    let annotations = Annotations::from_json(annotations, "annotations").expect("annotations");
    let sandbox = home.join("box").expect("a folder");
    let protected: ProtectedPaths = ironcurtain_paths::protected::secrets(&home).into_iter().collect();
    let name = format!("{name} ({} rules)", policy.rules().len());
    let resolver = Resolver::new(home, sandbox.clone());
    let servers = ["filesystem".to_owned(), "git".to_owned()];
    World {
        name,
        policy,
        annotations,
        protected,
        allowed_hosts: AllowedHosts::default(),
        sandbox,
        servers,
        resolver,
    }
}

impl World {
    pub fn context(&self) -> Context<'_> {
        Context {
            sandbox: Some(&self.sandbox),
            sandbox_servers: &self.servers,
            ..Context::new(&self.protected, &self.allowed_hosts)
        }
    }

    /// Plans a call and resolves its paths with `find`.
    pub fn understand(&self, call: &Call, find: &dyn Fn(&Self, &str) -> CanonicalPath) -> ResolvedCall {
        let plan = self.annotations.plan(call.server, call.tool, &call.arguments).expect("a plan");
        let fact = |value: &PlannedValue<'_>| match value.raw {
            Some(raw) if value.is_path() => Fact::Path(find(self, raw)),
            Some(_) | None => Fact::Plain,
        };
        plan.resolve(plan.values().iter().map(fact)).expect("a call")
    }

    /// Returns the paths in a call.
    pub fn paths(&self, call: &Call) -> Vec<String> {
        let plan = self.annotations.plan(call.server, call.tool, &call.arguments).expect("a plan");
        let paths = plan.values().iter().filter(|value| value.is_path());
        paths.filter_map(|value| value.raw.map(str::to_owned)).collect()
    }

    /// Converts a path that is assumed to be canonical, without accessing the disk.
    pub fn spelled(&self, raw: &str) -> CanonicalPath {
        path(raw)
    }

    /// Resolves a path on disk.
    pub fn located(&self, raw: &str) -> CanonicalPath {
        self.resolver.locate(raw).expect("a path that is there")
    }
}

/// Returns the shipped annotations, plus annotations for the other tools in the calls.
fn annotations() -> Value {
    let mut file: Value = serde_json::from_str(defaults::ANNOTATIONS_JSON).expect("JSON");
    let tool = |name: &str, args: Value| json!({ "toolName": name, "args": args });
    let path = json!(["read-path"]);
    let repository = json!(["read-path", "write-history"]);
    let project = |more: &str| json!({ "owner": ["github-owner"], "repo": ["github-repo"], more: ["none"] });
    let mut comment = project("body");
    comment["issue_number"] = json!(["none"]);
    file["servers"]["git"]["tools"] = json!([
        tool("git_status", json!({ "path": path })),
        tool("git_diff", json!({ "path": path })),
        tool("git_add", json!({ "path": repository, "files": ["none"] })),
        tool("git_commit", json!({ "path": repository, "message": ["commit-message"] })),
    ]);
    file["servers"]["fetch"]["tools"] = json!([
        tool("web_search", json!({ "query": ["none"] })),
        tool("http_fetch", json!({ "url": ["fetch-url"] }))
    ]);
    file["servers"]["github"]["tools"] = json!([
        tool("list_issues", project("state")),
        tool("get_file_contents", project("path")),
        tool("add_issue_comment", comment),
    ]);
    file
}

fn path(text: &str) -> CanonicalPath {
    CanonicalPath::assume_canonical(text).expect("a canonical path")
}
