//! The folders that clients keep their configuration in, by platform.
//!
//! - The environment is an argument: nothing here reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variables by which clients have their settings moved.
const MOVED_BY: [&str; 3] = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"];

/// The folders that places are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The person's home directory.
    pub home: PathBuf,
    /// The folder of applications' settings: `$XDG_CONFIG_HOME`, `~/Library/Application Support` or `%APPDATA%`.
    pub config: PathBuf,
    /// `$XDG_CONFIG_HOME` or `~/.config`, also where the platform has another folder; `%APPDATA%` on Windows.
    pub xdg: PathBuf,
    /// The variables that move a client's configuration, of those that are set and not empty.
    pub variables: BTreeMap<String, PathBuf>,
}

/// A folder that a place is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// [`Places::home`].
    Home,
    /// [`Places::config`].
    Config,
    /// [`Places::xdg`].
    Xdg,
    /// The folder in a variable; no place where it is not set.
    Variable(&'static str),
}

/// A file or folder of a client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub base: Base,
    /// Below it, with `/` between parts.
    pub below: &'static str,
}

pub(crate) const fn at(base: Base, below: &'static str) -> Location {
    Location { base, below }
}

impl Places {
    /// The folders of a person with this home, where `variable` reads the environment.
    #[must_use]
    pub fn of(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let set = |name: &str| variable(name).filter(|path| path.is_absolute());
        let xdg = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let (config, xdg) = if cfg!(target_os = "macos") {
            (home.join("Library/Application Support"), xdg)
        } else if cfg!(windows) {
            let roaming = set("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"));
            (roaming.clone(), roaming)
        } else {
            (xdg.clone(), xdg)
        };
        let moved = MOVED_BY.iter().filter_map(|name| Some(((*name).to_owned(), set(name)?)));
        Self { home: home.to_path_buf(), config, xdg, variables: moved.collect() }
    }
}

impl Location {
    /// The path, where there is one.
    pub(crate) fn path(self, places: &Places) -> Option<PathBuf> {
        let base = match self.base {
            Base::Home => &places.home,
            Base::Config => &places.config,
            Base::Xdg => &places.xdg,
            Base::Variable(name) => places.variables.get(name)?,
        };
        Some(base.join(self.below))
    }
}
