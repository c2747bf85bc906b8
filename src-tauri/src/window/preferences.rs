//! The person's choices about this program's looks and words: `window.json` in the configuration folder.

use crate::consent::NoticeDetail;
use ironcurtain_config::home::Home;
use ironcurtain_paths::atomic_file;
use serde::{Deserialize, Serialize};
use std::io;

/// The choices; a file that is missing or not understood means the defaults, since nothing is judged by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preferences {
    pub(super) appearance: Appearance,
    pub(crate) notifications: NoticeDetail,
    /// The first steps were done, or left.
    pub(super) welcomed: bool,
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
    fn choices_are_kept_and_a_file_that_is_not_understood_means_none() {
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
