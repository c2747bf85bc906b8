//! Putting the annotations of one server into `tool-annotations.json`.
//!
//! - What belongs to other servers keeps its bytes.
//! - The new file is read by the strict loader before it replaces the old one, at once and as a whole.
//! - A file that changed since it was read is not overwritten.

mod compare;
mod declared;
mod entry;

pub use compare::{AnnotationChange, AnnotationChanges};
pub use entry::{Draft, DraftTool};

use crate::json_edit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, GitConfigSettings, read};
use ironcurtain_daemon::containment::default_git_config;
use ironcurtain_paths::atomic_file;
use ironcurtain_policy::{Annotations, LoadError, defaults};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Why annotations are not written.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The file cannot be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The file, or what it would become, is refused by the loader.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The file has no place for annotations.
    #[error("`{file}`: {problem}")]
    Shape {
        /// The file.
        file: PathBuf,
        /// The reason it has none.
        problem: String,
    },
    /// Somebody else wrote the file.
    #[error("`{0}` changed in the meantime; nothing was written, try again")]
    Changed(PathBuf),
    /// The file cannot be written.
    #[error("`{file}` cannot be written: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// The annotations file as it was read; without one, what ships, which a file would replace.
#[derive(Debug)]
pub struct AnnotationsFile {
    path: PathBuf,
    found: Option<String>,
    annotations: Annotations,
}

impl AnnotationsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// [`AnnotateError`], when it cannot be read or is not understood.
    pub fn open(home: &Home) -> Result<Self, AnnotateError> {
        let path = home.policy().join("tool-annotations.json");
        let found = read(&path)?;
        let text = found.as_deref().unwrap_or(defaults::ANNOTATIONS_JSON);
        let annotations = Annotations::from_json(text, &path.display().to_string())?;
        Ok(Self { path, found, annotations })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The default for the `config` of a server's git repositories: it applies where the server's entry does not say.
    #[must_use]
    pub fn git_config(&self, server: &str) -> GitConfigSettings {
        default_git_config(server, &self.annotations)
    }

    /// The number of tools of a server that are annotated.
    #[must_use]
    pub fn tools(&self, server: &str) -> usize {
        self.annotations.tools(server).count()
    }

    /// Has a draft keep the annotations of tools that the server does not list this time: it may list them again.
    pub fn keep_unseen(&self, draft: &mut Draft) {
        let stored = self.stored(&draft.server).and_then(|mut stored| Some(stored.get_mut("tools")?.take()));
        let Some(Value::Array(stored)) = stored else { return };
        let is_listed = |tool: &Value| {
            let name = tool.get("toolName").and_then(Value::as_str);
            draft.tools.iter().any(|listed| Some(listed.listed.name.as_str()) == name)
        };
        let unseen = stored.into_iter().filter(|tool| !is_listed(tool)).collect();
        draft.unseen = unseen;
    }

    /// The changes that a draft makes.
    ///
    /// # Errors
    /// [`AnnotateError`], when the file would not be understood with the draft in it.
    pub fn compare(&self, draft: &Draft) -> Result<AnnotationChanges, AnnotateError> {
        let (_, new) = self.with(draft)?;
        Ok(compare::changes(&self.annotations, &new, self.stored(&draft.server).as_ref(), draft))
    }

    /// The file's text with the annotations of one server replaced by a draft, as the loader reads it.
    fn with(&self, draft: &Draft) -> Result<(String, Annotations), AnnotateError> {
        let shape = |problem: String| AnnotateError::Shape { file: self.path.clone(), problem };
        let text = json_edit::set(self.text(), &["servers", &draft.server], &draft.to_json());
        let text = text.map_err(|e| shape(e.to_string()))?;
        let new = Annotations::from_json(&text, &self.path.display().to_string())?;
        let same = |server: &str| new.tools(server).eq(self.annotations.tools(server));
        let stays = |server: &str| server == draft.server || same(server);
        if !new.servers().all(stays) || !self.annotations.servers().all(stays) {
            return Err(shape("the annotations of other servers would change".to_owned()));
        }
        Ok((text, new))
    }

    /// Writes a draft.
    ///
    /// # Errors
    /// [`AnnotateError`]: the old file is still there, whole.
    pub fn write(&self, draft: &Draft) -> Result<(), AnnotateError> {
        let (new, _) = self.with(draft)?;
        if read(&self.path)? != self.found {
            return Err(AnnotateError::Changed(self.path.clone()));
        }
        atomic_file::replace(&self.path, &new)
            .map_err(|source| AnnotateError::Write { file: self.path.clone(), source })
    }

    fn text(&self) -> &str {
        self.found.as_deref().unwrap_or(defaults::ANNOTATIONS_JSON)
    }

    /// The server's part of the file, as it is written.
    fn stored(&self, server: &str) -> Option<Value> {
        let mut file: Value = serde_json::from_str(self.text()).ok()?;
        file.get_mut("servers")?.get_mut(server).map(Value::take)
    }
}
