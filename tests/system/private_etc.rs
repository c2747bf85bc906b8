//! A private copy of `/etc`, for tests of files that only root can change.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts a copy of `/etc` over the original, with an empty folder `ironcurtain`. Call this as root in the test's own
/// mount namespace.
///
/// The copy is kept in `dir`. Returns the path of the folder `/etc/ironcurtain`.
pub(crate) fn replace_etc(dir: &Path) -> PathBuf {
    let etc = dir.join("etc");
    // Files that this user cannot read are skipped. The tests do not need them.
    Command::new("cp").arg("-a").arg("/etc").arg(&etc).output().unwrap();
    let ours = etc.join("ironcurtain");
    if ours.exists() {
        std::fs::remove_dir_all(&ours).unwrap();
    }
    std::fs::create_dir(&ours).unwrap();
    let mounted = Command::new("mount").arg("--bind").arg(&etc).arg("/etc").status().unwrap();
    assert!(mounted.success());
    PathBuf::from("/etc/ironcurtain")
}
