//! Checkpoint of a run, taken before the run starts and completed after it has exited.

use crate::text_lines::counted;
use anyhow::{Context, anyhow, bail};
use ironcurtain_checkpoint::{Checkpoint, Checkpoints};
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicySnapshot, Servers};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_visible as visible;
use std::path::Path;

/// Checkpoint of a run. Dropping it removes it, unless [`for_run`](Self::for_run) or
/// [`for_failed_start`](Self::for_failed_start) has kept it.
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

    /// Keeps the checkpoint if the folder may have changed, because the program may have run before its start failed.
    /// Returns the error for the user.
    pub fn for_failed_start(mut self, problem: anyhow::Error) -> anyhow::Error {
        let Some(checkpoint) = &mut self.checkpoint else { return problem };
        if checkpoint.changes().is_ok_and(|changes| changes.all.is_empty()) {
            return problem;
        }
        match checkpoint.keep() {
            Ok(id) => {
                let problem =
                    anyhow!("{problem:#}; the folder may have changed, see `ironcurtain undo {id}`");
                self.run = Some(id);
                problem
            }
            Err(error) => {
                anyhow!("{problem:#}; the folder may have changed, but its checkpoint is lost: {error:#}")
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_of_a_failed_start_is_kept_if_the_folder_has_changed() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = Home::under(&base.join("ironcurtain"), &base);
        let folder = base.join("project");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("own"), "before").unwrap();
        let checkpoints = || Checkpoints::new(home.checkpoints()).list().unwrap();

        let unchanged = RunCheckpoint::take(&home, &folder).unwrap();
        assert_eq!(unchanged.for_failed_start(anyhow!("refused")).to_string(), "refused");
        assert_eq!(checkpoints(), []);
        assert_eq!(std::fs::read_dir(home.checkpoints()).unwrap().count(), 0);

        let changed = RunCheckpoint::take(&home, &folder).unwrap();
        std::fs::write(folder.join("own"), "after").unwrap();
        let shown = changed.for_failed_start(anyhow!("refused")).to_string();
        let kept = checkpoints();
        let [(id, info)] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!(shown, format!("refused; the folder may have changed, see `ironcurtain undo {id}`"));
        assert_eq!(Path::new(&info.folder), folder);
    }
}
