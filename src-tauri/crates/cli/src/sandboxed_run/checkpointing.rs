//! Checkpoint of a run, taken before the run starts and completed after it has exited.

use anyhow::bail;
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

    /// Records the folder's final state and returns a line for the user.
    pub fn finish(mut self) -> String {
        let (checkpoint, run) = (self.checkpoint.take(), self.run.take().unwrap_or_default());
        match checkpoint.as_ref().map(Checkpoint::finish) {
            Some(Ok(())) | None => format!("ironcurtain undo {} restores the folder", visible::line(&run)),
            Some(Err(problem)) => {
                format!("failed to record what the run left: {}", visible::line(&problem.to_string()))
            }
        }
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
