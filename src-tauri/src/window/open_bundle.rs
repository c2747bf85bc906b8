//! Bundle (`.mcpb`) that the user reviews in the window: its text for the page, and the user's values for its
//! settings.
//!
//! - INVARIANT: the paths for its settings come from a system picker in this process. The page cannot name paths.
//! - Text from the bundle is shortened and escaped before it reaches the page.

use super::file_picker::Picked;
use ironcurtain_admin::catalog::{
    Addition, Bundle, BundleAnswers, BundleError, BundleSetting, SettingKind, secret_name,
};
use ironcurtain_config::home::Home;
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum length of text from a bundle, in characters.
const MAX_LEN: usize = 300;

/// Unpacked bundle, and the paths that the user picked for its settings.
pub(super) struct OpenBundle {
    bundle: Bundle,
    picked: BTreeMap<String, Vec<String>>,
}

/// Values sent by the page. They never include files or folders.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedBundle {
    /// Name of the server, or empty for the default name.
    pub(super) name: String,
    /// Typed values, by setting.
    pub(super) values: BTreeMap<String, Vec<String>>,
    /// Optional secrets that the user omits.
    pub(super) without: BTreeSet<String>,
}

/// Bundle, as the page shows it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct BundleView {
    file: String,
    name: String,
    title: String,
    about: String,
    maker: String,
    settings: Vec<SettingRow>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct SettingRow {
    key: String,
    title: String,
    about: String,
    kind: &'static str,
    required: bool,
    several: bool,
    proposed: Vec<String>,
}

/// Picker that the page must request for a setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathRequest {
    pub(super) title: String,
    pub(super) kind: Picked,
    pub(super) several: bool,
}

/// Reason a value was rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenBundleError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("choose the file or folder for `{0}` with the file picker")]
    Typed(String),
    #[error("the bundle has no file or folder setting `{0}`")]
    PathNotFound(String),
    #[error("the name of the picked file or folder is not UTF-8")]
    NotUtf8,
    #[error("the bundle is no longer open; choose it again")]
    Gone,
}

impl OpenBundle {
    pub(super) fn open(home: &Home, file: &Path) -> Result<(Self, BundleView), OpenBundleError> {
        let bundle = Bundle::open(home, file)?;
        let view = view(&bundle, file);
        Ok((Self { bundle, picked: BTreeMap::new() }, view))
    }

    /// Returns the folder of unpacked files. This folder identifies the bundle.
    pub(super) fn folder(&self) -> PathBuf {
        self.bundle.folder().to_path_buf()
    }

    pub(super) fn path_request(&self, key: &str) -> Result<PathRequest, OpenBundleError> {
        let setting = self.bundle.manifest.user_config.get(key).filter(|setting| setting.is_path());
        let setting = setting.ok_or_else(|| OpenBundleError::PathNotFound(visible::line(key)))?;
        let several = setting.multiple;
        let (kind, what) = match (setting.kind() == SettingKind::File, several) {
            (false, false) => (Picked::Folder, "a folder"),
            (false, true) => (Picked::Folder, "folders"),
            (true, false) => (Picked::File, "a file"),
            (true, true) => (Picked::File, "files"),
        };
        let name = short(&self.bundle.manifest.name);
        Ok(PathRequest { title: format!("Pick {what} for {name}"), kind, several })
    }

    /// Stores the paths that the user picked for a setting.
    pub(super) fn pick(&mut self, key: &str, paths: Vec<PathBuf>) -> Result<Vec<String>, OpenBundleError> {
        self.path_request(key)?;
        let texts = paths.into_iter().map(|path| path.into_os_string().into_string());
        let texts = texts.collect::<Result<Vec<_>, _>>().map_err(|_| OpenBundleError::NotUtf8)?;
        self.picked.insert(key.to_owned(), texts.clone());
        Ok(texts)
    }

    /// Creates the server from the user's values.
    pub(super) fn addition(&self, home: &Home, wanted: WantedBundle) -> Result<Addition, OpenBundleError> {
        let WantedBundle { name, mut values, without } = wanted;
        let settings = &self.bundle.manifest.user_config;
        if let Some(typed) = values.keys().find(|key| settings.get(*key).is_some_and(BundleSetting::is_path))
        {
            return Err(OpenBundleError::Typed(visible::line(typed)));
        }
        values.extend(self.picked.clone());
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        Ok(self.bundle.addition(home, name, &BundleAnswers { values, omitted_secrets: without })?)
    }

    /// Returns the keyring names of a server's secrets, by setting.
    pub(super) fn secrets(&self, server: &str) -> BTreeMap<String, String> {
        let settings = self.bundle.manifest.user_config.iter();
        let secrets = settings.filter(|(_, setting)| setting.kind() == SettingKind::Secret);
        secrets.map(|(key, _)| (key.clone(), secret_name(server, key))).collect()
    }

    /// Keeps the unpacked files, because the server was added.
    pub(super) fn keep(self) {
        self.bundle.persist();
    }
}

fn view(bundle: &Bundle, file: &Path) -> BundleView {
    let manifest = &bundle.manifest;
    let title = if manifest.display_name.is_empty() { &manifest.name } else { &manifest.display_name };
    let mut settings: Vec<SettingRow> = manifest.user_config.iter().map(row).collect();
    settings.sort_by_key(|setting| !setting.required);
    BundleView {
        file: visible::path(&file.display().to_string()),
        name: short(&manifest.name),
        title: short(title),
        about: short(&manifest.description),
        maker: short(&manifest.author.name),
        settings,
    }
}

fn row((key, setting): (&String, &BundleSetting)) -> SettingRow {
    SettingRow {
        key: key.clone(),
        title: short(if setting.title.is_empty() { key } else { &setting.title }),
        about: short(&setting.description),
        kind: match setting.kind() {
            SettingKind::Text => "text",
            SettingKind::Number => "number",
            SettingKind::Toggle => "toggle",
            SettingKind::Folder => "folder",
            SettingKind::File => "file",
            SettingKind::Secret => "secret",
        },
        required: setting.required,
        several: setting.multiple,
        proposed: setting.suggested().iter().map(|text| short(text)).collect(),
    }
}

fn short(text: &str) -> String {
    visible::line(&visible::head(text, MAX_LEN))
}
