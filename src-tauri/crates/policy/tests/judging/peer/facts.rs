//! Recreates the files of the existing system's cases in a separate folder and supplies facts about them and git.

use ironcurtain_paths::{CanonicalPath, PathError, Resolver};
use ironcurtain_policy::{CallPlan, Denial, Fact, PlannedValue};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Root folder of the paths in the cases.
const WRITTEN_FOR: &str = "/tmp/icfix";

pub(super) struct Ground {
    _kept: TempDir,
    root: String,
    peer: PathBuf,
}

impl Ground {
    pub(super) fn build(peer: &Path) -> Self {
        let kept = TempDir::new().unwrap();
        let root = fs::canonicalize(kept.path()).unwrap().to_str().unwrap().to_owned();
        let ground = Self { _kept: kept, root, peer: peer.to_owned() };
        let base: Value = serde_json::from_str(&ground.read("data/fixtures/base.json")).unwrap();
        ground.plant(&base["steps"]);
        for case in ground.cases() {
            ground.plant(&case["fixtureExtra"]);
        }
        ground
    }

    pub(super) fn cases(&self) -> Vec<Value> {
        self.read("sample/cases.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns a file's contents: from the data folder if the case names a file there, otherwise from the case
    /// itself.
    pub(super) fn content(&self, folder: &str, named: &Value) -> String {
        match named.as_str() {
            Some(name) => self.read(&format!("data/{folder}/{name}.json")),
            None => named.to_string(),
        }
    }

    pub(super) fn cwd(&self) -> CanonicalPath {
        CanonicalPath::assume_canonical(&format!("{}/cwd", self.root)).unwrap()
    }

    pub(super) fn resolve(&self, raw: &str, base: &CanonicalPath) -> Result<CanonicalPath, PathError> {
        let home = CanonicalPath::assume_canonical(&format!("{}/home/u", self.root)).unwrap();
        Resolver::new(home, base.clone()).locate(raw)
    }

    pub(super) fn facts(
        &self,
        plan: &CallPlan<'_>,
        arguments: &Map<String, Value>,
        base: &CanonicalPath,
        prepare: bool,
    ) -> Result<Vec<Fact>, Denial> {
        let repository =
            arguments.get("path").and_then(Value::as_str).and_then(|raw| self.resolve(raw, base).ok());
        plan.values()
            .iter()
            .map(|value| match value.raw {
                Some(raw) if value.is_path() => self
                    .resolve(raw, base)
                    .map(Fact::Path)
                    .map_err(|why| Denial::unresolvable(value.argument, &why)),
                _ if value.is_remote() => Ok(remote(value, repository.as_ref())),
                _ if prepare => Ok(Fact::Plain),
                _ => Ok(Fact::Verbatim),
            })
            .collect()
    }

    fn read(&self, below: &str) -> String {
        let path = self.peer.join(below);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.replace(WRITTEN_FOR, &self.root)
    }

    fn plant(&self, steps: &Value) {
        for step in steps.as_array().into_iter().flatten() {
            let path = Path::new(step["path"].as_str().unwrap());
            assert!(path.starts_with(&self.root));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match step["op"].as_str().unwrap() {
                "mkdir" => fs::create_dir_all(path).unwrap(),
                "file" => fs::write(path, step["content"].as_str().unwrap_or_default()).unwrap(),
                _ if path.is_symlink() => {}
                _ => std::os::unix::fs::symlink(step["target"].as_str().unwrap(), path).unwrap(),
            }
        }
    }
}

/// Returns the addresses that git has configured for a remote. Any other value is itself an address.
fn remote(value: &PlannedValue<'_>, repository: Option<&CanonicalPath>) -> Fact {
    let known = |name: &str| git(repository?, &["remote", "get-url", "--all", name]);
    match value.raw {
        Some(raw) => known(raw).map_or(Fact::Plain, Fact::Remotes),
        None => {
            let tracked = repository
                .and_then(|repository| git(repository, &["config", "branch.main.remote"]))
                .and_then(|names| known(names.first()?));
            Fact::Remotes(tracked.or_else(|| known("origin")).unwrap_or_default())
        }
    }
}

fn git(repository: &CanonicalPath, arguments: &[&str]) -> Option<Vec<String>> {
    let answer = Command::new("git").arg("-C").arg(repository.as_path()).args(arguments).output().unwrap();
    let lines = String::from_utf8(answer.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    (answer.status.success() && !lines.is_empty()).then_some(lines)
}
