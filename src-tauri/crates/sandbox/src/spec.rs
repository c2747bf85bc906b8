//! Description of a sandbox, written by the trusted process and carried out by the supervisor.
//!
//! - A [`Spec`] is complete: nothing is taken from the launcher's environment.
//! - Paths are absolute and normal (no `.`, `..`, doubled or trailing slash), as checked by [`Spec::validate`].
//!   Existence and symlinks are checked when the paths are mounted.

mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
pub use view::View;

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

/// Returns `true` if `path` is absolute, normal and not `/`.
pub(crate) fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    !path.contains('\0') && rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests;
