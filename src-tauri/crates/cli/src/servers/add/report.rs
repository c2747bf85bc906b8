//! Finds the server's command in the arguments of `servers add` and formats the result.

use super::options::{AddOptions, RUNNERS};
use crate::text_lines::TextLines;
use ironcurtain_admin::catalog::{AddedServer, Addition, COMMANDS, Catalog};
use ironcurtain_admin::server_summary::{UnannotatedCalls, reach};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicyFiles, Server};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Options of `servers add` that take a value.
const OPTIONS_WITH_VALUE: [&str; 5] = ["--name", "--from", "--set", "--secret", "--without"];

/// Inserts `--` before a program such as `npx` so that all following words belong to the server's command.
///
/// Server documentation often gives a command such as `npx -y NAME`.
pub fn command_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is_word = |at: usize, word: &str| words.get(at).is_some_and(|found| found == word);
    let Some(add) = (1..words.len()).find(|at| is_word(*at, "add") && is_word(at - 1, "servers")) else {
        return words;
    };
    let runner = (add + 1..words.len()).find(|at| {
        let is_value = OPTIONS_WITH_VALUE.iter().any(|option| is_word(at - 1, option));
        !is_value && COMMANDS.iter().any(|program| is_word(*at, program))
    });
    if let Some(at) = runner.filter(|at| !(add + 1..*at).any(|before| is_word(before, "--"))) {
        words.insert(at, "--".into());
    }
    words
}

/// Result of `servers add`.
pub(super) struct AddedReport<'a> {
    pub(super) home: &'a Home,
    pub(super) options: &'a AddOptions,
    pub(super) addition: &'a Addition,
    pub(super) server: &'a Server,
    pub(super) added: &'a AddedServer,
    pub(super) annotations: Option<&'a Path>,
    /// `true` if the server was tried and its tools were shown.
    pub(super) tried: bool,
}

impl AddedReport<'_> {
    pub(super) fn text(&self) -> anyhow::Result<TextLines> {
        let name = &self.server.name;
        let mut text = TextLines::default();
        text.line(format_args!("Added `{name}` to `{}`.", self.added.servers.display()));
        if !self.tried {
            text.line(format_args!("  {}", self.server.command_line()));
            reach(self.server).iter().for_each(|line| text.line(line));
        }
        match self.annotations {
            Some(file) => text.line(format_args!("Its tools are annotated in `{}`.", file.display())),
            None => text.line(self.unannotated()?),
        }
        if let Some(data) = &self.added.data {
            text.line(format_args!("Its data is stored in `{}`.", data.display()));
        }
        if !self.tried {
            for secret in crate::secrets::missing(self.server) {
                text.line(format_args!("It needs a secret first: ironcurtain secrets set {secret}"));
            }
        }
        let catalog = Catalog::shipped()?;
        let known = self.addition.known.as_ref().and_then(|id| catalog.find(id));
        let node_warning = known.and_then(|known| known.needs_node).and_then(outdated_node_warning);
        node_warning.into_iter().for_each(|line| text.line(line));
        let command = self.addition.entry.get("command").and_then(Value::as_str);
        let is_packaged = command.is_some_and(|command| RUNNERS.contains(&command));
        if !self.tried && !self.options.is_installed() && is_packaged {
            text.line(format_args!("Its package is not installed yet: ironcurtain servers install {name}"));
        }
        Ok(text)
    }

    fn unannotated(&self) -> anyhow::Result<String> {
        let name = &self.server.name;
        let trial = PolicyTrial::open(self.home.clone(), &PolicyFiles::default(), &self.home.user_home)?;
        // An empty name stands for any unannotated tool.
        let calls = UnannotatedCalls::judge(&trial, name, "");
        if calls == UnannotatedCalls::Refused {
            return Ok(format!("Its tools are refused until you run: ironcurtain servers annotate {name}"));
        }
        Ok(format!(
            "Its tools are not annotated yet: {calls}. To annotate them, run: ironcurtain servers annotate {name}"
        ))
    }
}

/// Returns a warning if the installed Node.js is older than the server requires.
fn outdated_node_warning(needed: u32) -> Option<String> {
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output().ok()?;
    node_version_warning(std::str::from_utf8(&output.stdout).ok()?, needed)
}

fn node_version_warning(version: &str, needed: u32) -> Option<String> {
    let major: u32 = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    (major < needed)
        .then(|| format!("Your Node.js is {major}; this server needs {needed} to reach the network."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_outdated_node_is_mentioned() {
        let expected = "Your Node.js is 20; this server needs 24 to reach the network.";
        assert_eq!(node_version_warning("v20.11.1\n", 24).as_deref(), Some(expected));
        assert_eq!(
            (node_version_warning("v24.0.0\n", 24), node_version_warning("no version", 24)),
            (None, None)
        );
    }

    #[test]
    fn arguments_after_a_package_runner_belong_to_the_server() {
        let words = |line: &str| {
            let words = command_words(line.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("ic servers add npx -y x --yes", "ic servers add -- npx -y x --yes"),
            ("ic --json servers add --later npx --yes x", "ic --json servers add --later -- npx --yes x"),
            ("ic servers add --name npx memory --yes", "ic servers add --name npx memory --yes"),
            ("ic servers add -- npx -y x", "ic servers add -- npx -y x"),
            ("ic servers add uvx x", "ic servers add -- uvx x"),
            ("ic servers add docker run -i x", "ic servers add -- docker run -i x"),
            ("ic servers install npx", "ic servers install npx"),
            ("ic servers add", "ic servers add"),
        ] {
            assert_eq!(words(line), expected);
        }
    }
}
