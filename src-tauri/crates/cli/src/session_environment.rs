//! The login session's environment, for a trusted process that an agent client's shim starts.
//!
//! - The shim's environment is untrusted, because client settings in a repository can set any variable. Only its home
//!   directory and language variables are kept, and its search path is appended to the session's.
//! - Display, bus and `XDG_*` variables are taken from the systemd user manager, logind and the sockets in the runtime
//!   directory.

mod desktop;

use desktop::Desktop;
use ironcurtain_config::home::Account;
use ironcurtain_protocol::{HOME_VARIABLE, default_runtime_directory};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Variables that select the home directory. The shim's values are kept so that the shim and the trusted process use
/// the same files. An unusual home directory causes a warning ([`ironcurtain_config::home::HomeOverride`]).
const HOMES: [&str; 2] = ["HOME", HOME_VARIABLE];

/// Variables for which the shim's values take precedence.
const LANGUAGE: [&str; 2] = ["LANG", "LC_ALL"];

/// Variables that name a display.
const DISPLAYS: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];

// Variables of the user's session, which are set or removed but never inherited.
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";
const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// Search path if the systemd user manager has none (`login.defs(5)`).
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names and values of environment variables.
type Variables = Vec<(OsString, OsString)>;

/// Environment of the trusted process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnvironment(Variables);

/// Sources from which the environment is built.
#[derive(Debug, Default)]
struct Sources {
    account: Option<Account>,
    /// Runtime directory created at login by `pam_systemd(8)`.
    runtime: Option<PathBuf>,
    /// Environment of the systemd user manager.
    manager: Variables,
    /// Display found without the user manager.
    desktop: Option<Desktop>,
    caller: Variables,
}

impl SessionEnvironment {
    /// Determines the environment of the user's session.
    pub async fn find() -> Self {
        let runtime = default_runtime_directory();
        let bus = runtime.as_deref().and_then(own_bus);
        let manager = match &bus {
            Some(bus) => desktop::user_manager(bus).await.unwrap_or_default(),
            None => Variables::new(),
        };
        let desktop = if names_display(&manager) { None } else { Desktop::find(runtime.as_deref()).await };
        let caller = std::env::vars_os().collect();
        Self::from(Sources { account: Account::current(), runtime, manager, desktop, caller })
    }

    fn from(sources: Sources) -> Self {
        let Sources { account, runtime, manager, desktop, caller } = sources;
        let mut all = Self(manager);
        for name in HOMES {
            all.set(name, value(&caller, name).map(OsStr::to_owned));
        }
        for name in LANGUAGE {
            if let Some(chosen) = value(&caller, name) {
                all.set(name, Some(chosen.to_owned()));
            }
        }
        let path = search_path(value(&all.0, "PATH"), value(&caller, "PATH"));
        all.set("PATH", Some(path));
        all.set(BUS, runtime.as_deref().and_then(own_bus).map(Into::into));
        all.set(RUNTIME, runtime.map(Into::into));
        if let Some(Account { name, home }) = account {
            all.set_missing("HOME", home.into_os_string());
            all.set("USER", Some(name.clone().into()));
            all.set("LOGNAME", Some(name.into()));
        }
        if let Some((name, value)) = desktop.map(Desktop::variable) {
            all.set_missing(name, value);
        }
        all
    }

    /// Returns `true` if the environment names a display on which the app can ask the user.
    pub fn has_display(&self) -> bool {
        names_display(&self.0)
    }

    /// Iterates over all variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    pub fn get(&self, name: &str) -> Option<OsString> {
        value(&self.0, name).map(OsStr::to_owned)
    }

    fn set(&mut self, name: &str, value: Option<OsString>) {
        self.0.retain(|(other, _)| other != name);
        self.0.extend(value.map(|value| (name.into(), value)));
    }

    fn set_missing(&mut self, name: &str, new: OsString) {
        if value(&self.0, name).is_none() {
            self.set(name, Some(new));
        }
    }
}

fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    let found = variables.iter().rev().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}

fn names_display(variables: &Variables) -> bool {
    DISPLAYS.iter().any(|name| value(variables, name).is_some())
}

/// Returns the session's search path, followed by the absolute directories that only the shim's path contains.
///
/// The shim's directories come last, so they can only add programs that the session lacks, such as a Node.js installed
/// by `nvm`. The path is used to find servers and `srt`, but not bubblewrap or git.
fn search_path(session: Option<&OsStr>, caller: Option<&OsStr>) -> OsString {
    let mut all: Vec<PathBuf> = std::env::split_paths(session.unwrap_or(OsStr::new(USUAL_PATH))).collect();
    for directory in caller.map(std::env::split_paths).into_iter().flatten() {
        if directory.is_absolute() && !all.contains(&directory) {
            all.push(directory);
        }
    }
    // Cannot fail, because the entries come from splitting a search path.
    std::env::join_paths(all).unwrap_or_else(|_| USUAL_PATH.into())
}

/// Returns the address of the user's bus, or `None` if its socket is not in the runtime directory.
fn own_bus(runtime: &Path) -> Option<String> {
    is_own_socket(&runtime.join("bus")).then(|| format!("unix:path={}", runtime.join("bus").display()))
}

fn is_own_socket(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn sorted(environment: &SessionEnvironment) -> Vec<(String, String)> {
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        let mut all: Vec<_> =
            environment.variables().map(|(name, value)| (text(name), text(value))).collect();
        all.sort();
        all
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Returns an environment that a hostile repository could pass to a shim.
    fn hostile() -> Variables {
        variables(&[
            ("LD_PRELOAD", "/repo/evil.so"),
            ("DISPLAY", ":66"),
            ("WAYLAND_DISPLAY", "/repo/wayland"),
            ("XAUTHORITY", "/repo/auth"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/repo/bus"),
            ("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/repo/bus"),
            ("XDG_RUNTIME_DIR", "/repo/run"),
            ("XDG_CONFIG_HOME", "/repo/config"),
            ("GTK_MODULES", "/repo/evil.so"),
            ("SSL_CERT_FILE", "/repo/ca.pem"),
            ("PATH", "/repo/bin:relative:/usr/bin"),
            ("HOME", "/home/u"),
            ("LANG", "C.UTF-8"),
        ])
    }

    #[test]
    fn caller_cannot_choose_display_bus_or_libraries() {
        let runtime = tempfile::tempdir().unwrap();
        let bus = runtime.path().join("bus");
        let _bus = UnixListener::bind(&bus).unwrap();
        let found = SessionEnvironment::from(Sources {
            account: Some(Account { name: "u".into(), home: "/home/u".into() }),
            runtime: Some(runtime.path().into()),
            manager: variables(&[
                ("DISPLAY", ":0"),
                ("XAUTHORITY", "/run/user/1/auth"),
                ("XDG_CONFIG_HOME", "/home/u/cfg"),
                (HOME_VARIABLE, "/home/u/other"),
                ("PATH", "/home/u/bin:/usr/bin"),
                ("LC_ALL", "de_DE.UTF-8"),
            ]),
            desktop: None,
            caller: hostile(),
        });
        assert!(found.has_display());
        let bus = format!("unix:path={}", bus.display());
        let expected = pairs(&[
            (BUS, &bus),
            ("DISPLAY", ":0"),
            ("HOME", "/home/u"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("LOGNAME", "u"),
            ("PATH", "/home/u/bin:/usr/bin:/repo/bin"),
            ("USER", "u"),
            ("XAUTHORITY", "/run/user/1/auth"),
            ("XDG_CONFIG_HOME", "/home/u/cfg"),
            (RUNTIME, runtime.path().to_str().unwrap()),
        ]);
        assert_eq!(sorted(&found), expected);
    }

    #[test]
    fn without_a_session_the_callers_display_is_ignored() {
        let found = SessionEnvironment::from(Sources { caller: hostile(), ..Sources::default() });
        assert!(!found.has_display());
        let expected =
            [("HOME", "/home/u"), ("LANG", "C.UTF-8"), ("PATH", "/usr/local/bin:/usr/bin:/bin:/repo/bin")];
        assert_eq!(sorted(&found), pairs(&expected));
    }

    #[test]
    fn home_comes_from_the_caller_or_else_from_the_account() {
        let account = || Some(Account { name: "u".into(), home: "/home/u".into() });
        let home = |caller: Variables| {
            let found =
                SessionEnvironment::from(Sources { account: account(), caller, ..Sources::default() });
            (found.get("HOME").unwrap(), found.get(HOME_VARIABLE))
        };
        assert_eq!(home(Variables::new()), ("/home/u".into(), None));
        let chosen = variables(&[("HOME", "/other"), (HOME_VARIABLE, "/other/ic")]);
        assert_eq!(home(chosen), ("/other".into(), Some("/other/ic".into())));
    }

    #[test]
    fn detected_display_is_used_if_the_user_manager_has_none() {
        let sources = Sources {
            manager: variables(&[("DISPLAY", "")]),
            desktop: Some(Desktop::Wayland("wayland-1".into())),
            ..Sources::default()
        };
        let found = SessionEnvironment::from(sources);
        assert_eq!(found.get("WAYLAND_DISPLAY"), Some("wayland-1".into()));
    }
}
