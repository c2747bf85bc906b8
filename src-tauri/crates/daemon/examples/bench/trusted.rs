//! Runs the daemon as a separate process, as users do.

use crate::parts::BenchClient;
use anyhow::{Context, ensure};
use ironcurtain_config::home::Home;
use ironcurtain_testkit::measurements;
use ironcurtain_testkit::programs::{built, is_root};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time to wait for the daemon to accept connections.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Running daemon process. Dropping it kills the process.
pub struct TrustedProcess {
    child: Child,
    home_dir: PathBuf,
}

impl TrustedProcess {
    /// Starts a daemon that stores its files in `below` and denies all questions. `entry` replaces the filesystem
    /// server's entry.
    pub fn start(below: &Path, entry: Option<Value>) -> anyhow::Result<Self> {
        Self::start_with(below, entry, &json!({}))
    }

    /// Starts a daemon like [`Self::start`], with the given `config.json`.
    pub fn start_with(below: &Path, entry: Option<Value>, config: &Value) -> anyhow::Result<Self> {
        let (home_dir, person) = (below.join("ic"), below.join("person"));
        let home = Home::under(&home_dir, &person);
        std::fs::create_dir_all(&person)?;
        home.prepare()?;
        if let Some(entry) = entry {
            let servers = json!({ "filesystem": entry });
            std::fs::write(home.config.join("mcp-servers.json"), servers.to_string())?;
        }
        std::fs::write(home.config.join("config.json"), config.to_string())?;
        let child = Command::new(built().join("ironcurtain"))
            .arg("daemon")
            .args(is_root().then_some("--allow-root"))
            .env("IRONCURTAIN_HOME", &home_dir)
            .env("HOME", &person)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let (started, began) = (Self { child, home_dir }, Instant::now());
        while UnixStream::connect(&home.socket).is_err() {
            ensure!(began.elapsed() < TIMEOUT, "the trusted process did not start to listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(started)
    }

    /// Opens a session with the filesystem server.
    pub fn session(&self) -> anyhow::Result<BenchClient> {
        let mut shim = Command::new(built().join("ironcurtain-shim"));
        shim.args(["--server", "filesystem"]).env("IRONCURTAIN_HOME", &self.home_dir);
        BenchClient::begin(shim)
    }

    pub fn resident_kib(&self) -> anyhow::Result<u64> {
        measurements::resident_kib(self.child.id())?.context("the trusted process has exited")
    }
}

impl Drop for TrustedProcess {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
