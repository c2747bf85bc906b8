//! Writes one server's annotations to `tool-annotations.json`.
//!
//! - Preserves the bytes of all other servers' annotations.
//! - Validates the new file with the strict loader before it atomically replaces the old one.
//! - Does not overwrite a file that changed since it was read.

mod compare;
mod entry;
mod schema_equality;

pub use compare::{AnnotationChange, AnnotationChanges};
pub use entry::{Draft, DraftTool};

use crate::json_edit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, GitConfigSettings, read};
use ironcurtain_containment::default_git_config;
use ironcurtain_paths::atomic_file;
use ironcurtain_policy::{Annotations, LoadError, defaults};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Error from reading or writing annotations.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The file could not be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The old or new file is invalid.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The draft's annotations could not be inserted into the file.
    #[error("`{file}`: {problem}")]
    Shape {
        /// Path of the file.
        file: PathBuf,
        /// Reason for the failure.
        problem: String,
    },
    /// The file changed after it was read.
    #[error("`{0}` has changed since it was read; nothing was written; try again")]
    Changed(PathBuf),
    /// The file could not be written.
    #[error("failed to write `{file}`: {source}")]
    Write {
        /// Path of the file.
        file: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// Contents of the annotations file, or the shipped annotations if the file does not exist.
#[derive(Debug)]
pub struct AnnotationsFile {
    path: PathBuf,
    content: Option<String>,
    annotations: Annotations,
}

impl AnnotationsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns an [`AnnotateError`] if the file is unreadable or invalid.
    pub fn open(home: &Home) -> Result<Self, AnnotateError> {
        let path = home.policy().join("tool-annotations.json");
        let content = read(&path)?;
        let text = content.as_deref().unwrap_or(defaults::ANNOTATIONS_JSON);
        let annotations = Annotations::from_json(text, &path.display().to_string())?;
        Ok(Self { path, content, annotations })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the default git configuration access for a server whose entry does not set it.
    #[must_use]
    pub fn git_config(&self, server: &str) -> GitConfigSettings {
        default_git_config(server, &self.annotations)
    }

    /// Returns the number of annotated tools of a server.
    #[must_use]
    pub fn tools(&self, server: &str) -> usize {
        self.annotations.tools(server).count()
    }

    /// Keeps existing annotations in the draft for tools that the server does not list now but may list again.
    pub fn keep_unlisted(&self, draft: &mut Draft) {
        let stored =
            self.stored_entry(&draft.server).and_then(|mut stored| Some(stored.get_mut("tools")?.take()));
        let Some(Value::Array(stored)) = stored else { return };
        let is_listed = |tool: &Value| {
            let name = tool.get("toolName").and_then(Value::as_str);
            draft.tools.iter().any(|listed| Some(listed.listed.name.as_str()) == name)
        };
        let unlisted = stored.into_iter().filter(|tool| !is_listed(tool)).collect();
        draft.unlisted = unlisted;
    }

    /// Returns the changes that writing a draft would make.
    ///
    /// # Errors
    /// Returns an [`AnnotateError`] if the file would be invalid with the draft.
    pub fn compare(&self, draft: &Draft) -> Result<AnnotationChanges, AnnotateError> {
        let (_, new) = self.merge(draft)?;
        Ok(compare::compare_draft(&self.annotations, &new, self.stored_entry(&draft.server).as_ref(), draft))
    }

    /// Returns the file's text with the server's annotations replaced by the draft, and the parsed annotations.
    fn merge(&self, draft: &Draft) -> Result<(String, Annotations), AnnotateError> {
        let error = |problem: String| AnnotateError::Shape { file: self.path.clone(), problem };
        let text = json_edit::set(self.text(), &["servers", &draft.server], &draft.to_json());
        let text = text.map_err(|e| error(e.to_string()))?;
        let new = Annotations::from_json(&text, &self.path.display().to_string())?;
        let same = |server: &str| new.tools(server).eq(self.annotations.tools(server));
        let is_unchanged = |server: &str| server == draft.server || same(server);
        if !new.servers().all(is_unchanged) || !self.annotations.servers().all(is_unchanged) {
            return Err(error("the annotations of other servers would change".to_owned()));
        }
        Ok((text, new))
    }

    /// Writes the draft's annotations to the file.
    ///
    /// # Errors
    /// Returns an [`AnnotateError`] on failure, in which case the old file is unchanged.
    pub fn write(&self, draft: &Draft) -> Result<(), AnnotateError> {
        let (new, _) = self.merge(draft)?;
        if read(&self.path)? != self.content {
            return Err(AnnotateError::Changed(self.path.clone()));
        }
        atomic_file::replace(&self.path, &new)
            .map_err(|source| AnnotateError::Write { file: self.path.clone(), source })
    }

    fn text(&self) -> &str {
        self.content.as_deref().unwrap_or(defaults::ANNOTATIONS_JSON)
    }

    /// Returns the server's annotations in the file, as JSON.
    fn stored_entry(&self, server: &str) -> Option<Value> {
        let mut file: Value = serde_json::from_str(self.text()).ok()?;
        file.get_mut("servers")?.get_mut(server).map(Value::take)
    }
}
