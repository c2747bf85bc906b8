//! A bundle that is unpacked to be looked at, and is gone again unless its server is added.

use ironcurtain_admin::catalog::unpack;
use ironcurtain_daemon::Home;
use ironcurtain_daemon::clock::random_name;
use std::fs::remove_dir_all;
use std::path::{Path, PathBuf};

/// The endings of bundles, the older one last.
const ENDINGS: [&str; 2] = ["mcpb", "dxt"];

/// The folder of a bundle. Dropped, it is removed.
pub struct Unpacked(pub PathBuf);

impl Unpacked {
    /// Unpacks what is to be added, where it is a bundle.
    pub fn of(home: &Home, what: &str) -> anyhow::Result<Option<Self>> {
        let bundle = Path::new(what);
        if !bundle.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)) {
            return Ok(None);
        }
        let unpacked = Self(home.data.join("bundles").join(random_name()?));
        unpack(bundle, &unpacked.0)?;
        Ok(Some(unpacked))
    }

    /// Leaves it where it is, for the server that was added.
    pub fn kept<T>(unpacked: Option<Self>, done: T) -> T {
        std::mem::forget(unpacked);
        done
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // What is left of it is in nobody's way.
        let _ = remove_dir_all(&self.0);
    }
}
