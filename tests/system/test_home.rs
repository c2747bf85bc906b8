//! A user's home directory in a temporary directory, with IronCurtain's files. It is prepared before any process
//! starts.

use ironcurtain_config::home::Home;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub struct TestHome {
    pub home: Home,
    base: PathBuf,
    _dir: TempDir,
}

/// Settings with a high limit on the number of questions. Other tests cover the limits.
const ASKED_FREELY: &str = r#"{ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 }"#;

impl TestHome {
    pub fn new(prepare: impl FnOnce(&Prepared)) -> Self {
        // Not in `/tmp`, because every sandbox has its own `/tmp`.
        let dir = tempfile::Builder::new().prefix("ic").tempdir_in("/var/tmp").unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("person/docs")).unwrap();
        std::fs::create_dir(base.join("tmp")).unwrap();
        let home = Home::under(&base.join("ic"), &base.join("person"));
        home.prepare().unwrap();
        std::fs::write(home.config.join("config.json"), ASKED_FREELY).unwrap();
        prepare(&Prepared { home: home.clone() });
        Self { home, base, _dir: dir }
    }

    /// Returns the temporary directory, which contains all files.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Returns the directory that `IRONCURTAIN_HOME` names.
    pub fn ours(&self) -> PathBuf {
        self.base.join("ic")
    }

    /// Returns the directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.base.join("tmp")
    }

    /// Creates a file in the user's home directory.
    pub fn file(&self, below: &str, content: &str) -> PathBuf {
        let path = self.home.user_home.join(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        // The folders of installed packages are not writable. Only root can remove them as they are.
        if self.home.data.join("installs").exists() {
            // Ignores the error: leftover files are harmless.
            let _ = Command::new("chmod").args(["-R", "u+w"]).arg(&self.base).status();
        }
    }
}

/// A user's files, which a test can prepare before the daemon starts.
pub struct Prepared {
    pub home: Home,
}
