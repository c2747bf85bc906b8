//! Folders in which clients store their settings, by platform.
//!
//! - The environment is an argument; this module does not read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Environment variables that set a client's settings folder.
const DIR_VARIABLES: [&str; 3] = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"];

/// Base folders of settings files on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientDirs {
    /// The user's home directory.
    pub home: PathBuf,
    /// Folder for application settings: `$XDG_CONFIG_HOME`, `~/Library/Application Support` or `%APPDATA%`.
    pub config: PathBuf,
    /// `$XDG_CONFIG_HOME` or `~/.config`, including on macOS; `%APPDATA%` on Windows.
    pub xdg: PathBuf,
    /// Settings folders set by environment variables, keyed by variable name.
    pub variables: BTreeMap<String, PathBuf>,
}

/// Base folder of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// [`ClientDirs::home`].
    Home,
    /// [`ClientDirs::config`].
    Config,
    /// [`ClientDirs::xdg`].
    Xdg,
    /// Folder named by this environment variable. The location does not exist if the variable is not set.
    Variable(&'static str),
}

/// Location of a client's file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingsLocation {
    pub base: Base,
    /// Path relative to the base folder, with `/` as separator.
    pub relative: &'static str,
}

pub(crate) const fn location(base: Base, relative: &'static str) -> SettingsLocation {
    SettingsLocation { base, relative }
}

impl ClientDirs {
    /// Determines the folders for a home directory. `variable` must return the value of an environment variable.
    #[must_use]
    pub fn from_environment(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let variable_path = |name: &str| variable(name).filter(|path| path.is_absolute());
        let xdg = variable_path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let (config, xdg) = if cfg!(target_os = "macos") {
            (home.join("Library/Application Support"), xdg)
        } else if cfg!(windows) {
            let roaming = variable_path("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"));
            (roaming.clone(), roaming)
        } else {
            (xdg.clone(), xdg)
        };
        let overridden =
            DIR_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), variable_path(name)?)));
        Self { home: home.to_path_buf(), config, xdg, variables: overridden.collect() }
    }
}

impl SettingsLocation {
    /// Returns the absolute path, or `None` if the variable that contains the base folder is not set.
    pub(crate) fn path(self, dirs: &ClientDirs) -> Option<PathBuf> {
        let base = match self.base {
            Base::Home => &dirs.home,
            Base::Config => &dirs.config,
            Base::Xdg => &dirs.xdg,
            Base::Variable(name) => dirs.variables.get(name)?,
        };
        Some(base.join(self.relative))
    }
}
