//! A run's network: programs wait while the user answers the question about a host, and no connection bypasses the
//! question.

mod direct;
mod hostile;
mod ports;
mod real_programs;

use crate::runs::Shell;
use crate::test_home::Prepared;
use crate::world::World;
use ironcurtain_testkit::external_servers::ExternalServers;
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Content of the hosts file. `two` has a public and a private address.
const HOSTS: &str = "\
127.0.0.1 localhost
9.9.9.9 files.example.test other.example.test third.example.test evil.example.test two.example.test
10.9.9.9 sly.example.test two.example.test
127.0.0.1 own.example.test
169.254.169.254 metadata.example.test
";

/// Hosts in a separate network.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    _outside: ExternalServers,
}

/// Runs `body` in a separate network. `test` is the calling test's full name.
pub(crate) fn inside(test: &str, body: impl FnOnce(&Ground)) {
    if !is_inside() {
        return run_inside(test, &["--net", "--mount"]);
    }
    body(&Ground::new());
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("icnet").tempdir_in("/var/tmp").unwrap();
        let place = |name: &str| dir.path().join(name);
        std::fs::create_dir(place("pages")).unwrap();
        std::fs::write(place("pages/hello"), "hello from outside\n").unwrap();
        make_repository(&place("pages/project.git"));
        let certificate = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=files.example.test", "-days", "2"])
            .arg("-keyout")
            .arg(place("key.pem"))
            .arg("-out")
            .arg(place("cert.pem"))
            .output();
        assert!(certificate.unwrap().status.success());
        std::fs::write(place("hosts"), HOSTS).unwrap();
        let bind =
            Command::new("mount").arg("--bind").args([&place("hosts"), Path::new("/etc/hosts")]).status();
        assert!(bind.unwrap().success());
        let servers =
            ["/usr/bin/python3".into(), script("outside.py"), place("log"), dir.path().to_path_buf()];
        let far = ["9.9.9.9/24", "10.9.9.9/24", "169.254.169.254/16"];
        let outside = ExternalServers::start(servers, &["9.9.9.1/24", "10.9.9.1/24", "169.254.1.1/16"], &far);
        Self { dir, _outside: outside }
    }

    /// Replaces the addresses that a host name resolves to.
    fn resolve(&self, name: &str, address: &str) {
        let others: String =
            HOSTS.lines().filter(|line| !line.contains(name)).map(|line| format!("{line}\n")).collect();
        std::fs::write(self.dir.path().join("hosts"), format!("{others}{address} {name}\n")).unwrap();
    }

    /// Returns the address, port and `Host` header of each incoming connection.
    pub(crate) fn reached(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// Creates a repository that `git clone` can read over plain HTTP.
fn make_repository(place: &Path) {
    let script = "git init -q --bare \"$1\" && cd \"$1\" && \
        tree=$(git mktree </dev/null) && \
        commit=$(git -c user.name=a -c user.email=a@b commit-tree -m first \"$tree\") && \
        git update-ref HEAD \"$commit\" && git update-server-info";
    let made = Command::new("sh").args(["-ec", script, "sh"]).arg(place).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn script(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/run_network");
    dir.join(name).canonicalize().unwrap()
}

/// Creates a test environment with a project that contains `probe.py`.
pub(crate) fn world(prepare: impl FnOnce(&Prepared)) -> World {
    let world = World::with(prepare);
    world.file("project/probe.py", &std::fs::read_to_string(script("probe.py")).unwrap());
    world
}

pub(crate) fn shell(world: &World) -> Shell {
    Shell::start(world, &world.path("project"))
}

/// Runs `probe.py` in a shell. Returns its output.
pub(crate) fn probe(shell: &mut Shell, what: &str) -> String {
    let said = shell.run(&format!("/usr/bin/python3 probe.py {what}"));
    said.strip_suffix("\nstatus 0\n").unwrap_or(&said).to_owned()
}

/// Writes a policy with these rules, followed by a rule that asks about everything.
fn policy(prepared: &Prepared, rules: &[(&str, Value, &str)]) {
    let rule = |(name, condition, then): &(&str, Value, &str)| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let all = rules.iter().cloned().chain([("ask", json!({}), "escalate")]);
    let rules: Vec<Value> = all.map(|one| rule(&one)).collect();
    let text = json!({ "schemaVersion": 1, "rules": rules }).to_string();
    std::fs::write(prepared.home.policy().join("compiled-policy.json"), text).unwrap();
}

/// Returns a rule condition that matches connections from runs of `sh` to these hosts.
fn of_hosts(hosts: &[&str]) -> Value {
    json!({ "server": ["run:sh"], "domains": { "roles": ["fetch-url"], "allowed": hosts } })
}

/// Returns the audit log's network entries, one per line: host, port, decision or failure, and reason.
fn network_log(world: &World) -> Vec<String> {
    let log = world.log();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = |entry: Value| {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert_eq!((text("/serverName"), &entry["sandboxed"]), ("run:sh", &json!(true)));
        let (decision, rule) = (text("/policyDecision/status"), text("/policyDecision/rule"));
        format!("{}:{} {decision}{} {rule}", text("/host"), entry["port"], text("/result"))
    };
    entries.filter(|entry| entry["event"] == "network").map(line).collect()
}
