//! Checks the setting values of a catalog server.
//!
//! - Checks that paths exist on disk, but starts no program.

use super::KnownServer;
use ironcurtain_config::home::Home;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Kind of value that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// Non-empty text.
    #[default]
    Text,
    /// An existing folder.
    Folder,
    /// An existing program.
    Program,
}

/// Invalid value of a setting.
#[derive(Debug, thiserror::Error)]
#[error("invalid `--set {name}=...`: {problem}")]
pub struct SettingError {
    name: String,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("the value is empty")]
    Empty,
    #[error("`{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("`{}` is not a program", .0.display())]
    NotAProgram(PathBuf),
    #[error("`{}` is not valid UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

impl KnownServer {
    /// Checks the settings and makes their paths absolute. Returns unknown settings unchanged.
    ///
    /// # Errors
    /// Returns a [`SettingError`] if a value is empty, or is not the path of an existing folder or program.
    pub fn checked_settings(
        &self,
        home: &Home,
        settings: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, SettingError> {
        let checked = |(name, value): (&String, &String)| {
            let kind = self.setting_kinds.get(name).copied().unwrap_or_default();
            match checked(kind, value, home) {
                Ok(value) => Ok((name.clone(), value)),
                Err(problem) => Err(SettingError { name: name.clone(), problem }),
            }
        };
        settings.iter().map(checked).collect()
    }
}

fn checked(kind: ValueKind, value: &str, home: &Home) -> Result<String, Problem> {
    if value.trim().is_empty() {
        return Err(Problem::Empty);
    }
    if kind == ValueKind::Text {
        return Ok(value.to_owned());
    }
    let path = match value.strip_prefix("~/") {
        Some(below) => home.user_home.join(below),
        None => PathBuf::from(value),
    };
    let unreadable = |source| Problem::Unreadable { path: path.clone(), source };
    let path = std::path::absolute(&path).map_err(unreadable)?;
    let found = std::fs::metadata(&path).map_err(unreadable)?;
    match kind {
        ValueKind::Folder if !found.is_dir() => Err(Problem::NotAFolder(path)),
        ValueKind::Program if !found.is_file() || found.permissions().mode() & 0o111 == 0 => {
            Err(Problem::NotAProgram(path))
        }
        ValueKind::Text | ValueKind::Folder | ValueKind::Program => text(&path),
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    path.to_str().map(str::to_owned).ok_or_else(|| Problem::NotUtf8(path.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    #[test]
    fn values_must_name_what_the_server_needs() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        let at = |name: &str| dir.path().join(name).display().to_string();
        std::fs::create_dir(at("db")).unwrap();
        std::fs::write(at("notes.txt"), "").unwrap();
        std::fs::write(at("browser"), "").unwrap();
        std::fs::set_permissions(at("browser"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let catalog = Catalog::shipped().unwrap();
        let check = |id: &str, name: &str, value: &str| {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let checked = catalog.find(id).unwrap().checked_settings(&home, &settings);
            checked.map(|mut all| all.remove(name).unwrap()).map_err(|e| e.to_string())
        };
        assert_eq!(check("sqlite", "folder", &at("db")), Ok(at("db")));
        assert_eq!(check("sqlite", "folder", "~/db"), Ok(at("db")));
        assert_eq!(check("playwright", "browser", &at("browser")), Ok(at("browser")));
        assert_eq!(check("slack", "team", "T01"), Ok("T01".to_owned()));
        for (id, name, value, problem) in [
            ("sqlite", "folder", at("nothing"), "No such file"),
            ("sqlite", "folder", at("notes.txt"), "is not a folder"),
            ("playwright", "browser", at("notes.txt"), "is not a program"),
            ("playwright", "browser", at("db"), "is not a program"),
            ("slack", "team", " ".to_owned(), "the value is empty"),
        ] {
            let refused = check(id, name, &value).unwrap_err();
            let start = format!("invalid `--set {name}=...`: ");
            assert!(refused.starts_with(&start) && refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn kinds_belong_to_settings() {
        for known in Catalog::shipped().unwrap().iter() {
            assert!(known.setting_kinds.keys().all(|name| known.settings.contains_key(name)), "{}", known.id);
        }
    }
}
