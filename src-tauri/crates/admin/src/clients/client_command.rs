//! Runs a client's own command for editing its settings.
//!
//! - Preferred over editing the file, because a running client would overwrite such an edit.
//! - Used only for entries that start the shim. Other entries may contain secrets, which must not be on a command
//!   line.

use super::{ClientError, find_program};
use ironcurtain_client_config::{KnownClient, StartCommand};
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Id of the only client that has such a command, and the program to run.
const CLAUDE_CODE: (&str, &str) = ("claude-code", "claude");

/// Command line that edits a client's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCommand {
    program: PathBuf,
    arguments: Vec<String>,
}

impl ClientCommand {
    /// Returns the command that adds an entry for the shim to the user's settings. Returns `None` if the client has
    /// no such command.
    pub(super) fn add_entry(client: &KnownClient, name: &str, launch: &StartCommand) -> Option<Self> {
        let env = launch.env.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("{key}={value}")]);
        let words = ["mcp", "add", "-s", "user", name].map(ToOwned::to_owned).into_iter().chain(env);
        let start = ["--".to_owned(), launch.command.clone()].into_iter().chain(launch.args.clone());
        Self::new(client, words.chain(start))
    }

    /// Returns the command that removes an entry from the user's settings. Returns `None` if the client has no such
    /// command.
    pub(super) fn remove_entry(client: &KnownClient, name: &str) -> Option<Self> {
        Self::new(client, ["mcp", "remove", "-s", "user", name].map(ToOwned::to_owned).into_iter())
    }

    fn new(client: &KnownClient, arguments: impl Iterator<Item = String>) -> Option<Self> {
        let (id, name) = CLAUDE_CODE;
        let program = find_program(name).filter(|_| client.id == id)?;
        Some(Self { program, arguments: arguments.collect() })
    }

    /// Runs the command and waits until it exits.
    pub(super) fn run(&self) -> Result<(), ClientError> {
        let failed = |output: String| ClientError::Command { command: self.to_string(), output };
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|problem| failed(problem.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&output_text);
        Err(failed(output_text.lines().last().unwrap_or("it exited without output").trim().to_owned()))
    }
}

impl fmt::Display for ClientCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{name} {}", self.arguments.join(" "))
    }
}
