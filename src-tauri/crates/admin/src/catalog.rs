//! Known servers: what each is, where it comes from, an entry of `mcp-servers.json` that lets it do its work and no
//! more, and what its tools mean. Shipped inside of the program.
//!
//! - Plain data and pure functions: nothing is looked up or installed here, and only `add` and [`Bundle::open`] write.
//! - A key that is not known refuses the whole catalog, so no template means less than it says.
//! - What is filled in for a person is what is tested against the real servers.

mod add;
mod addition;
mod bundle;
mod fill;
mod foreign;

pub use add::{AddError, AddRequest, AddedServer, add, add_server, candidates};
pub use addition::{Addition, AdditionChoices, AdditionError};
pub use bundle::{
    BUNDLE_ENDINGS, Bundle, BundleAnswers, BundleAuthor, BundleError, BundleManifest, BundleSetting,
    SettingKind, UnpackError, secret_name,
};
pub use fill::EntryValues;
pub(crate) use foreign::{Checked, checked};
pub use foreign::{ForeignTextError, GivenSecrets};

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

/// Why a known server cannot be had as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// An entry that ships with the program is damaged.
    #[error("the catalog's entry `{id}` is not understood: {problem}")]
    Damaged {
        /// Which entry.
        id: String,
        /// The error in it.
        problem: String,
    },
    /// It needs to be told something.
    #[error("`{id}` needs `--set {name}=...`: {about}")]
    Unset {
        /// Which entry.
        id: String,
        /// The setting that is missing.
        name: String,
        /// Its meaning, for people.
        about: String,
    },
    /// It was told something it does not take.
    #[error("`{id}` has no setting `{name}`")]
    NoSetting {
        /// Which entry.
        id: String,
        /// The setting that was given.
        name: String,
    },
    /// It comes with no package that could be in a folder.
    #[error("`{id}` comes with no package, so there is no folder to take it from")]
    NoPackage {
        /// Which entry.
        id: String,
    },
    /// A path cannot be written into a JSON file.
    #[error("`{0}` is not UTF-8")]
    Path(String),
}

/// All known servers, in the order they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog(Vec<KnownServer>);

impl Catalog {
    /// The catalog that ships with the program.
    ///
    /// # Errors
    /// [`CatalogError::Damaged`].
    pub fn shipped() -> Result<Self, CatalogError> {
        SHIPPED.iter().map(|(id, text)| KnownServer::read(id, text)).collect::<Result<_, _>>().map(Self)
    }

    /// The known server of this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&KnownServer> {
        self.0.iter().find(|known| known.id == id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &KnownServer> {
        self.0.iter()
    }
}

/// One known server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownServer {
    /// Version of the format; 1.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u32,
    /// Its name in commands.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Its purpose, in a sentence.
    pub about: String,
    /// Its origin.
    pub source: Source,
    /// The things that must be there before, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The oldest version of Node.js whose requests use the sandbox's proxy, for a server that needs the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_node: Option<u32>,
    /// The settings that must be given when it is added, each with its meaning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Its entry in `mcp-servers.json`, but for the command. `{data}` is a folder of its own, `{NAME}` a setting.
    entry: Template,
    /// Why its sandbox is as it is.
    pub why: String,
    /// The server whose shipped annotations are its own, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools_of: Option<String>,
    /// The meaning of its tools, as in `tool-annotations.json`; empty where nobody has looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<Map<String, Value>>"))]
    tools: Vec<Map<String, Value>>,
    /// Tools that are not annotated on purpose, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
}

/// The origin of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "registry", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// With IronCurtain.
    Own {
        /// Its program.
        program: String,
    },
    /// From npm.
    Npm {
        /// The package.
        package: String,
        /// The version that was looked at.
        version: String,
        /// The script in the package.
        program: String,
    },
    /// From `PyPI`.
    Pypi {
        /// The package.
        package: String,
        /// The version that was looked at.
        version: String,
        /// The module that is run where it lies in a folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<String>,
        /// The script that is run there, of a package without such a module.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
        /// Packages that it needs in versions that it does not name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<String>,
    },
}

/// The entry of a known server, but for the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Template {
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// Variables it is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    /// Variables of the person's that it is given, secrets among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pass_env: Vec<String>,
    /// `replace` for a server that writes a new file and renames it over the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_writes: Option<String>,
    /// Its containment.
    #[cfg_attr(test, schemars(with = "tests::SandboxSchema"))]
    sandbox: Map<String, Value>,
}

impl KnownServer {
    fn read(id: &str, text: &str) -> Result<Self, CatalogError> {
        let damaged = |problem: String| CatalogError::Damaged { id: id.to_owned(), problem };
        let known: Self = serde_json::from_str(text).map_err(|e| damaged(e.to_string()))?;
        let sandbox = Value::Object(known.entry.sandbox.clone());
        serde_json::from_value::<SandboxSettings>(sandbox).map_err(|e| damaged(e.to_string()))?;
        match (known.schema_version, known.id == id) {
            (1, true) => Ok(known),
            (1, false) => Err(damaged(format!("its id is `{}`", known.id))),
            (n, _) => Err(damaged(format!("`schemaVersion` is {n}; this program knows 1"))),
        }
    }

    /// The meaning of its tools, as the part of `tool-annotations.json` for a server of this name; nothing where that is not
    /// known.
    ///
    /// # Errors
    /// [`CatalogError::Damaged`].
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
        let damaged = |problem: String| CatalogError::Damaged { id: self.id.clone(), problem };
        let mut file: File =
            serde_json::from_str(defaults::ANNOTATIONS_JSON).map_err(|e| damaged(e.to_string()))?;
        let tools = file.servers.remove(server);
        Ok(tools.ok_or_else(|| damaged(format!("no annotations ship for `{server}`")))?.tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::GitConfigSettings;
    use ironcurtain_daemon::containment::default_git_config;
    use ironcurtain_policy::Annotations;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
    use std::borrow::Cow;

    /// The schema of an entry's `sandbox`, which stands in that of `mcp-servers.json`.
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
    fn the_shipped_schema_is_that_of_the_type() {
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
    fn a_server_that_changes_repositories_writes_their_configuration_guarded() {
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
    fn every_entry_is_read_and_its_annotations_load() {
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
    fn what_is_not_understood_refuses_the_entry() {
        let time = SHIPPED.iter().find(|(id, _)| *id == "time").unwrap().1;
        assert!(KnownServer::read("time", time).is_ok());
        for (from, to, problem) in [
            ("\"title\"", "\"titel\"", "unknown field `titel`"),
            ("\"module\"", "\"modul\"", "unknown field `modul`"),
            ("\"pypi\"", "\"pipy\"", "unknown variant `pipy`"),
            ("\"view\"", "\"vista\"", "unknown field `vista`"),
            ("\"id\": \"time\"", "\"id\": \"thyme\"", "its id is `thyme`"),
            ("\"schemaVersion\": 1", "\"schemaVersion\": 2", "`schemaVersion` is 2"),
        ] {
            let error = KnownServer::read("time", &time.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
