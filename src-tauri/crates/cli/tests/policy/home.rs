//! Temporary home directory of a test, and the program under test.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout for each wait.
const MAX_DURATION: Duration = Duration::from_secs(20);

/// A user's home directory with a document, a symlink to it and a key, and IronCurtain's home next to it.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { dir: TempDir::new().unwrap() };
        std::fs::create_dir_all(home.path("person/docs")).unwrap();
        std::fs::create_dir_all(home.path("person/.ssh")).unwrap();
        std::fs::write(home.path("person/docs/a.txt"), "a").unwrap();
        std::os::unix::fs::symlink(home.path("person/docs"), home.path("person/link")).unwrap();
        home
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn file(&self, below: &str, content: &Value) -> String {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns an `ironcurtain` command that uses this home.
    pub(crate) fn ironcurtain(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ironcurtain"));
        command.current_dir(self.path("person")).env("HOME", self.path("person"));
        command.env("IRONCURTAIN_HOME", self.path("ic")).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.ironcurtain().arg("policy").args(arguments).output().unwrap()
    }

    pub(crate) fn text(&self, arguments: &[&str]) -> (bool, String) {
        output_text(&self.run(arguments))
    }

    /// Starts the trusted process and waits until it answers.
    pub(crate) fn start(&self) -> Running<'_> {
        let mut command = self.ironcurtain();
        let process = command.args(["daemon", "--allow-root"]).stderr(Stdio::null()).spawn().unwrap();
        let running = Running { home: self, process };
        self.eventually("the trusted process", || !self.status().is_empty());
        running
    }

    /// Waits until the condition holds. Panics with `what` after [`MAX_DURATION`].
    pub(crate) fn eventually(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < MAX_DURATION, "{what} does not come: {}", self.status());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the output of `ironcurtain status`.
    pub(crate) fn status(&self) -> String {
        String::from_utf8(self.ironcurtain().arg("status").output().unwrap().stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Creates a named pipe without a writer so that reading it blocks.
    pub(crate) fn pipe(&self, below: &str) -> String {
        let path = self.path(below);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn explain(&self, path: &str) -> (bool, String) {
        let args = json!({ "path": path }).to_string();
        self.text(&["explain", "--server", "filesystem", "--tool", "read_text_file", "--args", &args])
    }
}

/// Trusted process running in this home, killed on drop.
pub(crate) struct Running<'a> {
    home: &'a Home,
    process: Child,
}

impl Running<'_> {
    /// Stops the process with `ironcurtain stop`.
    pub(crate) fn stop(mut self) {
        assert!(self.home.ironcurtain().arg("stop").output().unwrap().status.success());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Ignores the error: the process has already been stopped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns `true` if the command succeeded, together with its complete output.
pub(crate) fn output_text(output: &Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Returns a policy with one rule, for the documents folder. All other calls require approval.
pub(crate) fn docs(then: &str, within: &str) -> Value {
    let conditions = json!({ "paths": { "roles": ["read-path"], "within": within } });
    json!({ "rules": [
        { "name": "docs", "if": conditions, "then": then, "reason": "documents" },
        { "name": "rest", "if": {}, "then": "escalate", "reason": "ask" },
    ] })
}
