//! Temporary folder for a server that runs without a session. Dropping the value removes the folder.

use ironcurtain_config::home::private_dir;
use ironcurtain_paths::{CanonicalPath, random_name};
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Scratch {
    session_folder: PathBuf,
    folder: CanonicalPath,
}

impl Scratch {
    pub(super) fn new(sessions: &Path) -> io::Result<Self> {
        let session_folder = sessions.canonicalize()?.join(format!("annotate-{}", random_name()?));
        let folder = session_folder.join("sandbox");
        let text = folder.to_str().ok_or_else(|| io::Error::other("the path is not valid UTF-8"))?;
        let folder = CanonicalPath::assume_canonical(text).map_err(io::Error::other)?;
        let scratch = Self { session_folder, folder };
        for dir in [&scratch.session_folder, scratch.folder.as_path()] {
            private_dir(dir).map_err(io::Error::other)?;
        }
        Ok(scratch)
    }

    pub(super) fn folder(&self) -> &CanonicalPath {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(problem) = std::fs::remove_dir_all(&self.session_folder) {
            tracing::warn!(%problem, "failed to remove `{}`", self.session_folder.display());
        }
    }
}
