//! File system of a sandbox before any grant.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// File system of a sandbox before any grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum View {
    /// System programs and libraries, a private `/tmp`, and the paths in these fields.
    Roots {
        /// Session directory, which is writable at its own path.
        session_dir: String,
        /// Other programs (a `node_modules`, a venv, our own servers), read-only at their own paths.
        #[serde(default)]
        programs: Vec<String>,
    },
    /// The host's file system, read-only, with some paths hidden and others writable. The deepest listed path that
    /// contains a file decides; at the same path, the denial takes precedence. Denying a path denies the file itself,
    /// regardless of the symlink or mount that leads to it. Missing paths are ignored.
    HostRead {
        /// Session directory, writable at its own path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_dir: Option<String>,
        /// Hidden paths: a directory is empty and inaccessible, and opening a file fails.
        #[serde(default)]
        deny_read: Vec<String>,
        /// Paths that stay visible inside `deny_read`.
        #[serde(default)]
        allow_read: Vec<String>,
        /// Writable paths. Missing paths are skipped.
        #[serde(default)]
        allow_write: Vec<String>,
        /// Paths that stay read-only inside `allow_write`.
        #[serde(default)]
        deny_write: Vec<String>,
        /// `true` for a private `/tmp`. Otherwise, the host's `/tmp` is shown read-only.
        #[serde(default = "yes")]
        private_tmp: bool,
    },
    /// System programs and libraries, a private `/tmp`, and served folders of the host: their file names are visible,
    /// but each file is opened only with the permission of the process at the view's connection
    /// ([`file_access`](crate::file_access)).
    Served {
        /// Session directory, which is writable at its own path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_dir: Option<String>,
        /// Folders that are served at their own paths. They must not contain each other.
        folders: Vec<String>,
        /// Paths in these folders that appear not to exist. Mounts inside them are visible.
        #[serde(default)]
        hidden: Vec<String>,
        /// Other programs, read-only at their own paths.
        #[serde(default)]
        programs: Vec<String>,
        /// Names of unix sockets in [`SOCKET_FOLDER`](super::SOCKET_FOLDER) on which the launcher listens
        /// ([`Egress::socket`](crate::Egress::socket)).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sockets: Vec<String>,
    },
}

fn yes() -> bool {
    true
}

impl View {
    /// Adds a program's path to the view if it would not be visible otherwise, because it is outside the system's
    /// folders or in a `/tmp` that the sandbox replaces.
    pub fn show_program(&mut self, program: &str) {
        let (shown, hidden) = match self {
            Self::Roots { programs, .. } | Self::Served { programs, .. } => {
                (programs, !program.starts_with("/usr/"))
            }
            Self::HostRead { allow_read, private_tmp, .. } => {
                (allow_read, *private_tmp && program.starts_with("/tmp/"))
            }
        };
        if hidden && !shown.iter().any(|folder| Path::new(program).starts_with(folder)) {
            shown.push(program.to_owned());
        }
    }

    /// Returns the names of the sockets on which the launcher listens.
    #[cfg(target_os = "linux")]
    pub(crate) fn sockets(&self) -> &[String] {
        match self {
            Self::Served { sockets, .. } => sockets,
            Self::Roots { .. } | Self::HostRead { .. } => &[],
        }
    }

    /// Returns `true` if the sandbox has a private `/tmp`.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_own_tmp(&self) -> bool {
        match self {
            Self::Roots { .. } | Self::Served { .. } => true,
            Self::HostRead { private_tmp, .. } => *private_tmp,
        }
    }

    pub(super) fn paths(&self) -> Vec<&String> {
        match self {
            Self::Roots { session_dir, programs } => programs.iter().chain([session_dir]).collect(),
            Self::Served { session_dir, folders, hidden, programs, sockets: _ } => {
                session_dir.iter().chain(folders).chain(hidden).chain(programs).collect()
            }
            Self::HostRead { session_dir, deny_read, allow_read, allow_write, deny_write, .. } => {
                let lists = [deny_read, allow_read, allow_write, deny_write];
                lists.into_iter().flatten().chain(session_dir).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_program_adds_missing_programs() {
        let roots = |programs: &[&str]| View::Roots {
            session_dir: "/s".into(),
            programs: programs.iter().map(|program| (*program).to_owned()).collect(),
        };
        let host_read = |allow_read: &[&str], private_tmp| View::HostRead {
            session_dir: None,
            deny_read: vec![],
            allow_read: allow_read.iter().map(|path| (*path).to_owned()).collect(),
            allow_write: vec![],
            deny_write: vec![],
            private_tmp,
        };
        let shows = |mut view: View, program: &str, expected: View| {
            view.show_program(program);
            assert_eq!(view, expected, "{program}");
        };
        shows(roots(&[]), "/opt/a/b", roots(&["/opt/a/b"]));
        shows(roots(&["/opt/a"]), "/opt/a/b", roots(&["/opt/a"]));
        shows(roots(&["/opt/a"]), "/opt/ab", roots(&["/opt/a", "/opt/ab"]));
        shows(roots(&[]), "/usr/bin/node", roots(&[]));
        shows(host_read(&[], true), "/opt/a/b", host_read(&[], true));
        shows(host_read(&[], true), "/tmp/a/b", host_read(&["/tmp/a/b"], true));
        shows(host_read(&["/tmp/a"], true), "/tmp/a/b", host_read(&["/tmp/a"], true));
        shows(host_read(&[], false), "/tmp/a/b", host_read(&[], false));
    }
}
