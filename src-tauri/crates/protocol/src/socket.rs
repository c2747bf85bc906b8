//! Path of the daemon's socket, on which all programs must agree.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Environment variable that moves all files under one directory (tests, demos, portable use).
pub const HOME_VARIABLE: &str = "IRONCURTAIN_HOME";

/// Path of the daemon's socket inside a run. The path does not exist outside runs, where only root can create it.
pub const RUN_SOCKET: &str = "/run/ironcurtain/sessions";

/// Maximum path length in bytes: the size of `sun_path` on macOS (104 bytes) without the final NUL. Linux has 108
/// (`unix(7)`).
const MAX_SOCKET_PATH: usize = 103;

/// Failure to determine the path of the socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketPathError {
    /// No environment variable names a directory.
    #[error("none of `IRONCURTAIN_HOME`, `XDG_RUNTIME_DIR` and `HOME` is set; set one of them")]
    Unknown,
    /// A relative path would refer to a different directory in each program.
    #[error("`{variable}` must be an absolute path, found `{value}`")]
    Relative {
        /// Name of the environment variable.
        variable: &'static str,
        /// Relative value of the variable.
        value: String,
    },
    /// The path exceeds the operating system's limit.
    #[error("`{0}` is too long for a socket path; set `IRONCURTAIN_HOME` to a shorter directory")]
    TooLong(String),
}

/// Sockets on which this user's daemon may be listening. A new daemon listens on the first one.
///
/// There can be several, because an agent client may start the shim without the environment variable that determines
/// the daemon's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sockets {
    first: PathBuf,
    others: Vec<PathBuf>,
}

/// Failure to connect to an existing socket.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect to IronCurtain at `{path}`: {source}")]
pub struct ConnectError {
    path: PathBuf,
    source: io::Error,
}

impl Sockets {
    /// Returns the sockets for this process's user and environment.
    ///
    /// # Errors
    /// [`SocketPathError`] if the environment names no usable directory.
    pub fn for_current_user() -> Result<Self, SocketPathError> {
        Self::from_environment(|name| std::env::var_os(name))
    }

    /// Returns the sockets for this process's user and the given environment.
    ///
    /// # Errors
    /// [`SocketPathError`] if the environment names no usable directory.
    pub fn from_environment(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, SocketPathError> {
        Self::new(env, default_runtime_directory)
    }

    /// Creates the list from an environment. `default_runtime` is the user's default runtime directory.
    fn new(
        env: impl Fn(&str) -> Option<OsString>,
        default_runtime: impl FnOnce() -> Option<PathBuf>,
    ) -> Result<Self, SocketPathError> {
        let absolute = |variable: &'static str| match env(variable).filter(|v| !v.is_empty()) {
            None => Ok(None),
            Some(v) if Path::new(&v).is_absolute() => Ok(Some(PathBuf::from(v))),
            Some(v) => Err(SocketPathError::Relative { variable, value: v.to_string_lossy().into_owned() }),
        };
        let mut all = Vec::new();
        if let Some(home) = absolute(HOME_VARIABLE)? {
            all.push(home.join("run/socket"));
        } else {
            // A client's runtime directory can differ from the login session's, for example in a snap. A daemon started
            // by a shim uses the login session's.
            let runtimes = absolute("XDG_RUNTIME_DIR")?.into_iter().chain(default_runtime());
            for socket in runtimes.map(|runtime| runtime.join("ironcurtain/socket")) {
                if !all.contains(&socket) {
                    all.push(socket);
                }
            }
            all.extend(absolute("HOME")?.map(|home| home.join(".local/state/ironcurtain/run/socket")));
        }
        let mut fitting = all.iter().filter(|socket| socket.as_os_str().len() <= MAX_SOCKET_PATH).cloned();
        match (fitting.next(), all.first()) {
            (Some(first), _) => Ok(Self { first, others: fitting.collect() }),
            (None, Some(long)) => Err(SocketPathError::TooLong(long.to_string_lossy().into_owned())),
            (None, None) => Err(SocketPathError::Unknown),
        }
    }

    /// Returns the path of the socket on which a new daemon listens.
    #[must_use]
    pub fn first(&self) -> &Path {
        &self.first
    }

    /// Connects to the daemon. Returns `None` if no daemon is listening.
    ///
    /// # Errors
    /// [`ConnectError`] if a socket exists and connecting to it fails.
    pub fn connect(&self) -> Result<Option<UnixStream>, ConnectError> {
        for path in std::iter::once(&self.first).chain(&self.others) {
            match UnixStream::connect(path) {
                Ok(stream) => return Ok(Some(stream)),
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
                Err(source) => return Err(ConnectError { path: path.clone(), source }),
            }
        }
        Ok(None)
    }
}

/// Returns the runtime directory created at login (`pam_systemd(8)`), if it exists and only the user can access it.
#[must_use]
pub fn default_runtime_directory() -> Option<PathBuf> {
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let directory = PathBuf::from(format!("/run/user/{user}"));
    let found = std::fs::symlink_metadata(&directory).ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0).then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn socket_paths(
        pairs: &[(&str, &str)],
        default_runtime: Option<&str>,
    ) -> Result<Vec<String>, SocketPathError> {
        let env = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        let sockets = Sockets::new(env, || default_runtime.map(PathBuf::from))?;
        let all = std::iter::once(sockets.first).chain(sockets.others);
        Ok(all.map(|path| path.to_str().unwrap().to_owned()).collect())
    }

    const IN_HOME: &str = "/home/u/.local/state/ironcurtain/run/socket";

    #[test]
    fn most_specific_variable_comes_first() {
        let all = [(HOME_VARIABLE, "/ic"), ("XDG_RUNTIME_DIR", "/run/own"), ("HOME", "/home/u")];
        let default_runtime = Some("/run/user/1");
        assert_eq!(socket_paths(&all, default_runtime).unwrap(), ["/ic/run/socket"]);
        let login = "/run/user/1/ironcurtain/socket";
        assert_eq!(
            socket_paths(&all[1..], default_runtime).unwrap(),
            ["/run/own/ironcurtain/socket", login, IN_HOME]
        );
        let same = [("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/u")];
        assert_eq!(socket_paths(&same, default_runtime).unwrap(), [login, IN_HOME]);
        assert_eq!(
            socket_paths(&all[2..], default_runtime).unwrap(),
            ["/run/user/1/ironcurtain/socket", IN_HOME]
        );
        assert_eq!(socket_paths(&all[2..], None).unwrap(), [IN_HOME]);
        assert_eq!(socket_paths(&[], None), Err(SocketPathError::Unknown));
    }

    #[test]
    fn relative_and_overlong_paths_are_rejected() {
        assert!(matches!(
            socket_paths(&[("HOME", "home/u")], None),
            Err(SocketPathError::Relative { variable: "HOME", .. })
        ));
        let long = format!("/{}", "x".repeat(200));
        assert!(matches!(socket_paths(&[(HOME_VARIABLE, &long)], None), Err(SocketPathError::TooLong(_))));
        assert_eq!(
            socket_paths(&[("XDG_RUNTIME_DIR", &long), ("HOME", "/home/u")], None).unwrap(),
            [IN_HOME]
        );
    }

    #[test]
    fn connects_to_whichever_socket_has_a_listener() {
        let kept = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| kept.path().join(name));
        let sockets = Sockets { first: first.clone(), others: vec![second.clone()] };
        assert!(sockets.connect().unwrap().is_none());
        let listener = UnixListener::bind(&second).unwrap();
        assert!(sockets.connect().unwrap().is_some());
        drop(listener);
        assert!(sockets.connect().unwrap().is_none(), "a socket that was left behind");
    }
}
