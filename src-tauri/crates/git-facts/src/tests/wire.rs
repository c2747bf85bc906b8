//! Fakes the programs that git uses to connect. Git is real, but its connections are logged and refused.

use super::TestUser;
use ironcurtain_policy::{Destination, Role};
use std::process::{Command, Stdio};

/// Fake ssh and HTTP programs for git, and the log of its connections.
pub(super) struct Wire<'a> {
    user: &'a TestUser,
}

impl<'a> Wire<'a> {
    pub(super) fn new(user: &'a TestUser) -> Self {
        let folders = std::env::var_os("PATH").unwrap();
        let mut gits = std::env::split_paths(&folders).map(|folder| folder.join("git"));
        let git = gits.find(|path| path.exists()).unwrap();
        let note = |line: &str| format!("#!/bin/sh\n{line} >> {}\nexit 1\n", user.path("wire/log"));
        // The last two arguments of ssh are the host and the command.
        let ssh = note(
            "while [ $# -gt 2 ]; do shift; done\npath=\"${2#*\\'}\"; path=\"${path%?}\"\n\
             case \"$path\" in /*) echo \"ssh://$1$path\" ;; *) echo \"$1:$path\" ;; esac",
        );
        let local = note("if [ -e \"$1\" ] || [ -e \"$1.git\" ]; then echo \"local $1\"; else :; fi");
        let web = note("echo \"$2\"");
        for (name, script) in [
            ("ssh", &ssh),
            ("git-remote-https", &web),
            ("git-remote-http", &web),
            ("git-upload-pack", &local),
            ("git-receive-pack", &local),
        ] {
            user.program(&format!("wire/{name}"), script);
        }
        std::os::unix::fs::symlink(git, user.path("wire").as_path().join("git")).unwrap();
        Self { user }
    }

    /// Runs git in a folder. Returns the hosts to which it tried to connect, with `None` for a local path.
    pub(super) fn goes_to(&self, folder: &str, arguments: &[&str]) -> Vec<Option<String>> {
        let log = self.user.path("wire/log");
        let _ = std::fs::remove_file(log.as_path());
        // Git would endlessly fetch a group that contains itself.
        let mut git = Command::new("timeout");
        git.args(["2", "git", "-c", "push.default=current"]).args(arguments);
        git.current_dir(self.user.path(folder).as_path()).env("HOME", self.user.path("").as_path());
        git.env_remove("XDG_CONFIG_HOME").env("GIT_TERMINAL_PROMPT", "0");
        git.env("GIT_EXEC_PATH", self.user.path("wire").as_path()).env("GIT_SSH_VARIANT", "ssh");
        git.env("GIT_SSH_COMMAND", self.user.path("wire/ssh").as_path());
        git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let log = std::fs::read_to_string(log.as_path()).unwrap_or_default();
        log.lines().map(remote_target).collect()
    }
}

/// Returns an address's host and path, or `None` if the address is not on a host.
pub(super) fn remote_target(address: &str) -> Option<String> {
    Destination::parse(Role::GitRemoteUrl, address).domain().map(str::to_owned)
}
