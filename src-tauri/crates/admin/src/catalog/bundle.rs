//! A bundle (`.mcpb`): a server packaged for desktop clients, which can be added like any other server.
//!
//! - A bundle gets minimal access, like any unknown server: it can read its own files and write to its own data folder.
//! - The user chooses each folder that the bundle works with. Adding the bundle grants no access to these folders: each
//!   agent still requires the user's approval. Paths that the bundle suggests are displayed but never used.
//! - The entry contains secrets only as `keyring:NAME`.
//! - The unpacked files are removed unless the server is added.

mod error;
mod manifest;
mod template;
mod unpack;

pub use error::BundleError;
pub use manifest::{BundleAnswers, BundleAuthor, BundleManifest, BundleSetting, SettingKind, secret_name};
pub use unpack::UnpackError;

use super::Addition;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_paths::random_name;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::remove_dir_all;
use std::mem::take;
use std::path::{Path, PathBuf};
use template::{CommandTemplate, reject_secret_reference};

/// File name extensions of bundles. `dxt` is the older extension.
pub const BUNDLE_EXTENSIONS: [&str; 2] = ["mcpb", "dxt"];

/// An unpacked bundle. Dropping it removes the unpacked files.
#[derive(Debug)]
pub struct Bundle {
    /// Manifest of the bundle.
    pub manifest: BundleManifest,
    folder: UnpackedFolder,
}

/// Folder of the unpacked files. Dropping it removes the folder unless [`Bundle::persist`] was called.
#[derive(Debug)]
struct UnpackedFolder(PathBuf);

impl Bundle {
    /// Returns `true` if the file name has a bundle extension.
    #[must_use]
    pub fn has_bundle_extension(file: &Path) -> bool {
        file.extension().is_some_and(|end| BUNDLE_EXTENSIONS.iter().any(|known| end == *known))
    }

    /// Unpacks a bundle into IronCurtain's data folder and parses its manifest. Runs none of the bundle's code.
    ///
    /// # Errors
    /// Returns a [`BundleError`] on failure, in which case the unpacked files are removed.
    pub fn open(home: &Home, file: &Path) -> Result<Self, BundleError> {
        let name = random_name().map_err(BundleError::Folder)?;
        let folder = UnpackedFolder(home.data.join("bundles").join(name));
        unpack::unpack(file, &folder.0)?;
        let manifest = BundleManifest::read(&folder.0)?;
        Ok(Self { manifest, folder })
    }

    /// Returns the folder of the unpacked files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Returns the bundle's server, configured with the user's answers. `name` overrides the default name.
    ///
    /// # Errors
    /// Returns a [`BundleError`] if a required value is missing or a value is invalid.
    pub fn addition(
        &self,
        home: &Home,
        name: Option<&str>,
        answers: &BundleAnswers,
    ) -> Result<Addition, BundleError> {
        let BundleManifest { name: default_name, user_config, server, .. } = &self.manifest;
        let name = name.unwrap_or(default_name).to_owned();
        let mut answered = answers.values.keys().chain(&answers.omitted_secrets);
        if let Some(unknown) = answered.find(|key| !user_config.contains_key(*key)) {
            let known: Vec<&str> = user_config.keys().map(String::as_str).collect();
            return Err(BundleError::UnknownSetting(unknown.clone(), known.join("`, `")));
        }
        let mut paths = Vec::new();
        let mut values = BTreeMap::new();
        for (key, setting) in user_config {
            setting.suggested().iter().try_for_each(|text| reject_secret_reference(text))?;
            if let Some(all) = setting.values(key, &name, answers)? {
                if setting.is_path() {
                    paths.extend_from_slice(&all);
                }
                values.insert(key.clone(), all);
            }
        }
        let template = CommandTemplate { folder: &self.folder.0, home: &home.user_home, values };
        let entry = template.entry(server.mcp_config.clone())?;
        let mut added = Addition::with_minimal_access(home, name, entry);
        added.set_file_access(&self.folder.0, &paths);
        self.check_secrets_unused(home, &added.name)?;
        Ok(added)
    }

    /// Returns an error if one of the bundle's secrets would have the same name as another server's secret.
    fn check_secrets_unused(&self, home: &Home, name: &str) -> Result<(), BundleError> {
        let settings = self.manifest.user_config.iter();
        let secrets = settings.filter(|(_, setting)| setting.kind() == SettingKind::Secret);
        let secrets: Vec<String> = secrets.map(|(key, _)| secret_name(name, key)).collect();
        for server in Servers::load(home)?.iter().filter(|server| server.name != name) {
            if let Some(conflicting) =
                server.secret_names().iter().find(|one| secrets.iter().any(|own| own == one.as_str()))
            {
                let (secret, server) = (conflicting.as_str().to_owned(), server.name.clone());
                return Err(BundleError::SecretInUse { secret, server });
            }
        }
        Ok(())
    }

    /// Keeps the unpacked files. Call this after the server has been added.
    pub fn persist(mut self) {
        take(&mut self.folder.0);
    }
}

impl Addition {
    /// Allows the entry to read the bundle's files and adds the paths that the user chose to `worksWith`.
    fn set_file_access(&mut self, folder: &Path, paths: &[String]) {
        if let Some(files) = self.entry.pointer_mut("/sandbox/filesystem").and_then(Value::as_object_mut) {
            files.insert("allowRead".to_owned(), json!([folder]));
        }
        if let Some(entry) = self.entry.as_object_mut().filter(|_| !paths.is_empty()) {
            entry.insert("worksWith".to_owned(), json!(paths));
        }
    }
}

impl Drop for UnpackedFolder {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // Leftover files are harmless.
            let _ = remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests;
