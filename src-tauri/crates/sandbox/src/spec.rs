//! The description of a sandbox: a plain value that the trusted process writes down and the supervisor carries out.
//!
//! - A [`Spec`] is complete: nothing is taken from the environment of whoever launches it.
//! - Paths are absolute and normal (no `.`, `..`, doubled or trailing slash); [`Spec::validate`] refuses others.
//!   Whether they exist, and whether a symlink is in the way, is found out when they are mounted.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

/// One server's sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// The program and its arguments; a bare name is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment of the server.
    pub env: BTreeMap<String, String>,
    /// The working directory inside; the session sandbox directory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The view of the file system that the server has.
    pub view: View,
    /// Granted paths mounted before the server starts, in this order.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Paths in what the view makes writable that are not to be written. One that does not exist closes nothing.
    #[serde(default)]
    pub closed: Vec<String>,
    /// The same, where every folder on the way to it also stays where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The network that it reaches.
    #[serde(default)]
    pub network: NetworkAccess,
    /// The unix sockets that it may use.
    #[serde(default, skip_serializing_if = "UnixSockets::is_none")]
    pub unix_sockets: UnixSockets,
    /// Resource limits of every process in the sandbox.
    #[serde(default)]
    pub limits: ResourceLimits,
    /// The directory with what outlives a sandbox ([`autostart`](crate::autostart)): one private directory for all sandboxes
    /// of a user, which is made if it is not there, and is hidden in the sandbox. Only the user may be able to make it, so it
    /// does not belong where everybody can.
    pub state_dir: String,
    /// Run even as uid 0, where the kernel's own files are guarded by masks only.
    #[serde(default)]
    pub allow_root: bool,
}

/// The file system as it is before any grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum View {
    /// An almost empty tree: system programs and libraries, a private `/tmp`, and what is named here.
    Roots {
        /// The session sandbox directory, writable at its own path.
        session_dir: String,
        /// Further programs (a `node_modules`, a venv, our own servers), read-only at their own paths.
        #[serde(default)]
        programs: Vec<String>,
    },
    /// The host's tree, read-only, with some of it hidden and some writable. Of several of these paths that cover a file
    /// the deepest decides; at the same path what denies does. Denied paths count by what they really are, whatever
    /// symlinks or further mounts lead there; one that does not exist denies nothing.
    HostRead {
        /// The session sandbox directory, writable at its own path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_dir: Option<String>,
        /// The paths that cannot be read: a directory is empty and closed, a file cannot be opened.
        #[serde(default)]
        deny_read: Vec<String>,
        /// The paths that can be read all the same inside of what is denied.
        #[serde(default)]
        allow_read: Vec<String>,
        /// The paths that can be written, too. One that does not exist is left out.
        #[serde(default)]
        allow_write: Vec<String>,
        /// The paths that cannot be written inside of what is writable.
        #[serde(default)]
        deny_write: Vec<String>,
        /// A `/tmp` of its own instead of the host's, read-only.
        #[serde(default = "yes")]
        private_tmp: bool,
    },
}

fn yes() -> bool {
    true
}

/// The network that a sandbox reaches. It has a network namespace of its own in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Its own loopback and nothing else.
    #[default]
    None,
    /// A proxy on [`PROXY_PORT`], served by whoever launched it with the listener that
    /// [`LaunchedSandbox::egress`](crate::LaunchedSandbox::egress) hands out.
    Proxied,
}

/// The unix sockets that a sandbox may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnixSockets {
    /// Connected pairs.
    #[default]
    None,
    /// Pairs, and sockets of its own in folders that only the sandbox writes to. No datagram sockets.
    Own,
    /// Every socket whose path the view shows.
    All,
}

impl UnixSockets {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The port on the sandbox's own `127.0.0.1` where its proxy listens.
pub const PROXY_PORT: u16 = 3128;

/// One granted path: a directory with all below it, or a single file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mount {
    /// The path on the host and in the sandbox alike.
    pub path: String,
    /// The access that the sandbox has.
    pub access: MountAccess,
    /// True when it is given as a file: a folder that stands there is not it, and is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
    /// Paths at or below it that are not to be written although it is; each exists, or closes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
    /// The same, where every folder on the way to it also stays where it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// True when an answer of the person named this very path: then it is written although it is closed itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// The access that a mount gives the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    /// Look, do not touch: writes fail with `EROFS`.
    ReadOnly,
    /// Whatever the person's own rights allow.
    ReadWrite,
}

/// Resource limits; `None` leaves the launcher's own. Which are in force, and by what, is told by
/// [`SandboxEvent::Limited`](crate::SandboxEvent::Limited).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResourceLimits {
    /// Memory in bytes: of all processes together where there is a control group to be had, of each process otherwise.
    pub memory: Option<u64>,
    /// Processor time in percent of one processor, all processes together; needs a control group.
    pub cpu: Option<u32>,
    /// Processes and threads in the sandbox together, counted per sandbox since it has its own user namespace. The
    /// kernel exempts uid 0.
    pub processes: Option<u64>,
    /// Open descriptors per process.
    pub open_files: Option<u64>,
    /// Largest file that may be written, in bytes.
    pub file_size: Option<u64>,
    /// Size of the private `/tmp`, and of `/dev/shm`, in bytes.
    pub tmp_size: Option<u64>,
}

impl Default for ResourceLimits {
    /// Generous enough for node with its worker threads and a compiler or two.
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

/// The reasons why a [`Spec`] cannot be carried out as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// There is no program to run.
    #[error("the command is empty: name the program to run")]
    NoProgram,
    /// A path is not absolute and normal.
    #[error("`{0}` is not an absolute path without `.`, `..` or doubled slashes")]
    Path(String),
    /// An environment variable cannot be handed to a process.
    #[error("`{0}` cannot be the name or value of an environment variable")]
    Environment(String),
    /// An argument carries a NUL.
    #[error("argument `{0}` has a NUL character in it")]
    Argument(String),
}

impl Spec {
    /// Refuses what cannot be carried out, before anything is started.
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
            .chain(&self.closed)
            .chain(&self.kept);
        let mounts =
            self.mounts.iter().flat_map(|mount| mount.closed.iter().chain(&mount.kept).chain([&mount.path]));
        match fixed.chain(mounts).find(|path| !is_normal(path)) {
            Some(bad) => Err(SpecError::Path(bad.escape_default().to_string())),
            None => Ok(()),
        }
    }

    /// The folder that the server starts in.
    pub fn working_dir(&self) -> &str {
        let session_dir = match &self.view {
            View::Roots { session_dir, .. } => Some(session_dir),
            View::HostRead { session_dir, .. } => session_dir.as_ref(),
        };
        self.cwd.as_ref().or(session_dir).map_or("/", String::as_str)
    }
}

impl View {
    /// Shows a program, where the view would not do so by itself: outside of the system's folders, or below the `/tmp` that
    /// the sandbox has of its own instead of the host's.
    pub fn show_program(&mut self, program: &str) {
        let (shown, hidden) = match self {
            Self::Roots { programs, .. } => (programs, !program.starts_with("/usr/")),
            Self::HostRead { allow_read, private_tmp, .. } => {
                (allow_read, *private_tmp && program.starts_with("/tmp/"))
            }
        };
        if hidden && !shown.iter().any(|folder| Path::new(program).starts_with(folder)) {
            shown.push(program.to_owned());
        }
    }

    /// True when there is a `/tmp` that only the sandbox has.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_own_tmp(&self) -> bool {
        match self {
            Self::Roots { .. } => true,
            Self::HostRead { private_tmp, .. } => *private_tmp,
        }
    }

    fn paths(&self) -> Vec<&String> {
        match self {
            Self::Roots { session_dir, programs } => programs.iter().chain([session_dir]).collect(),
            Self::HostRead { session_dir, deny_read, allow_read, allow_write, deny_write, .. } => {
                let lists = [deny_read, allow_read, allow_write, deny_write];
                lists.into_iter().flatten().chain(session_dir).collect()
            }
        }
    }
}

/// True when `path` is absolute, normal and not the root itself.
pub(crate) fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    !path.contains('\0') && rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_path_is_accepted_and_others_are_not() {
        assert!(is_normal("/a/b c/.d"));
        for bad in ["", "a", "/", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a\0b"] {
            assert!(!is_normal(bad), "{bad:?}");
        }
    }

    #[test]
    fn each_fault_is_named() {
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
    fn a_program_is_shown_where_the_view_would_not() {
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
    fn the_written_form_is_stable() {
        let text = r#"{"argv":["true"],"env":{},"view":{"kind":"roots","sessionDir":"/s","programs":[]},"mounts":[],"closed":[],"network":"none","limits":{"memory":4294967296,"cpu":null,"processes":1024,"openFiles":4096,"fileSize":null,"tmpSize":1073741824},"stateDir":"/state","allowRoot":false}"#;
        assert_eq!(serde_json::to_string(&spec()).unwrap(), text);
        assert_eq!(serde_json::from_str::<Spec>(text).unwrap(), spec());
    }

    fn spec() -> Spec {
        Spec {
            argv: vec!["true".into()],
            env: BTreeMap::new(),
            cwd: None,
            view: View::Roots { session_dir: "/s".into(), programs: vec![] },
            mounts: vec![],
            network: NetworkAccess::None,
            unix_sockets: UnixSockets::None,
            closed: vec![],
            kept: vec![],
            limits: ResourceLimits::default(),
            state_dir: "/state".into(),
            allow_root: false,
        }
    }
}
