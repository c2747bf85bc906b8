//! Tests `ironcurtain-sandbox` as a replacement for `srt`: the settings, and the command's streams and exit status.

mod credentials;
mod files;
mod network;
mod running;
mod settings;
mod signals;
mod streams;

use std::{
    fs,
    io::Write,
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Fixture, supervisor};

/// Home directory, working directory and settings of a user.
struct CommandFixture {
    fixture: Fixture,
    settings: Value,
}

/// Outcome of a command.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: Option<i32>,
    output: String,
    complained: String,
}

impl CommandFixture {
    /// Creates settings that allow writing only to the working directory.
    fn new() -> Self {
        let fixture = Fixture::new();
        for dir in ["home", "work"] {
            fs::create_dir(fixture.path(dir)).unwrap();
        }
        let settings = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] },
        });
        Self { fixture, settings }
    }

    /// Adds a setting. `at` is its key path, separated by slashes.
    fn with(mut self, at: &str, value: Value) -> Self {
        self.set(at, value);
        self
    }

    fn set(&mut self, at: &str, value: Value) {
        match at.split_once('/') {
            Some((section, key)) => self.settings[section][key] = value,
            None => self.settings[at] = value,
        }
    }

    fn path(&self, name: &str) -> String {
        self.fixture.path(name)
    }

    /// Writes the settings, and returns a command with these arguments that runs in the working directory.
    fn command(&self, arguments: &[&str]) -> Command {
        let settings = self.path("settings.json");
        let text = self.settings.to_string();
        // An unchanged file is not rewritten, because another process may be reading it.
        if fs::read_to_string(&settings).ok().as_ref() != Some(&text) {
            fs::write(&settings, text).unwrap();
        }
        let mut command = Command::new(supervisor());
        command.args(["--allow-root", "-s", &settings]).args(arguments).current_dir(self.path("work"));
        self.alone(&mut command);
        command
    }

    /// Removes the test run's variables from the command's environment.
    fn alone(&self, command: &mut Command) {
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home")).stdin(Stdio::null());
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::from_output(&self.command(arguments).output().unwrap())
    }

    /// Runs a shell line.
    fn line(&self, line: &str) -> Outcome {
        self.run(&["-c", line])
    }

    /// Runs a line that must succeed, and returns its output.
    fn stdout_of(&self, line: &str) -> String {
        let outcome = self.line(line);
        assert_eq!((outcome.status, outcome.complained.as_str()), (Some(0), ""), "{line}: {outcome:?}");
        outcome.output
    }

    /// Runs a line that must fail, and returns its error output.
    fn stderr_of_failure(&self, line: &str) -> String {
        let outcome = self.line(line);
        assert!(!matches!(outcome.status, Some(0 | 125)), "{line}: {outcome:?}");
        outcome.complained
    }

    /// Checks that the settings are rejected, and returns the reason.
    fn expect_rejected_settings(&self) -> String {
        let outcome = self.line("echo ran");
        assert_eq!((outcome.status, outcome.output.as_str()), (Some(125), ""), "{outcome:?}");
        outcome.complained
    }

    /// Spawns a line with pipes as its standard streams.
    fn start(&self, line: &str) -> Child {
        self.command(&["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }
}

impl Outcome {
    fn from_output(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: output.status.code(), output: text(&output.stdout), complained: text(&output.stderr) }
    }
}

/// Writes input to a running command and waits for it to exit.
fn feed(mut child: Child, input: &str) -> Outcome {
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Outcome::from_output(&child.wait_with_output().unwrap())
}
