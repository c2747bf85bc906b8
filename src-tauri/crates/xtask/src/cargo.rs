//! Runs Cargo and lists the programs that it built.

use crate::process;
use anyhow::bail;
use serde_json::Value;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program or library that Cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    /// Directory of the package.
    pub(crate) package: PathBuf,
    /// Name of the Cargo target: a binary, an example, a test or a library.
    pub(crate) name: String,
    /// `true` for a test program.
    pub(crate) test: bool,
    /// Path of the program.
    pub(crate) program: PathBuf,
}

/// Returns a command for the `cargo` that runs this program.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = process::command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(arguments);
    command
}

/// Runs a Cargo build. Returns every program that was built or already up to date.
pub(crate) fn build(arguments: &[&str]) -> anyhow::Result<Vec<Built>> {
    let mut command = command(&["build", "--message-format=json-render-diagnostics"]);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
    let mut built = Vec::new();
    if let Some(messages) = child.stdout.take() {
        for message in std::io::BufReader::new(messages).lines() {
            built.extend(program(&serde_json::from_str(&message?)?));
        }
    }
    if !child.wait()?.success() {
        bail!("`cargo build {}` failed", arguments.join(" "));
    }
    Ok(built)
}

/// Relinks this package's release binary statically, which reduces its memory use and startup time. Returns `false` on
/// failure, for example without a static C library.
pub(crate) fn link_statically(package: &str) -> bool {
    let program = ["--release", "--quiet", "--package", package, "--bin", package];
    let mut command = command(&["rustc"]);
    command.args(program).args(["--", "-C", "target-feature=+crt-static"]);
    command.status().is_ok_and(|status| status.success())
}

/// Returns the path of a built program.
pub(crate) fn find<'a>(built: &'a [Built], name: &str) -> anyhow::Result<&'a Path> {
    let found = built.iter().find(|b| !b.test && b.name == name);
    found.map(|b| b.program.as_path()).ok_or_else(|| anyhow::anyhow!("program `{name}` was not built"))
}

/// Parses a Cargo message. Returns the program that it reports, if any.
fn program(message: &Value) -> Option<Built> {
    if message.get("reason")? != "compiler-artifact" {
        return None;
    }
    let manifest = PathBuf::from(message.get("manifest_path")?.as_str()?);
    Some(Built {
        package: manifest.parent()?.to_path_buf(),
        name: message.pointer("/target/name")?.as_str()?.to_owned(),
        test: message.pointer("/profile/test")?.as_bool()?,
        program: PathBuf::from(message.get("executable")?.as_str()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn distinguishes_programs_from_libraries() {
        let mut message = json!({
            "reason": "compiler-artifact", "manifest_path": "/c/Cargo.toml",
            "target": { "name": "system" }, "profile": { "test": true }, "executable": "/t/system-1",
        });
        let system =
            Built { package: "/c".into(), name: "system".into(), test: true, program: "/t/system-1".into() };
        assert_eq!(program(&message), Some(system));
        message["executable"] = Value::Null;
        assert_eq!(program(&message), None);
        assert_eq!(program(&json!({ "reason": "build-finished", "success": true })), None);
    }
}
