//! Where the daemon's socket is. The one thing every program must agree on before the first word.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment variable that puts everything under one directory (tests, demos, portable use).
pub const HOME_VARIABLE: &str = "IRONCURTAIN_HOME";

/// Length of `sun_path` on Linux less its final NUL; macOS has 104. See `unix(7)`.
const MAX_SOCKET_PATH: usize = 103;

/// Why there is no place for the socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
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

/// The socket of this user's daemon, from the environment given as a function.
///
/// # Errors
/// [`PlaceError`], when the environment names no usable directory.
pub fn socket_path(env: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, PlaceError> {
    let absolute = |variable: &'static str| match env(variable).filter(|v| !v.is_empty()) {
        None => Ok(None),
        Some(v) if Path::new(&v).is_absolute() => Ok(Some(PathBuf::from(v))),
        Some(v) => Err(PlaceError::Relative { variable, value: v.to_string_lossy().into_owned() }),
    };
    let socket = if let Some(home) = absolute(HOME_VARIABLE)? {
        home.join("run/socket")
    } else if let Some(runtime) = absolute("XDG_RUNTIME_DIR")? {
        runtime.join("ironcurtain/socket")
    } else if let Some(home) = absolute("HOME")? {
        home.join(".local/state/ironcurtain/run/socket")
    } else {
        return Err(PlaceError::Unknown);
    };
    if socket.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(PlaceError::TooLong(socket.to_string_lossy().into_owned()));
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pairs: &[(&str, &str)]) -> Result<PathBuf, PlaceError> {
        socket_path(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [(HOME_VARIABLE, "/ic"), ("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/u")];
        assert_eq!(at(&all), Ok("/ic/run/socket".into()));
        assert_eq!(at(&all[1..]), Ok("/run/user/1/ironcurtain/socket".into()));
        assert_eq!(at(&all[2..]), Ok("/home/u/.local/state/ironcurtain/run/socket".into()));
        assert_eq!(at(&[]), Err(PlaceError::Unknown));
    }

    #[test]
    fn relative_and_overlong_places_are_refused() {
        assert!(matches!(at(&[("HOME", "home/u")]), Err(PlaceError::Relative { variable: "HOME", .. })));
        assert!(matches!(
            at(&[(HOME_VARIABLE, &format!("/{}", "x".repeat(200)))]),
            Err(PlaceError::TooLong(_))
        ));
    }
}
