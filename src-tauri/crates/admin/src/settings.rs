//! Changes values in `config.json` and validates the result before it is written.

use crate::file_edit::{self, FileEditError};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, ConfigError, read};
use serde_json::Value;
use std::path::Path;

/// Error from changing a setting.
#[derive(Debug, thiserror::Error)]
pub enum ConfigChangeError {
    /// The old or new file is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
}

/// Writes either all of the given settings or none. Returns the new configuration.
///
/// # Errors
/// Returns a [`ConfigChangeError`] on failure, in which case the file is unchanged.
pub fn change_settings(home: &Home, changes: &[(&str, Value)]) -> Result<Config, ConfigChangeError> {
    edit(home, |file, mut text| {
        for (name, value) in changes {
            text = file_edit::set(file, &text, &[*name], value)?;
        }
        Ok(text)
    })
}

/// Applies a function to the text of the file and writes the result. Returns the new configuration.
///
/// # Errors
/// Returns a [`ConfigChangeError`] on failure, in which case the file is unchanged.
pub(crate) fn edit(
    home: &Home,
    change: impl FnOnce(&Path, String) -> Result<String, FileEditError>,
) -> Result<Config, ConfigChangeError> {
    let file = home.config.join("config.json");
    let text = change(&file, read(&file)?.unwrap_or_else(|| "{}\n".to_owned()))?;
    let config = Config::read_from(&file, &text)?;
    file_edit::replace(&file, &text)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_changed_in_place_and_invalid_ones_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/home/u"));
        home.prepare().unwrap();
        let file = home.config.join("config.json");
        std::fs::write(&file, "{\n  \"maxSessions\" : 7 }\n").unwrap();
        let changed = change_settings(&home, &[("questionDeadlineSeconds", json!(60))]).unwrap();
        assert_eq!((changed.question_deadline_seconds, changed.max_sessions), (60, 7));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("{\n  \"maxSessions\" : 7"), "{text}");
        for bad in [("questionDeadlineSeconds", json!(0)), ("deadline", json!(5))] {
            assert!(change_settings(&home, &[("maxSessions", json!(8)), bad]).is_err());
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
