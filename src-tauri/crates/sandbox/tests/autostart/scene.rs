//! Test scene: a user's folder, a watcher, and a sandbox that can write to the folder.

use std::{
    fs,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ironcurtain_sandbox::autostart::{
    AutostartMode, AutostartRules, ChangeKind, Finding, GitConfig, Watcher,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) struct Scene {
    dir: tempfile::TempDir,
    pub(crate) watcher: Watcher,
}

impl Scene {
    /// Creates a scene with a sandbox named `s`, whose root is not yet open.
    pub(crate) fn new(rules: AutostartRules) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let mut watcher = Watcher::new(&dir.path().join("state")).unwrap();
        watcher.add_sandbox("s", rules).unwrap();
        Self { dir, watcher }
    }

    pub(crate) fn guarded() -> Self {
        Self::new(AutostartRules { git_config: GitConfig::Guarded, ..AutostartRules::default() })
    }

    pub(crate) fn listed() -> Self {
        Self::new(AutostartRules::default())
    }

    pub(crate) fn strict() -> Self {
        Self::new(AutostartRules { mode: AutostartMode::Strict, ..AutostartRules::default() })
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn root(&self) -> String {
        self.text("root")
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.at(path).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// Creates enough folders in the root that the baseline walk covers only three levels.
    pub(crate) fn too_large(&self) {
        for number in 0..5_100 {
            fs::create_dir_all(self.at(&format!("root/many/{number}"))).unwrap();
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Opens the root and returns the paths that must be read-only, relative to the root.
    pub(crate) fn open(&mut self) -> Vec<String> {
        let root = self.root();
        let closed = self.watcher.open_root("s", &root).unwrap();
        closed.into_iter().map(|path| path.replacen(&format!("{root}/"), "", 1)).collect()
    }

    /// Waits for an event and returns the findings.
    pub(crate) fn wait_for_findings(&mut self) -> Vec<Finding> {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.watcher.as_fd(), PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ready, 1, "no event arrived");
        self.poll_findings()
    }

    /// Returns the findings that are available without waiting.
    pub(crate) fn poll_findings(&mut self) -> Vec<Finding> {
        let mut found = self.watcher.process_events();
        while self.watcher.poll_timeout() == Some(Duration::ZERO) {
            found.extend(self.watcher.process_events());
        }
        assert!(found.iter().all(|(name, _)| name == "s"), "{found:?}");
        found.into_iter().map(|(_, finding)| finding).collect()
    }

    pub(crate) fn finish(&mut self) -> Vec<Finding> {
        finish(&mut self.watcher, "s")
    }

    /// Runs git in a folder, without the user's configuration.
    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        git(&self.at(folder), arguments)
    }
}

/// Finishes a sandbox and removes its journal.
pub(crate) fn finish(watcher: &mut Watcher, name: &str) -> Vec<Finding> {
    let (found, journal) = watcher.finish(name);
    journal.unwrap().delete();
    found
}

/// Completes the checks of killed processes and removes their journals.
pub(crate) fn finish_interrupted(watcher: &mut Watcher) -> Vec<(String, Vec<Finding>)> {
    let swept = watcher.finish_interrupted().into_iter().map(|(name, found, journal)| {
        journal.unwrap().delete();
        (name, found)
    });
    swept.collect()
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "T")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "t@example.org")))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a repository with one commit.
pub(crate) fn repository(scene: &Scene, path: &str) {
    fs::create_dir_all(scene.at(path)).unwrap();
    scene.git(path, &["init", "-q", "-b", "main"]);
    scene.write(&format!("{path}/a.txt"), "a");
    scene.git(path, &["add", "-A"]);
    scene.git(path, &["commit", "-qm", "a"]);
}

/// Formats findings relative to the root: `quarantined PATH`, `restored PATH KEYS`, `new PATH`, `changed PATH`.
pub(crate) fn summarize(root: &str, findings: &[Finding]) -> Vec<String> {
    let below = |path: &str| path.replacen(&format!("{root}/"), "", 1);
    let short = findings.iter().map(|finding| match finding {
        Finding::Quarantined { path, .. } => format!("quarantined {}", below(path)),
        Finding::Restored { path, keys } => format!("restored {} {}", below(path), keys.join(" ")),
        Finding::AutostartFile { path, change: ChangeKind::New, .. } => format!("new {}", below(path)),
        Finding::AutostartFile { path, change: ChangeKind::Changed, .. } => {
            format!("changed {}", below(path))
        }
        Finding::Unfinished { reason } => format!("unfinished {reason}"),
    });
    let mut short: Vec<String> = short.collect();
    short.sort();
    short
}

/// Returns every path below a folder, with the content of files.
pub(crate) fn read_tree(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(read_tree(&path));
        }
        let content = fs::read(&path).ok();
        found.push((path, content));
    }
    found.sort();
    found
}
