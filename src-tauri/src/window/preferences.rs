//! The user's preferences for this program's appearance and notifications: `window.json` in the
//! configuration folder.

use crate::consent::NoticeDetail;
use ironcurtain_config::home::Home;
use ironcurtain_paths::atomic_file;
use serde::{Deserialize, Serialize};
use std::io;

/// User preferences. A missing or unreadable file means the defaults; no decision depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preferences {
    pub(super) appearance: Appearance,
    pub(crate) notifications: NoticeDetail,
    /// The first steps are done or skipped.
    pub(super) welcomed: bool,
}

/// Colours of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Appearance {
    /// Follows the system.
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
