//! The user's preferences for the app's appearance and notifications, stored as `window.json` in the configuration
//! directory.

use crate::consent::NoticeDetail;
use ironcurtain_config::home::Home;
use ironcurtain_paths::atomic_file;
use serde::{Deserialize, Serialize};
use std::io;

/// The user's preferences, with defaults if the file is missing or unreadable. They do not affect any decision about a
/// call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preferences {
    pub(super) appearance: Appearance,
    pub(crate) notifications: NoticeDetail,
    /// `true` if the user has finished or skipped the first steps.
    pub(super) welcomed: bool,
}

/// Colour scheme of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Appearance {
    /// Follows the system's colour scheme.
    #[default]
    System,
    Light,
    Dark,
}

impl Preferences {
    pub(crate) fn load(home: &Home) -> Self {
        let text = std::fs::read_to_string(home.config.join("window.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) fn store(self, home: &Home) -> io::Result<()> {
        atomic_file::replace(&home.config.join("window.json"), &serde_json::to_string_pretty(&self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn preferences_round_trip_and_an_invalid_file_means_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/home/u"));
        home.prepare().unwrap();
        assert_eq!(Preferences::load(&home), Preferences::default());
        let chosen =
            Preferences { appearance: Appearance::Dark, notifications: NoticeDetail::Plain, welcomed: true };
        chosen.store(&home).unwrap();
        assert_eq!(Preferences::load(&home), chosen);
        std::fs::write(home.config.join("window.json"), r#"{ "notifications": "loud" }"#).unwrap();
        assert_eq!(Preferences::load(&home), Preferences::default());
    }
}
