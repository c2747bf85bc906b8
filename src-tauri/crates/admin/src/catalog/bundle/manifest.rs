//! Manifest of a bundle: its description, its start command and the settings that the user fills in.
//!
//! - Ignores unknown keys, because manifests contain more than IronCurtain needs.
//! - Suggested files and folders are displayed but never used as defaults.

use super::error::BundleError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// File name of the manifest.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// Maximum size of the manifest: 1 MiB.
const MAX_LEN: u64 = 1024 * 1024;

/// Maximum number of settings in a manifest.
const MAX_SETTINGS: usize = 100;

/// Manifest of a bundle.
#[derive(Debug, Clone, Deserialize)]
pub struct BundleManifest {
    /// Default name of the server.
    pub name: String,
    /// Display name.
    #[serde(default)]
    pub display_name: String,
    /// Description by the author.
    #[serde(default)]
    pub description: String,
    /// Author named in the manifest, unverified.
    #[serde(default)]
    pub author: BundleAuthor,
    pub(super) server: BundleServer,
    /// Settings that the user fills in, by key.
    #[serde(default)]
    pub user_config: BTreeMap<String, BundleSetting>,
}

/// Author of a bundle.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct BundleAuthor {
    /// Name of the author.
    #[serde(default)]
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct BundleServer {
    pub(super) mcp_config: BundleCommand,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct BundleCommand {
    pub(super) command: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) platform_overrides: BTreeMap<String, PlatformOverride>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PlatformOverride {
    pub(super) command: Option<String>,
    pub(super) args: Option<Vec<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// A setting that the user fills in.
#[derive(Debug, Clone, Deserialize)]
pub struct BundleSetting {
    #[serde(rename = "type")]
    kind: String,
    /// Short description of the setting.
    #[serde(default)]
    pub title: String,
    /// Longer description of the setting.
    #[serde(default)]
    pub description: String,
    /// `true` if the setting requires a value.
    #[serde(default)]
    pub required: bool,
    /// `true` if the setting may have several values.
    #[serde(default)]
    pub multiple: bool,
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
}

/// Type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Toggle,
    /// A folder.
    Folder,
    /// A file.
    File,
    /// Text that is stored as a secret.
    Secret,
}

/// The user's values for a bundle's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BundleAnswers {
    /// Values of each setting, by key.
    pub values: BTreeMap<String, Vec<String>>,
    /// Keys of the optional secrets that the user omitted.
    pub omitted_secrets: BTreeSet<String>,
}

impl BundleManifest {
    pub(super) fn read(folder: &Path) -> Result<Self, BundleError> {
        let mut text = String::new();
        let read = File::open(folder.join(MANIFEST_FILE))
            .and_then(|file| file.take(MAX_LEN + 1).read_to_string(&mut text));
        let length = read.map_err(BundleError::NoManifest)?;
        // This cast is lossless, because `usize` has at most 64 bits.
        if length as u64 > MAX_LEN {
            return Err(BundleError::ManifestTooLarge(MAX_LEN, MAX_SETTINGS));
        }
        let manifest: Self = serde_json::from_str(&text)?;
        if manifest.user_config.len() > MAX_SETTINGS {
            return Err(BundleError::ManifestTooLarge(MAX_LEN, MAX_SETTINGS));
        }
        Ok(manifest)
    }
}

impl BundleSetting {
    /// Returns the type of the setting's value. Treats an unknown type as text.
    #[must_use]
    pub fn kind(&self) -> SettingKind {
        match self.kind.as_str() {
            _ if self.sensitive => SettingKind::Secret,
            "directory" => SettingKind::Folder,
            "file" => SettingKind::File,
            "number" => SettingKind::Number,
            "boolean" => SettingKind::Toggle,
            _ => SettingKind::Text,
        }
    }

    /// Returns `true` if the value is the path of a file or folder.
    #[must_use]
    pub fn is_path(&self) -> bool {
        matches!(self.kind(), SettingKind::Folder | SettingKind::File)
    }

    /// Returns the default values suggested by the bundle.
    #[must_use]
    pub fn suggested(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        match &self.default {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values.iter().map(text).collect(),
            Some(value) => vec![text(value)],
        }
    }

    /// Returns the values of the setting, or `None` if the setting is optional and has no value.
    pub(super) fn values(
        &self,
        key: &str,
        server: &str,
        answers: &BundleAnswers,
    ) -> Result<Option<Vec<String>>, BundleError> {
        let values = answers.values.get(key);
        if self.kind() == SettingKind::Secret {
            let secret = secret_name(server, key);
            return match values {
                Some(_) => Err(BundleError::Secret(key.to_owned(), secret)),
                None if !self.required && answers.omitted_secrets.contains(key) => Ok(None),
                None => Ok(Some(vec![format!("keyring:{secret}")])),
            };
        }
        if let Some(values) = values.filter(|values| !self.required || !values.is_empty()) {
            values.iter().try_for_each(|value| self.check_value(key, value))?;
            return match values.as_slice() {
                [] | [_] => Ok(Some(values.clone())),
                several if self.multiple => Ok(Some(several.to_vec())),
                several => Err(BundleError::SeveralValues(key.to_owned(), several.len())),
            };
        }
        let suggested = self.suggested();
        // Only the user may choose a file or folder.
        if !self.is_path() && !suggested.is_empty() {
            return Ok(Some(suggested));
        }
        if !self.required {
            return Ok(None);
        }
        let suggestion = match suggested.as_slice() {
            [] => String::new(),
            all => format!(" (suggested: `{}`)", all.join("`, `")),
        };
        Err(BundleError::MissingSetting { name: key.to_owned(), title: self.title.clone(), suggestion })
    }

    fn check_value(&self, key: &str, value: &str) -> Result<(), BundleError> {
        let invalid = |kind: String| {
            Err(BundleError::InvalidValue { name: key.to_owned(), value: value.to_owned(), kind })
        };
        match self.kind() {
            SettingKind::Folder | SettingKind::File => {
                let exists = Path::new(value).is_absolute() && Path::new(value).exists();
                if exists { Ok(()) } else { Err(BundleError::PathNotFound(key.to_owned(), value.to_owned())) }
            }
            SettingKind::Number => {
                let (min, max) = (self.min.unwrap_or(f64::MIN), self.max.unwrap_or(f64::MAX));
                let is_in_range = value.parse::<f64>().is_ok_and(|number| (min..=max).contains(&number));
                if is_in_range { Ok(()) } else { invalid(self.range()) }
            }
            SettingKind::Toggle if !matches!(value, "true" | "false") => {
                invalid("`true` or `false`".to_owned())
            }
            SettingKind::Toggle | SettingKind::Text | SettingKind::Secret => Ok(()),
        }
    }

    /// Describes the range of allowed numbers.
    fn range(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("a number from {min} to {max}"),
            (Some(min), None) => format!("a number of at least {min}"),
            (None, Some(max)) => format!("a number of at most {max}"),
            (None, None) => "a number".to_owned(),
        }
    }
}

/// Returns the name under which the secret of a server's setting is stored.
#[must_use]
pub fn secret_name(server: &str, key: &str) -> String {
    format!("{server}-{key}")
}
