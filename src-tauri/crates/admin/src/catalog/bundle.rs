//! A bundle (`.mcpb`), in which makers pack a server for desktop clients: read as a server that is to be added.
//!
//! - It gets the least, as every server that nobody knows: it reads what is in the bundle, and writes to a folder of its own.
//! - A folder that it asks for is one that the person names, and is opened by nothing here: it is proposed to them for each agent.
//!   What its maker proposes is said and not taken.
//! - What is to be kept secret stands in its entry as `keyring:NAME` and nowhere else.
//! - It is unpacked to be looked at, and gone again unless its server is added.

mod error;
mod fill;
mod manifest;
mod unpacked;

pub use error::BundleError;
pub use manifest::{BundleAnswers, BundleAuthor, BundleManifest, BundleSetting, SettingKind, secret_name};
pub use unpacked::UnpackError;

use super::Addition;
use fill::{Fill, not_a_secret};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_paths::random_name;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::remove_dir_all;
use std::mem::take;
use std::path::{Path, PathBuf};

/// The endings of bundles, the older one last.
pub const BUNDLE_ENDINGS: [&str; 2] = ["mcpb", "dxt"];

/// A bundle that is unpacked. Dropped, its folder is removed.
#[derive(Debug)]
pub struct Bundle {
    /// Its description of itself.
    pub manifest: BundleManifest,
    folder: UnpackedFolder,
}

/// A folder that is removed with this, unless it was taken out.
#[derive(Debug)]
struct UnpackedFolder(PathBuf);

impl Bundle {
    /// Returns `true` if a file is named as bundles are.
    #[must_use]
    pub fn is_named_so(file: &Path) -> bool {
        file.extension().is_some_and(|end| BUNDLE_ENDINGS.iter().any(|known| end == *known))
    }

    /// Unpacks a bundle below our data, and reads its description. Nothing of it runs.
    ///
    /// # Errors
    /// [`BundleError`]; then nothing of it stays.
    pub fn open(home: &Home, file: &Path) -> Result<Self, BundleError> {
        let name = random_name().map_err(BundleError::Folder)?;
        let folder = UnpackedFolder(home.data.join("bundles").join(name));
        unpacked::unpack(file, &folder.0)?;
        let manifest = BundleManifest::read(&folder.0)?;
        Ok(Self { manifest, folder })
    }

    /// The folder that it lies in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Its server, by the person's answers; its own name unless it is given one.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn addition(
        &self,
        home: &Home,
        name: Option<&str>,
        answers: &BundleAnswers,
    ) -> Result<Addition, BundleError> {
        let BundleManifest { name: own, user_config, server, .. } = &self.manifest;
        let name = name.unwrap_or(own).to_owned();
        let mut answered = answers.values.keys().chain(&answers.without);
        if let Some(unknown) = answered.find(|key| !user_config.contains_key(*key)) {
            let known: Vec<&str> = user_config.keys().map(String::as_str).collect();
            return Err(BundleError::Unknown(unknown.clone(), known.join("`, `")));
        }
        let mut paths = Vec::new();
        let mut values = BTreeMap::new();
        for (key, setting) in user_config {
            setting.proposed().iter().try_for_each(|text| not_a_secret(text))?;
            if let Some(all) = setting.values(key, &name, answers)? {
                if setting.is_path() {
                    paths.extend_from_slice(&all);
                }
                values.insert(key.clone(), all);
            }
        }
        let fill = Fill { folder: &self.folder.0, home: &home.person, values };
        let entry = fill.entry(server.mcp_config.clone())?;
        let mut added = Addition::least(home, name, entry);
        added.open(&self.folder.0, &paths);
        self.not_of_another(home, &added.name)?;
        Ok(added)
    }

    /// Refuses a name under which its secrets would be those of another server.
    fn not_of_another(&self, home: &Home, name: &str) -> Result<(), BundleError> {
        let settings = self.manifest.user_config.iter();
        let secrets = settings.filter(|(_, setting)| setting.kind() == SettingKind::Secret);
        let secrets: Vec<String> = secrets.map(|(key, _)| secret_name(name, key)).collect();
        for server in Servers::load(home)?.iter().filter(|server| server.name != name) {
            if let Some(taken) =
                server.secret_names().iter().find(|one| secrets.iter().any(|own| own == one.as_str()))
            {
                let (secret, server) = (taken.as_str().to_owned(), server.name.clone());
                return Err(BundleError::SecretOfAnother { secret, server });
            }
        }
        Ok(())
    }

    /// Leaves its folder where it is, for its server.
    pub fn keep(mut self) {
        take(&mut self.folder.0);
    }
}

impl Addition {
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

impl Drop for UnpackedFolder {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What is left of it is in nobody's way.
            let _ = remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests;
