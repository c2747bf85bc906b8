//! The person's choices about this window: `window.json` in the configuration folder.

use ironcurtain_daemon::{Home, atomic_file};
use serde::{Deserialize, Serialize};
use std::io;

/// The choices; a file that is missing or not understood means the defaults, since nothing is judged by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preferences {
    pub(super) appearance: Appearance,
}

/// The colours of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Appearance {
    /// As the system's.
    #[default]
    System,
    Light,
    Dark,
}

impl Preferences {
    pub(super) fn load(home: &Home) -> Self {
        let text = std::fs::read_to_string(home.config.join("window.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) fn store(self, home: &Home) -> io::Result<()> {
        atomic_file::replace(&home.config.join("window.json"), &serde_json::to_string_pretty(&self)?)
    }
}
