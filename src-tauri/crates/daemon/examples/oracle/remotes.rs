//! What git says about remotes. The trusted process has no part for this yet; this one is as small as can be.

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::Fact;
use std::process::Command;

/// A git repository that a call is about, and whether it sends to the remote.
pub struct Repository {
    pub path: CanonicalPath,
    pub pushes: bool,
}

impl Repository {
    /// What a remote stands for. A value that is no remote's name is an address itself; without a value git knows which
    /// remote it would take.
    pub fn fact(&self, raw: Option<&str>) -> Fact {
        match raw {
            Some(raw) => self.addresses(raw).map_or(Fact::Plain, Fact::Remotes),
            None => Fact::Remotes(self.usual().unwrap_or_default()),
        }
    }

    fn addresses(&self, name: &str) -> Option<Vec<String>> {
        if name.starts_with('-') {
            return None;
        }
        let push: &[&str] = if self.pushes { &["--push"] } else { &[] };
        self.git(&[&["remote", "get-url", "--all"], push, &[name]].concat())
    }

    /// What git takes when no remote is named: the first that is configured, or else `origin`. A configured name that no
    /// remote has any more is passed over, but an address written in its place counts.
    fn usual(&self) -> Option<Vec<String>> {
        let one = |arguments: &[&str]| self.git(arguments)?.into_iter().next();
        let branch = one(&["symbolic-ref", "--short", "HEAD"]);
        let of_branch = |key: &str| one(&["config", &format!("branch.{}.{key}", branch.as_deref()?)]);
        let for_push = || [of_branch("pushRemote"), one(&["config", "remote.pushDefault"])];
        let pushes = self.pushes.then(for_push).into_iter().flatten();
        let mut configured = pushes.chain([of_branch("remote"), Some("origin".to_owned())]).flatten();
        configured.find_map(|named| {
            let is_address = named.contains(['/', ':', '.', '\\']);
            self.addresses(&named).or_else(|| is_address.then(|| vec![named]))
        })
    }

    fn git(&self, arguments: &[&str]) -> Option<Vec<String>> {
        let answer = Command::new("git").arg("-C").arg(self.path.as_path()).args(arguments).output().ok()?;
        let lines: Vec<String> = String::from_utf8(answer.stdout).ok()?.lines().map(str::to_owned).collect();
        (answer.status.success() && !lines.is_empty()).then_some(lines)
    }
}
