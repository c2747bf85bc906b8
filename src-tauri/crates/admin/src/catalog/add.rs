//! Adds a server's entry and annotations to the user's configuration.
//!
//! - Keeps existing entries. Replaces an entry only if the user requests it.
//! - Validates the old and new text of both files before writing either file.

use super::{Addition, CatalogError, KnownServer, SettingError};
use crate::file_edit::{self, FileEditError};
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::{Home, HomeError, private_dir};
use ironcurtain_config::{ConfigError, Servers, read};
use ironcurtain_policy::{Annotations, LoadError, defaults};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A server from the catalog to add, with the user's choices.
#[derive(Debug, Clone, Copy)]
pub struct AddRequest<'a> {
    /// Server in the catalog.
    pub known: &'a KnownServer,
    /// Name of the new entry.
    pub name: &'a str,
    /// Folder of the installed package. If `None`, the entry names the package, which must be installed separately.
    pub from: Option<&'a Path>,
    /// Values of the server's settings.
    pub settings: &'a BTreeMap<String, String>,
    /// `true` to replace an existing entry with the same name and its annotations.
    pub replace: bool,
}

/// Files and folders that were written to add a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedServer {
    /// Path of the servers file.
    pub servers: PathBuf,
    /// Path of the annotations file, if annotations were written.
    pub annotations: Option<PathBuf>,
    /// Data folder of the server, if it has one.
    pub data: Option<PathBuf>,
}

/// Error from adding a server.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The entry could not be generated.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A setting has an invalid value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The old or new servers file is invalid.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// The annotations file could not be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The old or new annotations file is invalid.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A folder could not be created.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// An entry with the same name exists.
    #[error(
        "`{name}` already exists in `{file}`; use `--replace` to replace it, or `--name` to choose another name"
    )]
    NameInUse {
        /// File that contains the existing entry.
        file: PathBuf,
        /// Name of the server.
        name: String,
    },
    /// A file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
}

/// Adds a known server to `mcp-servers.json`, and its annotations to `tool-annotations.json`.
///
/// # Errors
/// Returns an [`AddError`] on failure. If one of the files is invalid, both stay unchanged.
pub fn add(home: &Home, request: AddRequest<'_>) -> Result<AddedServer, AddError> {
    let AddRequest { known, name, from, settings, replace } = request;
    let settings = known.checked_settings(home, settings)?;
    add_server(home, &Addition::from_catalog(home, known, name, from, &settings)?, replace)
}

/// Adds a server to `mcp-servers.json`, and its annotations, if any, to `tool-annotations.json`.
///
/// # Errors
/// Returns an [`AddError`] on failure. If one of the files is invalid, both stay unchanged.
pub fn add_server(home: &Home, addition: &Addition, replace: bool) -> Result<AddedServer, AddError> {
    let (servers, after) = servers(home, addition, replace)?;
    let annotations = match &addition.annotations {
        Some(tools) => Some(annotations(home, addition, tools, replace)?),
        None => None,
    };
    let data = addition.data.clone();
    if let Some(data) = &data {
        private_dir(data)?;
    }
    private_dir(&home.policy())?;
    // Writes the annotations first. They are harmless without a server, but a server without annotations could
    // already be used.
    if let Some(change) = &annotations {
        file_edit::replace(&change.file, &change.text)?;
    }
    servers.write(&after)?;
    Ok(AddedServer { servers: servers.file, annotations: annotations.map(|change| change.file), data })
}

/// Returns the configured servers together with the new server. Writes nothing.
///
/// # Errors
/// Returns an [`AddError`] in the same cases as [`add_server`].
pub fn servers_with_addition(home: &Home, addition: &Addition, replace: bool) -> Result<Servers, AddError> {
    let (file, after) = servers(home, addition, replace)?;
    Ok(file.servers(&after)?)
}

/// Returns the servers file and its new text with the server's entry.
fn servers(home: &Home, addition: &Addition, replace: bool) -> Result<(ServersFile, String), AddError> {
    let file = ServersFile::open(home)?;
    if !replace && file.entry(&addition.name).is_ok() {
        return Err(AddError::NameInUse { file: file.file, name: addition.name.clone() });
    }
    let after = file.with_entry(&addition.name, &addition.entry)?;
    Ok((file, after))
}

/// The annotations file and its new text.
struct AnnotationsChange {
    file: PathBuf,
    text: String,
}

fn annotations(
    home: &Home,
    addition: &Addition,
    tools: &Value,
    replace: bool,
) -> Result<AnnotationsChange, AddError> {
    let file = home.policy().join("tool-annotations.json");
    let shown = file.display().to_string();
    let old = read(&file)?.unwrap_or_else(|| defaults::ANNOTATIONS_JSON.to_owned());
    let existing = Annotations::from_json(&old, &shown)?;
    let wanted = json!({ "schemaVersion": 1, "servers": { &addition.name: tools } }).to_string();
    let wanted = Annotations::from_json(&wanted, &shown)?;
    let exists = existing.tools(&addition.name).next().is_some();
    if exists && !replace && !existing.tools(&addition.name).eq(wanted.tools(&addition.name)) {
        return Err(AddError::NameInUse { file, name: addition.name.clone() });
    }
    let text = file_edit::set(&file, &old, &["servers", &addition.name], tools)?;
    Annotations::from_json(&text, &shown)?;
    Ok(AnnotationsChange { file, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{AdditionChoices, Catalog};

    struct Fixture {
        home: Home,
        _dir: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        Fixture { home, _dir: dir }
    }

    fn added(home: &Home, id: &str, name: &str, replace: bool) -> Result<AddedServer, String> {
        let catalog = Catalog::shipped().unwrap();
        let known = catalog.find(id).unwrap();
        let request = AddRequest { known, name, from: None, settings: &BTreeMap::new(), replace };
        add(home, request).map_err(|e| e.to_string())
    }

    fn files(home: &Home) -> [Option<String>; 2] {
        [home.config.join("mcp-servers.json"), home.policy().join("tool-annotations.json")]
            .map(|file| std::fs::read_to_string(file).ok())
    }

    #[test]
    fn existing_entries_are_kept() {
        let fixture = fixture();
        let home = &fixture.home;
        let done = added(home, "memory", "notes", false).unwrap();
        assert_eq!(done.data, Some(home.server_data("notes")));
        assert!(home.server_data("notes").is_dir());
        let servers = Servers::load(home).unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["filesystem", "notes"]);
        let [_, annotations] = files(home);
        let annotations = Annotations::from_json(&annotations.unwrap(), "f").unwrap();
        let shipped = Annotations::from_json(defaults::ANNOTATIONS_JSON, "f").unwrap();
        assert!(annotations.tools("filesystem").eq(shipped.tools("filesystem")));
        assert!(annotations.get("notes", "read_graph").is_some());
        let before = files(home);
        let unannotated = Addition::from_spec(home, "npm:some-mcp", &AdditionChoices::default()).unwrap();
        add_server(home, &unannotated, false).unwrap();
        let after = files(home);
        assert_eq!(before[1], after[1], "no annotations are invented for unknown tools");
        let start = before[0].as_deref().unwrap().trim_end().trim_end_matches('}').trim_end();
        assert!(after[0].as_deref().unwrap().starts_with(start));
    }

    #[test]
    fn nothing_is_replaced_unless_requested() {
        let fixture = fixture();
        let home = &fixture.home;
        added(home, "time", "clock", false).unwrap();
        let before = files(home);
        let refused = added(home, "memory", "clock", false).unwrap_err();
        assert!(refused.contains("`clock` already exists in") && refused.contains("--replace"), "{refused}");
        assert_eq!(files(home), before);
        added(home, "memory", "clock", true).unwrap();
        let annotations = Annotations::from_json(files(home)[1].as_deref().unwrap(), "f").unwrap();
        assert_eq!(annotations.get("clock", "convert_time"), None);
        assert!(annotations.get("clock", "read_graph").is_some());
        let file = home.config.join("mcp-servers.json");
        let off = r#"{ "mcpServers": { "off": { "command": "x", "disabled": true } } }"#;
        std::fs::write(&file, off).unwrap();
        let refused = added(home, "memory", "off", false).unwrap_err();
        assert!(refused.contains("`off` already exists"), "a disabled server exists too: {refused}");
        added(home, "memory", "off", true).unwrap();
        assert_eq!(Servers::load(home).unwrap().names().collect::<Vec<_>>(), ["off"]);
        std::fs::remove_file(&file).unwrap();
        let refused = added(home, "filesystem", "filesystem", false).unwrap_err();
        assert!(refused.contains("`filesystem` already exists"), "{refused}");
        let refused = added(home, "memory", "no/name", false).unwrap_err();
        assert!(refused.contains("its name may contain only"), "{refused}");
    }

    #[test]
    fn invalid_files_are_not_changed() {
        let fixture = fixture();
        let home = &fixture.home;
        for (file, text) in [
            (home.config.join("mcp-servers.json"), "{ \"x\": { \"comand\": \"x\" } }"),
            (home.policy().join("tool-annotations.json"), "{ \"servers\": [] }"),
        ] {
            std::fs::write(&file, text).unwrap();
            let before = files(home);
            let refused = added(home, "time", "time", false).unwrap_err();
            assert!(refused.contains(&*file.file_name().unwrap().to_string_lossy()), "{refused}");
            assert_eq!(files(home), before);
            std::fs::remove_file(&file).unwrap();
        }
        assert!(added(home, "time", "time", false).is_ok());
    }
}
