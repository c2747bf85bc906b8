//! Description of a sandbox, written by the trusted process and carried out by the supervisor.
//!
//! - A [`Spec`] is complete: nothing is taken from the launcher's environment.
//! - Paths are absolute and normal (no `.`, `..`, doubled or trailing slash), as checked by [`Spec::validate`].
//!   Existence and symlinks are checked when the paths are mounted.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

/// Description of one sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// Program and its arguments. A bare program name is looked up in `PATH` of `env`.
    pub argv: Vec<String>,
    /// Complete environment of the server.
    pub env: BTreeMap<String, String>,
    /// Working directory inside the sandbox. `None` selects the session directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user's home directory, in which autostart files and pipes are recognized. If `None`, `HOME` of `env` is
    /// used, but a server's entry can set `HOME` to a different folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// File system before any grant.
    pub view: View,
    /// Granted paths to mount before the server starts, in order.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Paths that stay read-only even inside the view's writable paths. Missing paths are ignored.
    #[serde(default, rename = "closed")]
    pub read_only: Vec<String>,
    /// Like `read_only`, but the folders above these paths are also pinned, which prevents renaming them.
    #[serde(default, rename = "kept", skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// Paths that stay hidden inside programs and granted mounts. Missing paths are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Network access of the sandbox.
    #[serde(default)]
    pub network: NetworkAccess,
    /// Unix sockets that the sandbox may use.
    #[serde(default, skip_serializing_if = "UnixSockets::is_none")]
    pub unix_sockets: UnixSockets,
    /// Resource limits of the sandbox.
    #[serde(default)]
    pub limits: ResourceLimits,
    /// State directory that all of a user's sandboxes share, hidden in each of them ([`autostart`](crate::autostart)).
    /// It outlives sandboxes, and is created if missing. Only the user may have write access to its parent, because
    /// another user could otherwise create it first.
    pub state_dir: String,
    /// `true` to allow running as uid 0. Only masks then protect the kernel's files.
    #[serde(default)]
    pub allow_root: bool,
}

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
        /// Names of unix sockets in [`SOCKET_FOLDER`] on which the launcher listens
        /// ([`Egress::socket`](crate::Egress::socket)).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sockets: Vec<String>,
    },
}

fn yes() -> bool {
    true
}

/// Network access of a sandbox. Every sandbox has its own network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Only the sandbox's own loopback interface.
    #[default]
    None,
    /// A proxy on [`PROXY_PORT`], served by the launcher with the listener from
    /// [`LaunchedSandbox::egress`](crate::LaunchedSandbox::egress).
    Proxied,
    /// Like [`Proxied`](Self::Proxied). In addition, a TUN device hands the connections of programs that ignore the
    /// proxy to the proxy, and a TCP connection to a loopback port on which nothing listens waits for the launcher's
    /// permission ([`ServiceLink`](crate::ServiceLink)).
    ProxiedWithServices,
}

/// Unix sockets that a sandbox is allowed to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnixSockets {
    /// Only connected socket pairs.
    #[default]
    None,
    /// Connected pairs, and stream sockets in folders that only this sandbox can write to.
    Own,
    /// Every socket whose path the sandbox can see.
    All,
}

impl UnixSockets {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Port of the proxy on the sandbox's own `127.0.0.1`.
pub const PROXY_PORT: u16 = 3128;

/// Folder in the sandbox's own `/run` for the sockets on which the launcher listens.
pub const SOCKET_FOLDER: &str = "/run/ironcurtain";

/// Grant of a path to a sandbox: a directory tree or a single file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mount {
    /// Path on the host and in the sandbox.
    pub path: String,
    /// Access to the path.
    pub access: MountAccess,
    /// `true` to require a regular file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
    /// Paths at or below `path` that stay read-only. Missing paths are ignored.
    #[serde(default, rename = "closed", skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// Like `read_only`, but the folders above these paths are also pinned, which prevents renaming them.
    #[serde(default, rename = "kept", skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// `true` if the user approved this exact path. The path is then writable even if `read_only` contains it.
    #[serde(default, rename = "named", skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
}

/// The sandbox's access to a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    /// Read access. Writes fail with `EROFS`.
    ReadOnly,
    /// All access that the user has.
    ReadWrite,
}

/// Resource limits. `None` keeps the launcher's own limit. [`SandboxEvent::Limited`](crate::SandboxEvent::Limited)
/// reports how each limit is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResourceLimits {
    /// Memory in bytes: for the whole sandbox with a control group, otherwise for each process.
    pub memory: Option<u64>,
    /// CPU time of the whole sandbox, in percent of one CPU. Requires a control group.
    pub cpu: Option<u32>,
    /// Maximum number of processes and threads in the sandbox, counted per user namespace. The kernel does not limit
    /// uid 0.
    pub processes: Option<u64>,
    /// Maximum number of open descriptors per process.
    pub open_files: Option<u64>,
    /// Maximum size of a written file in bytes.
    pub file_size: Option<u64>,
    /// Maximum size of the private `/tmp` and of `/dev/shm`, in bytes.
    pub tmp_size: Option<u64>,
}

impl Default for ResourceLimits {
    /// Returns limits that suffice for Node.js with worker threads and one or two compilers.
    fn default() -> Self {
        Self {
            memory: Some(4 << 30),
            cpu: None,
            processes: Some(1024),
            open_files: Some(4096),
            file_size: None,
            tmp_size: Some(1 << 30),
        }
    }
}

/// Reason a [`Spec`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The command is empty.
    #[error("the command is empty; name the program to run")]
    NoProgram,
    /// A path is not absolute or not normal.
    #[error("`{0}` is not an absolute path without `.`, `..` or doubled slashes")]
    Path(String),
    /// The name or value of an environment variable is invalid.
    #[error("`{0}` is not a valid name or value of an environment variable")]
    Environment(String),
    /// An argument contains a NUL character.
    #[error("argument `{0}` contains a NUL character")]
    Argument(String),
}

impl Spec {
    /// Checks the specification, before anything is started.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(SpecError::NoProgram);
        }
        if let Some(bad) = self.argv.iter().find(|argument| argument.contains('\0')) {
            return Err(SpecError::Argument(bad.escape_default().to_string()));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(SpecError::Environment(name.escape_default().to_string()));
            }
        }
        let fixed = self
            .view
            .paths()
            .into_iter()
            .chain(&self.cwd)
            .chain([&self.state_dir])
            .chain(&self.read_only)
            .chain(&self.pinned)
            .chain(&self.hidden);
        let mounts = self
            .mounts
            .iter()
            .flat_map(|mount| mount.read_only.iter().chain(&mount.pinned).chain([&mount.path]));
        match fixed.chain(mounts).find(|path| !is_normal(path)) {
            Some(bad) => Err(SpecError::Path(bad.escape_default().to_string())),
            None => Ok(()),
        }
    }

    /// Returns `true` if the supervisor connects the sandbox's sockets.
    #[cfg(target_os = "linux")]
    pub(crate) fn reports_connections(&self) -> bool {
        self.unix_sockets == UnixSockets::Own || self.network == NetworkAccess::ProxiedWithServices
    }

    /// Returns `true` if the sandbox has a TUN device, where the machine permits one.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_tun(&self) -> bool {
        self.network == NetworkAccess::ProxiedWithServices
    }

    /// Returns the user's home directory, if it is known.
    #[cfg(target_os = "linux")]
    pub(crate) fn user_home(&self) -> Option<&String> {
        self.home.as_ref().or_else(|| self.env.get("HOME"))
    }

    /// Returns the directory in which the server starts.
    pub(crate) fn working_dir(&self) -> &str {
        let session_dir = match &self.view {
            View::Roots { session_dir, .. } => Some(session_dir),
            View::HostRead { session_dir, .. } | View::Served { session_dir, .. } => session_dir.as_ref(),
        };
        self.cwd.as_ref().or(session_dir).map_or("/", String::as_str)
    }
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

    fn paths(&self) -> Vec<&String> {
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

/// Returns `true` if `path` is absolute, normal and not `/`.
pub(crate) fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    !path.contains('\0') && rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_normal_paths() {
        assert!(is_normal("/a/b c/.d"));
        for bad in ["", "a", "/", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a\0b"] {
            assert!(!is_normal(bad), "{bad:?}");
        }
    }

    #[test]
    fn validate_names_each_error() {
        assert_eq!(spec().validate(), Ok(()));
        assert_eq!(Spec { argv: vec![], ..spec() }.validate(), Err(SpecError::NoProgram));
        let mounts = vec![Mount::new("/a/../b", MountAccess::ReadOnly)];
        assert_eq!(Spec { mounts, ..spec() }.validate(), Err(SpecError::Path("/a/../b".into())));
        assert_eq!(
            Spec { state_dir: "state".into(), ..spec() }.validate(),
            Err(SpecError::Path("state".into()))
        );
        let env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert_eq!(Spec { env, ..spec() }.validate(), Err(SpecError::Environment("A=B".into())));
        let deny_read = vec!["~/.ssh".into()];
        let view = View::HostRead {
            session_dir: None,
            deny_read,
            allow_read: vec![],
            allow_write: vec![],
            deny_write: vec![],
            private_tmp: true,
        };
        assert_eq!(Spec { view, ..spec() }.validate(), Err(SpecError::Path("~/.ssh".into())));
        let argv = vec!["a".into(), "b\0".into()];
        assert_eq!(Spec { argv, ..spec() }.validate(), Err(SpecError::Argument("b\\u{0}".into())));
    }

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

    #[test]
    fn serialized_form_is_stable() {
        let text = r#"{"argv":["true"],"env":{},"view":{"kind":"roots","sessionDir":"/s","programs":[]},"mounts":[],"closed":[],"network":"none","limits":{"memory":4294967296,"cpu":null,"processes":1024,"openFiles":4096,"fileSize":null,"tmpSize":1073741824},"stateDir":"/state","allowRoot":false}"#;
        assert_eq!(serde_json::to_string(&spec()).unwrap(), text);
        assert_eq!(serde_json::from_str::<Spec>(text).unwrap(), spec());
    }

    fn spec() -> Spec {
        Spec {
            argv: vec!["true".into()],
            env: BTreeMap::new(),
            cwd: None,
            home: None,
            view: View::Roots { session_dir: "/s".into(), programs: vec![] },
            mounts: vec![],
            network: NetworkAccess::None,
            unix_sockets: UnixSockets::None,
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: ResourceLimits::default(),
            state_dir: "/state".into(),
            allow_root: false,
        }
    }
}
