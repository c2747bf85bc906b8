//! Catalog of known servers, embedded in the program. Contains each server's source, a minimal entry for
//! `mcp-servers.json` and tool annotations.
//!
//! - Makes no network requests and installs nothing. Only `add` and [`Bundle::open`] write files, and only the
//!   validation of setting values reads from disk.
//! - An unknown key makes the whole catalog invalid, so no setting is silently ignored.
//! - The generated entries are tested with the real servers.

mod add;
mod addition;
mod addition_error;
mod bundle;
mod command_line;
mod fill;
mod from_documentation;
mod names;
mod settings;
mod snippet;
mod untrusted_entry;

pub use add::{AddError, AddRequest, AddedServer, add, add_server, servers_with_addition};
pub(crate) use addition::DATA_VARIABLES;
pub use addition::{Addition, AdditionChoices};
pub use addition_error::AdditionError;
pub use bundle::{
    BUNDLE_EXTENSIONS, Bundle, BundleAnswers, BundleAuthor, BundleError, BundleManifest, BundleSetting,
    SettingKind, UnpackError, secret_name,
};
pub use command_line::COMMANDS;
pub use fill::EntryValues;
pub use settings::{SettingError, ValueKind};
pub use untrusted_entry::{GivenSecrets, UntrustedEntryError};
pub(crate) use untrusted_entry::{ValidatedEntry, validate};

use ironcurtain_config::SandboxSettings;
use ironcurtain_policy::defaults;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SHIPPED: &[(&str, &str)] = &[
    ("filesystem", include_str!("../catalog/filesystem.json")),
    ("filesystem-reference", include_str!("../catalog/filesystem-reference.json")),
    ("everything", include_str!("../catalog/everything.json")),
    ("memory", include_str!("../catalog/memory.json")),
    ("sequential-thinking", include_str!("../catalog/sequential-thinking.json")),
    ("git", include_str!("../catalog/git.json")),
    ("time", include_str!("../catalog/time.json")),
    ("fetch", include_str!("../catalog/fetch.json")),
    ("github", include_str!("../catalog/github.json")),
    ("brave-search", include_str!("../catalog/brave-search.json")),
    ("slack", include_str!("../catalog/slack.json")),
    ("sqlite", include_str!("../catalog/sqlite.json")),
    ("playwright", include_str!("../catalog/playwright.json")),
    ("context7", include_str!("../catalog/context7.json")),
    ("notion", include_str!("../catalog/notion.json")),
    ("desktop-commander", include_str!("../catalog/desktop-commander.json")),
    ("obsidian", include_str!("../catalog/obsidian.json")),
    ("markitdown", include_str!("../catalog/markitdown.json")),
    ("arxiv", include_str!("../catalog/arxiv.json")),
    ("duckduckgo", include_str!("../catalog/duckduckgo.json")),
];

/// Error from generating a server's entry from the catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// An embedded entry is invalid.
    #[error("invalid catalog entry `{id}`: {problem}")]
    InvalidEntry {
        /// Id of the entry.
        id: String,
        /// Error in the entry.
        problem: String,
    },
    /// A required setting is missing.
    #[error("`{id}` requires `--set {name}=...`: {about}")]
    MissingSetting {
        /// Id of the entry.
        id: String,
        /// Missing setting.
        name: String,
        /// Description of the setting.
        about: String,
    },
    /// A value was given for a setting that the server does not have.
    #[error("unknown setting `{name}` of `{id}`")]
    UnknownSetting {
        /// Id of the entry.
        id: String,
        /// Unknown setting.
        name: String,
    },
    /// A package folder was given for a server without a package.
    #[error("`{id}` is not installed from a package; leave out `--from`")]
    NotAPackage {
        /// Id of the entry.
        id: String,
    },
    /// A path cannot be written to a JSON file.
    #[error("`{0}` is not valid UTF-8")]
    Path(String),
}

/// All servers in the catalog, in display order.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog(Vec<KnownServer>);

impl Catalog {
    /// Returns the catalog embedded in the program.
    ///
    /// # Errors
    /// Returns [`CatalogError::InvalidEntry`] if an embedded entry is invalid.
    pub fn shipped() -> Result<Self, CatalogError> {
        SHIPPED.iter().map(|(id, text)| KnownServer::read(id, text)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the known server with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&KnownServer> {
        self.0.iter().find(|known| known.id == id)
    }

    /// Returns all known servers.
    pub fn iter(&self) -> impl Iterator<Item = &KnownServer> {
        self.0.iter()
    }
}

/// A server in the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownServer {
    /// Format version. Must be 1.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u32,
    /// Id of the server in commands.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Purpose, in one sentence.
    pub about: String,
    /// Origin of the server.
    pub source: Source,
    /// Prerequisites for running the server, as a sentence for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Minimum major version of Node.js that can use the sandbox's proxy, for a server that needs the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_node: Option<u32>,
    /// Required settings and their descriptions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Value kinds of settings that are not plain text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    setting_kinds: BTreeMap<String, ValueKind>,
    /// Entry in `mcp-servers.json` without the command. `{data}` is replaced by the server's data folder and
    /// `{NAME}` by a setting.
    entry: Template,
    /// Explanation of the entry's sandbox settings.
    pub why: String,
    /// Server whose shipped annotations also apply to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools_of: Option<String>,
    /// Annotations of the server's tools, as in `tool-annotations.json`. Empty if the tools have not been reviewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<Map<String, Value>>"))]
    tools: Vec<Map<String, Value>>,
    /// Tools that are deliberately not annotated, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
}

/// Origin of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "registry", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A program that IronCurtain ships.
    Own {
        /// Name of the program.
        program: String,
    },
    /// A package on npm.
    Npm {
        /// Name of the package.
        package: String,
        /// Reviewed version.
        version: String,
        /// Script in the package to start.
        program: String,
    },
    /// A package on `PyPI`.
    Pypi {
        /// Name of the package.
        package: String,
        /// Reviewed version.
        version: String,
        /// Module to run if the user has installed the package in a folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<String>,
        /// Script to run from the package folder if the package has no such module.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
        /// Version constraints for dependencies that the package fails to declare itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<String>,
    },
}

/// Entry of a known server without the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Template {
    /// Arguments appended to the command's own arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    /// Names of variables that are passed from the user's environment, including secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pass_env: Vec<String>,
    /// `replace` for a server that writes a new file and renames it over the old file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_writes: Option<String>,
    /// Sandbox settings.
    #[cfg_attr(test, schemars(with = "tests::SandboxSchema"))]
    sandbox: Map<String, Value>,
}

impl KnownServer {
    fn read(id: &str, text: &str) -> Result<Self, CatalogError> {
        let invalid_entry = |problem: String| CatalogError::InvalidEntry { id: id.to_owned(), problem };
        let known: Self = serde_json::from_str(text).map_err(|e| invalid_entry(e.to_string()))?;
        let sandbox = Value::Object(known.entry.sandbox.clone());
        serde_json::from_value::<SandboxSettings>(sandbox).map_err(|e| invalid_entry(e.to_string()))?;
        match (known.schema_version, known.id == id) {
            (1, true) => Ok(known),
            (1, false) => Err(invalid_entry(format!("expected the id `{id}`, found `{}`", known.id))),
            (n, _) => Err(invalid_entry(format!("unsupported `schemaVersion` {n}, expected 1"))),
        }
    }

    /// Returns the annotations of this server's tools in the format of `tool-annotations.json`, under the server
    /// name `server`. Returns `None` if the catalog has no annotations for this server.
    ///
    /// # Errors
    /// Returns [`CatalogError::InvalidEntry`] if an embedded entry is invalid.
    pub fn annotations(&self, server: &str) -> Result<Option<Value>, CatalogError> {
        let mut tools = match &self.tools_of {
            None => self.tools.clone(),
            Some(other) => self.shipped_tools(other)?,
        };
        for tool in &mut tools {
            tool.insert("serverName".to_owned(), json!(server));
        }
        Ok((!tools.is_empty()).then(|| json!({ "tools": tools })))
    }

    fn shipped_tools(&self, server: &str) -> Result<Vec<Map<String, Value>>, CatalogError> {
        #[derive(Deserialize)]
        struct File {
            servers: BTreeMap<String, Tools>,
        }
        #[derive(Deserialize)]
        struct Tools {
            tools: Vec<Map<String, Value>>,
        }
        let invalid_entry = |problem: String| CatalogError::InvalidEntry { id: self.id.clone(), problem };
        let mut file: File =
            serde_json::from_str(defaults::ANNOTATIONS_JSON).map_err(|e| invalid_entry(e.to_string()))?;
        let tools = file.servers.remove(server);
        Ok(tools.ok_or_else(|| invalid_entry(format!("no annotations ship for `{server}`")))?.tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::GitConfigSettings;
    use ironcurtain_containment::default_git_config;
    use ironcurtain_policy::Annotations;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
    use std::borrow::Cow;

    /// Schema of an entry's `sandbox` object, which refers to the schema of `mcp-servers.json`.
    pub(super) struct SandboxSchema;

    impl JsonSchema for SandboxSchema {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "SandboxSettings".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "$ref": "mcp-servers.schema.json#/$defs/SandboxSettings" })
        }
    }

    #[test]
    fn shipped_schema_is_up_to_date() {
        let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schemas");
        let file = format!("{schemas}/catalog.schema.json");
        let text = serde_json::to_string_pretty(&schema_for!(KnownServer)).unwrap() + "\n";
        if std::env::var_os("IRONCURTAIN_WRITE_SCHEMAS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&file).unwrap() == text,
            "docs/schemas/catalog.schema.json is out of date: run `IRONCURTAIN_WRITE_SCHEMAS=1 cargo test -p ironcurtain-admin schema`"
        );
        let servers = std::fs::read_to_string(format!("{schemas}/mcp-servers.schema.json")).unwrap();
        let servers: Value = serde_json::from_str(&servers).unwrap();
        assert!(servers["$defs"]["SandboxSettings"].is_object(), "the reference leads nowhere");
    }

    #[test]
    fn git_config_is_guarded_for_servers_that_change_repositories() {
        let catalog = Catalog::shipped().unwrap();
        let default = |id: &str| {
            let known = catalog.find(id).unwrap().annotations(id).unwrap().unwrap();
            let file = json!({ "schemaVersion": 1, "servers": { id: known } }).to_string();
            default_git_config(id, &Annotations::from_json(&file, "annotations").unwrap())
        };
        assert_eq!(default("git"), GitConfigSettings::Guarded);
        assert_eq!(default("filesystem"), GitConfigSettings::Closed);
    }

    #[test]
    fn every_entry_and_its_annotations_load() {
        let catalog = Catalog::shipped().unwrap();
        assert_eq!(catalog.iter().count(), SHIPPED.len());
        for known in catalog.iter() {
            let Some(tools) = known.annotations("mine").unwrap() else {
                assert!(known.left_out.is_empty(), "{}", known.id);
                continue;
            };
            let file = json!({ "schemaVersion": 1, "servers": { "mine": tools } }).to_string();
            let annotations = Annotations::from_json(&file, &known.id).unwrap();
            assert!(annotations.tools("mine").count() > 0, "{}", known.id);
            for tool in known.left_out.keys() {
                assert_eq!(annotations.get("mine", tool), None, "{} {tool}", known.id);
            }
        }
    }

    #[test]
    fn invalid_entries_are_rejected() {
        let time = SHIPPED.iter().find(|(id, _)| *id == "time").unwrap().1;
        assert!(KnownServer::read("time", time).is_ok());
        for (from, to, problem) in [
            ("\"title\"", "\"titel\"", "unknown field `titel`"),
            ("\"module\"", "\"modul\"", "unknown field `modul`"),
            ("\"pypi\"", "\"pipy\"", "unknown variant `pipy`"),
            ("\"view\"", "\"vista\"", "unknown field `vista`"),
            ("\"id\": \"time\"", "\"id\": \"thyme\"", "found `thyme`"),
            ("\"schemaVersion\": 1", "\"schemaVersion\": 2", "unsupported `schemaVersion` 2"),
        ] {
            let error = KnownServer::read("time", &time.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
