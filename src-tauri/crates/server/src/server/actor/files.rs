//! Files that an `srt` sandbox reads. They are removed together with the server.

use crate::server::process::Containment;
use crate::server::start_error::ContainmentError;
use std::path::PathBuf;

/// Directory that is removed on drop.
pub(super) struct SessionFiles(PathBuf);

impl SessionFiles {
    pub(super) fn new(containment: &Result<Containment, ContainmentError>) -> Option<Self> {
        match containment {
            Ok(Containment::Srt(_, dir)) => Some(Self(dir.clone())),
            Ok(
                Containment::Native(..) | Containment::Asking(_) | Containment::Plain | Containment::Remote,
            )
            | Err(_) => None,
        }
    }
}

impl Drop for SessionFiles {
    fn drop(&mut self) {
        // If this fails, the next start removes the directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
