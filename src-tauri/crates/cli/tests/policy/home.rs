//! A home of its own for one test, and the program as built.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time that anything may take.
const LONGEST: Duration = Duration::from_secs(20);

/// A person's home with a document, a link to it and a key, and ours beside it.
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

    /// The program, with this home.
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
        said(&self.run(arguments))
    }

    /// Starts the trusted process and waits until it answers.
    pub(crate) fn start(&self) -> Running<'_> {
        let mut command = self.ironcurtain();
        let process = command.args(["daemon", "--allow-root"]).stderr(Stdio::null()).spawn().unwrap();
        let running = Running { home: self, process };
        self.eventually("the trusted process", || !self.status().is_empty());
        running
    }

    /// Waits for something.
    pub(crate) fn eventually(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < LONGEST, "{what} does not come: {}", self.status());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The output of `status`.
    pub(crate) fn status(&self) -> String {
        String::from_utf8(self.ironcurtain().arg("status").output().unwrap().stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A named pipe that nobody writes to.
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

/// The trusted process of a home.
pub(crate) struct Running<'a> {
    home: &'a Home,
    process: Child,
}

impl Running<'_> {
    /// Ends it as a person would.
    pub(crate) fn stop(mut self) {
        assert!(self.home.ironcurtain().arg("stop").output().unwrap().status.success());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // After `stop` there is nobody left to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command's success, and all that it printed.
pub(crate) fn said(output: &Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// A policy that says what becomes of documents, and asks about the rest.
pub(crate) fn docs(then: &str, within: &str) -> Value {
    let conditions = json!({ "paths": { "roles": ["read-path"], "within": within } });
    json!({ "rules": [
        { "name": "docs", "if": conditions, "then": then, "reason": "documents" },
        { "name": "rest", "if": {}, "then": "escalate", "reason": "ask" },
    ] })
}
