//! A bundle (`.mcpb`), in which makers pack a server for desktop clients: read as a server that is to be added.
//!
//! - It gets the least, as every server that nobody knows: it reads what is in the bundle, and writes to a folder of its own.
//! - A folder that it asks for is one that the person names, and is opened by nothing here: it is proposed to them for each agent.
//!   What its maker proposes is said and not taken.
//! - What is to be kept secret stands in its entry as `keyring:NAME` and nowhere else.

mod unpacked;

pub use unpacked::{UnpackError, unpack};

use super::Addition;
use ironcurtain_daemon::home::Home;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The file of a bundle that describes it.
const MANIFEST: &str = "manifest.json";

/// A bundle's description of itself. It has more keys than we need.
#[derive(Debug, Deserialize)]
struct Manifest {
    name: String,
    server: ServerOf,
    #[serde(default)]
    user_config: BTreeMap<String, SettingOf>,
}

#[derive(Debug, Deserialize)]
struct ServerOf {
    mcp_config: StartOf,
}

#[derive(Debug, Deserialize)]
struct StartOf {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, OverrideOf>,
}

#[derive(Debug, Default, Deserialize)]
struct OverrideOf {
    command: Option<String>,
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Something that the person is to say.
#[derive(Debug, Deserialize)]
struct SettingOf {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    default: Option<Value>,
}

/// Why a bundle is not added.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Its description cannot be read.
    #[error("the bundle's `manifest.json` is not understood: {0}")]
    Manifest(#[from] serde_json::Error),
    /// It is no file.
    #[error("the bundle has no `manifest.json`: {0}")]
    NoManifest(std::io::Error),
    /// The person did not say what it needs.
    #[error("it needs `--set {name}=...`: {title}{proposal}")]
    Missing {
        /// The setting.
        name: String,
        /// Its meaning, in its maker's words.
        title: String,
        /// The maker's own proposal.
        proposal: String,
    },
    /// It has no such setting.
    #[error("the bundle has no setting `{0}`; it has `{1}`")]
    Unknown(String, String),
    /// A folder or file that the person named is none.
    #[error("`--set {0}`: `{1}` is no absolute path of a file or folder that is there")]
    NoPath(String, String),
    /// A secret was given where everybody can read it.
    #[error(
        "`{0}` is a secret, which is not for a command line: leave it out here, and keep it with `ironcurtain secrets set {1}`"
    )]
    Secret(String, String),
    /// Something in its command cannot be filled in.
    #[error("the bundle's command has `{0}`, which is not known")]
    Placeholder(String),
}

impl Addition {
    /// The server of a bundle that lies unpacked in `folder`.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn bundle(
        home: &Home,
        folder: &Path,
        name: Option<&str>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, BundleError> {
        let text = std::fs::read_to_string(folder.join(MANIFEST)).map_err(BundleError::NoManifest)?;
        let manifest: Manifest = serde_json::from_str(&text)?;
        let name = name.unwrap_or(&manifest.name).to_owned();
        if let Some(unknown) = settings.keys().find(|key| !manifest.user_config.contains_key(*key)) {
            let known: Vec<&str> = manifest.user_config.keys().map(String::as_str).collect();
            return Err(BundleError::Unknown(unknown.clone(), known.join("`, `")));
        }
        let mut paths = Vec::new();
        let mut values = BTreeMap::new();
        for (key, setting) in &manifest.user_config {
            if let Some(value) = setting.value(key, &name, settings.get(key))? {
                if setting.is_path() {
                    paths.push(value.clone());
                }
                values.insert(key.clone(), value);
            }
        }
        let fill = Fill { folder, home: &home.person, values };
        let entry = fill.entry(manifest.server.mcp_config)?;
        let mut added = Self::least(home, name, entry);
        added.open(folder, &paths);
        Ok(added)
    }

    /// Lets it read the bundle, and proposes the paths that the person named.
    fn open(&mut self, folder: &Path, paths: &[String]) {
        if let Some(files) = self.entry.pointer_mut("/sandbox/filesystem").and_then(Value::as_object_mut) {
            files.insert("allowRead".to_owned(), json!([folder]));
        }
        if let Some(entry) = self.entry.as_object_mut().filter(|_| !paths.is_empty()) {
            entry.insert("worksWith".to_owned(), json!(paths));
        }
    }
}

impl SettingOf {
    fn is_path(&self) -> bool {
        matches!(self.kind.as_str(), "directory" | "file")
    }

    /// Its value; none where it may be left out and was.
    fn value(&self, key: &str, server: &str, given: Option<&String>) -> Result<Option<String>, BundleError> {
        let secret = format!("{server}-{key}");
        if self.sensitive {
            return match given {
                Some(_) => Err(BundleError::Secret(key.to_owned(), secret)),
                None => Ok(Some(format!("keyring:{secret}"))),
            };
        }
        let default = self.default.as_ref().filter(|value| !value.is_null());
        let proposed =
            default.map(|value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
        if let Some(given) = given {
            let there = Path::new(given).is_absolute() && Path::new(given).exists();
            return if self.is_path() && !there {
                Err(BundleError::NoPath(key.to_owned(), given.clone()))
            } else {
                Ok(Some(given.clone()))
            };
        }
        // A folder is the person's to give.
        match proposed.clone().filter(|_| !self.is_path()) {
            None if self.required => Err(BundleError::Missing {
                name: key.to_owned(),
                title: self.title.clone(),
                proposal: proposed.map_or_else(String::new, |text| format!(" (it proposes `{text}`)")),
            }),
            value => Ok(value),
        }
    }
}

/// The things that stand for `${...}` in a bundle's command.
struct Fill<'a> {
    folder: &'a Path,
    home: &'a Path,
    values: BTreeMap<String, String>,
}

impl Fill<'_> {
    fn entry(&self, start: StartOf) -> Result<Map<String, Value>, BundleError> {
        let StartOf { command, args, mut env, mut platform_overrides } = start;
        let here = platform_overrides.remove("linux").unwrap_or_default();
        env.extend(here.env);
        let args = here.args.unwrap_or(args);
        let args: Vec<String> = args
            .iter()
            // What was left out leaves no argument.
            .filter_map(|text| self.filled(text).transpose())
            .collect::<Result<_, _>>()?;
        let mut filled = Map::new();
        for (key, text) in env {
            if let Some(text) = self.filled(&text)? {
                filled.insert(key, json!(text));
            }
        }
        let command = self.filled(&here.command.unwrap_or(command))?.unwrap_or_default();
        let fields = [("command", json!(command)), ("args", json!(args)), ("env", Value::Object(filled))];
        Ok(fields.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
    }

    /// A text with everything filled in; none where it has a setting in it that was left out.
    fn filled(&self, text: &str) -> Result<Option<String>, BundleError> {
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (word, after) =
                after.split_once('}').ok_or_else(|| BundleError::Placeholder(text.to_owned()))?;
            done.push_str(before);
            match (word, word.strip_prefix("user_config.")) {
                ("__dirname", _) => done.push_str(&self.folder.display().to_string()),
                ("HOME", _) => done.push_str(&self.home.display().to_string()),
                ("/" | "pathSeparator", _) => done.push('/'),
                (_, Some(key)) => match self.values.get(key) {
                    Some(value) => done.push_str(value),
                    None => return Ok(None),
                },
                _ => return Err(BundleError::Placeholder(format!("${{{word}}}"))),
            }
            rest = after;
        }
        done.push_str(rest);
        Ok(Some(done))
    }
}

#[cfg(test)]
mod tests;
