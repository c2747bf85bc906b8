//! Path of the daemon's socket. The one thing every program must agree on before the first word.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Environment variable that puts everything under one directory (tests, demos, portable use).
pub const HOME_VARIABLE: &str = "IRONCURTAIN_HOME";

/// Length of `sun_path` on Linux less its final NUL; macOS has 104. See `unix(7)`.
const MAX_SOCKET_PATH: usize = 103;

/// Why there is no place for the socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketPathError {
    /// No environment variable tells.
    #[error("none of `IRONCURTAIN_HOME`, `XDG_RUNTIME_DIR` and `HOME` is set; set one of them")]
    Unknown,
    /// A relative directory would mean another place for every program.
    #[error("`{variable}` is `{value}`, which is not an absolute path")]
    Relative {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// Longer than the operating system allows.
    #[error("`{0}` is too long for a socket; set `IRONCURTAIN_HOME` to a shorter directory")]
    TooLong(String),
}

/// The sockets at which this user's daemon may listen. It listens at the first.
///
/// An agent client may start the shim with hardly any environment: what one program is told by a variable, another one
/// finds without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sockets {
    first: PathBuf,
    others: Vec<PathBuf>,
}

/// A socket that somebody listens at, and that cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("IronCurtain could not be reached at `{path}`: {source}")]
pub struct ConnectError {
    path: PathBuf,
    source: io::Error,
}

impl Sockets {
    /// Those of this process's user and environment.
    ///
    /// # Errors
    /// [`SocketPathError`], when the environment names no usable directory.
    pub fn of_user() -> Result<Self, SocketPathError> {
        Self::of_environment(|name| std::env::var_os(name))
    }

    /// Those of this process's user in another environment.
    ///
    /// # Errors
    /// [`SocketPathError`], when the environment names no usable directory.
    pub fn of_environment(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, SocketPathError> {
        Self::new(env, usual_runtime_directory)
    }

    /// From the environment, and the runtime directory of the user where the environment does not name one.
    ///
    /// # Errors
    /// [`SocketPathError`].
    fn new(
        env: impl Fn(&str) -> Option<OsString>,
        usual: impl FnOnce() -> Option<PathBuf>,
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
            // A client may have another one than the login made, as in a snap. A daemon that a shim starts uses the login's.
            let runtimes = absolute("XDG_RUNTIME_DIR")?.into_iter().chain(usual());
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

    /// Path of the socket on which the daemon listens.
    #[must_use]
    pub fn first(&self) -> &Path {
        &self.first
    }

    /// Connects to the daemon; nothing when nobody listens.
    ///
    /// # Errors
    /// [`ConnectError`].
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

/// Returns the runtime directory that a login makes for a user (`pam_systemd(8)`), if it exists and is only theirs.
#[must_use]
pub fn usual_runtime_directory() -> Option<PathBuf> {
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let directory = PathBuf::from(format!("/run/user/{user}"));
    let found = std::fs::symlink_metadata(&directory).ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0).then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn at(pairs: &[(&str, &str)], usual: Option<&str>) -> Result<Vec<String>, SocketPathError> {
        let env = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        let sockets = Sockets::new(env, || usual.map(PathBuf::from))?;
        let all = std::iter::once(sockets.first).chain(sockets.others);
        Ok(all.map(|path| path.to_str().unwrap().to_owned()).collect())
    }

    const IN_HOME: &str = "/home/u/.local/state/ironcurtain/run/socket";

    #[test]
    fn the_most_specific_variable_wins_and_what_is_found_without_one_comes_after() {
        let all = [(HOME_VARIABLE, "/ic"), ("XDG_RUNTIME_DIR", "/run/own"), ("HOME", "/home/u")];
        let usual = Some("/run/user/1");
        assert_eq!(at(&all, usual).unwrap(), ["/ic/run/socket"]);
        let login = "/run/user/1/ironcurtain/socket";
        assert_eq!(at(&all[1..], usual).unwrap(), ["/run/own/ironcurtain/socket", login, IN_HOME]);
        let same = [("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/u")];
        assert_eq!(at(&same, usual).unwrap(), [login, IN_HOME]);
        assert_eq!(at(&all[2..], usual).unwrap(), ["/run/user/1/ironcurtain/socket", IN_HOME]);
        assert_eq!(at(&all[2..], None).unwrap(), [IN_HOME]);
        assert_eq!(at(&[], None), Err(SocketPathError::Unknown));
    }

    #[test]
    fn relative_and_overlong_places_are_refused() {
        assert!(matches!(
            at(&[("HOME", "home/u")], None),
            Err(SocketPathError::Relative { variable: "HOME", .. })
        ));
        let long = format!("/{}", "x".repeat(200));
        assert!(matches!(at(&[(HOME_VARIABLE, &long)], None), Err(SocketPathError::TooLong(_))));
        assert_eq!(at(&[("XDG_RUNTIME_DIR", &long), ("HOME", "/home/u")], None).unwrap(), [IN_HOME]);
    }

    #[test]
    fn a_daemon_is_found_at_whichever_place_it_listens() {
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
