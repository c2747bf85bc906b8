//! Checkpoint of a run, taken before the run starts and completed after it has exited.

use crate::text_lines::counted;
use anyhow::{Context, bail};
use ironcurtain_checkpoint::{Checkpoint, Checkpoints};
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicySnapshot, Servers};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_visible as visible;
use std::path::Path;

/// Checkpoint of a run. Removed if the run does not start.
pub struct RunCheckpoint {
    checkpoint: Option<Checkpoint>,
    run: Option<String>,
}

impl RunCheckpoint {
    /// Copies the folder.
    pub fn take(home: &Home, folder: &Path) -> anyhow::Result<Self> {
        let snapshot = PolicySnapshot::load(home, &Servers::load(home)?)?;
        let path = folder.to_str().and_then(|folder| CanonicalPath::assume_canonical(folder).ok());
        if !path.is_some_and(|path| snapshot.limits().may_be_granted(&path)) {
            bail!("`--checkpoint` copies the folder of a run, and a run in this folder has none");
        }
        let checkpoint = Checkpoints::new(home.checkpoints()).create(folder)?;
        Ok(Self { checkpoint: Some(checkpoint), run: None })
    }

    /// Stores the checkpoint under its run's id.
    pub fn for_run(mut self, run: &str) -> anyhow::Result<Self> {
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.assign_to_run(run)?;
        }
        self.run = Some(run.to_owned());
        Ok(self)
    }

    /// Returns a line for the user about the paths that the checkpoint does not cover, if there are any.
    pub fn gaps(&self) -> Option<String> {
        let not_copied = self.checkpoint.as_ref()?.not_copied();
        let first = not_copied.first()?;
        let path = if first.path.is_empty() { "the folder itself" } else { &first.path };
        let (count, example) = (counted(not_copied.len(), "path"), format!("{path}: {}", first.why));
        Some(format!("the checkpoint does not cover {count}, such as {}", visible::line(&example)))
    }

    /// Records the folder's final state and returns a line for the user.
    ///
    /// # Errors
    /// Returns an error if the state cannot be recorded. The run's changes then cannot be distinguished from later ones.
    pub fn finish(mut self) -> anyhow::Result<String> {
        let (checkpoint, run) = (self.checkpoint.take(), self.run.take().unwrap_or_default());
        let uncovered = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.not_copied().len());
        if let Some(checkpoint) = checkpoint {
            checkpoint.finish().context("failed to record what the run left")?;
        }
        let except = match uncovered {
            0 => String::new(),
            count => format!(", except {} that the checkpoint does not cover", counted(count, "path")),
        };
        Ok(format!("ironcurtain undo {} restores the folder{except}", visible::line(&run)))
    }
}

impl Drop for RunCheckpoint {
    fn drop(&mut self) {
        if self.run.is_none() {
            // Ignores the error: the next checkpoint removes this one.
            let _ = self.checkpoint.take().map(Checkpoint::remove);
        }
    }
}
