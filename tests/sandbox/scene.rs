//! Host files for one launch, with secrets and with files that may be changed. Each launch gets a new scene.
//!
//! - INVARIANT: only unreadable places contain the secret, and only `readable` and the `TERM` variable contain the
//!   non-secret token. No command contains the secret or the token.

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::{BuildHasher, Hasher},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::{Duration, SystemTime},
};

use ironcurtain_sandbox::autostart::strict_names;
use tempfile::TempDir;

use crate::{launch::Executor, listeners::Listeners, row::Group, tools::Tools, victim::Victim};

pub(crate) struct Scene {
    dir: TempDir,
    /// Secret that must not leak.
    pub(crate) secret: String,
    /// The same secret, encoded in file timestamps.
    pub(crate) secret_time: String,
    /// Token that may be read.
    pub(crate) open: String,
    /// Text that an attack writes.
    pub(crate) mark: String,
    /// Text that a twin writes.
    pub(crate) twin: String,
    pub(crate) victim: Option<Victim>,
    pub(crate) listeners: Option<Listeners>,
    pub(crate) proxied: bool,
}

/// Shell function that creates the directory of a file. Starts a program only if the directory is missing.
const INTO: &str = "into() { [ -d \"${1%/*}\" ] || mkdir -p \"${1%/*}\"; }; ";

impl Scene {
    /// Creates a scene. For sandboxes that mount folders, no path inside a folder is denied, because the launcher never
    /// mounts a folder that contains a denied path.
    pub(crate) fn new(tools: &Tools, group: &Group, executor: &Executor) -> Self {
        let dir = tempfile::Builder::new().prefix("ic").tempdir_in(&tools.place).unwrap();
        let number = random();
        let mut scene = Self {
            dir,
            secret: format!("SECRET{number:016x}"),
            secret_time: (1_000_000_000 + number % 600_000_000).to_string(),
            open: format!("OPENED{:016x}", random()),
            mark: format!("MARK{:016x}", random()),
            twin: format!("TWIN{:016x}", random()),
            victim: None,
            listeners: None,
            proxied: group.proxied,
        };
        scene.furnish();
        if !matches!(executor, Executor::Roots | Executor::Asking) {
            scene.deny_inside();
        }
        if group.persistence {
            scene.persist();
        }
        if group.victim {
            scene.victim = Some(Victim::start(tools, &scene));
        }
        if group.listeners {
            scene.listeners = Some(Listeners::open(&scene));
        }
        scene
    }

    fn furnish(&self) {
        for dir in [
            "work/sub/deep",
            "work/mixed/private",
            "granted/sub",
            "readable",
            "outside/empty",
            "denied",
            "home",
        ] {
            fs::create_dir_all(self.path(dir)).unwrap();
        }
        self.tell("readable", &self.open);
        self.tell("denied", &self.secret);
        fs::write(self.path("readable/unlocked"), &self.open).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.secret_time.parse().unwrap());
        fs::File::options().write(true).open(self.path("denied/secret")).unwrap().set_modified(time).unwrap();
        for file in
            ["work/file", "work/sub/file", "granted/file", "outside/file", "outside/other", "home/file"]
        {
            fs::write(self.path(file), file).unwrap();
        }
        symlink(self.path("denied"), self.path("way-to-denied")).unwrap();
        symlink(self.path("denied"), self.path("readable/shortcut")).unwrap();
        symlink(self.path("outside"), self.path("work/shortcut")).unwrap();
    }

    /// Creates denied files and directories inside readable and writable directories.
    fn deny_inside(&self) {
        self.tell("work/mixed/private", &self.secret);
        fs::write(self.path("readable/locked"), &self.secret).unwrap();
    }

    /// Creates the initial autostart files: repositories with and without a work tree, at and below a root; editor
    /// settings; and a symlink.
    fn persist(&self) {
        for repository in ["work/.git", "granted/sub/.git", "granted/bare"] {
            for dir in ["objects", "refs", "hooks", "info"] {
                fs::create_dir_all(self.path(&format!("{repository}/{dir}"))).unwrap();
            }
            for file in ["HEAD", "config", "hooks/pre-commit", "info/exclude"] {
                fs::write(self.path(&format!("{repository}/{file}")), file).unwrap();
            }
        }
        fs::create_dir_all(self.path("work/sub/.vscode")).unwrap();
        for file in ["work/sub/.vscode/tasks.json", "work/.envrc", "granted/sub/.npmrc", "work/real"] {
            fs::write(self.path(file), file).unwrap();
        }
        symlink("real", self.path("work/.zshrc")).unwrap();
    }

    /// Hides a token in a directory: as file content, as a file name, in a program and as a symlink target.
    fn tell(&self, dir: &str, token: &str) {
        fs::write(self.path(&format!("{dir}/secret")), token).unwrap();
        fs::write(self.path(&format!("{dir}/name-{token}")), "").unwrap();
        let tool = self.path(&format!("{dir}/tool"));
        fs::write(&tool, format!("#!/bin/sh\necho {token}\n")).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        symlink(format!("to-{token}"), self.path(&format!("{dir}/link"))).unwrap();
    }

    pub(crate) fn base(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.base())
    }

    /// Returns the content of a file as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read(Path::new(&self.path(name))).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the first line of a script, which sets the scene's variables and defines the function `into`.
    pub(crate) fn prelude(&self, tools: &Tools) -> String {
        let mut variables = vec![
            ("S", self.base().to_owned()),
            ("W", self.path("work")),
            ("G", self.path("granted")),
            ("R", self.path("readable")),
            ("O", self.path("outside")),
            ("D", self.path("denied")),
            ("H", self.path("home")),
            ("P", tools.probe.clone()),
            ("M", self.mark.clone()),
            ("T", self.twin.clone()),
            ("C", self.path("work/claim")),
            ("N", self.queue()),
            ("L", strict_names(true).join(" ")),
            ("K", strict_names(false).join(" ")),
        ];
        if let Some(victim) = &self.victim {
            variables.extend([("V", victim.pid().to_string()), ("A", victim.address.clone())]);
        }
        if let Some(listeners) = &self.listeners {
            variables.extend(listeners.variables());
        }
        let variables: String = variables.iter().map(|(name, value)| format!("{name}='{value}'; ")).collect();
        format!("{variables}{INTO}")
    }

    /// Returns the name of the victim's message queue.
    pub(crate) fn queue(&self) -> String {
        let name = self.dir.path().file_name().and_then(|name| name.to_str());
        format!("/{}", name.unwrap())
    }
}

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
