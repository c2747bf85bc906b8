//! `cargo xtask check --cross`: our code as the compilers for macOS and Windows see it.
//!
//! - Types only: nothing is linked and nothing runs. What C there is among dependencies is not compiled, so that no toolchain of
//!   those systems is needed: a compiler of ours makes empty files.
//! - Every crate is checked for macOS. For Windows it is those that need nothing of Unix, by name ([`FOR_WINDOWS`]).

use crate::process::{self, command};
use crate::terminal::heading;
use crate::{cargo, parts};
use anyhow::Context;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const MACOS: &str = "aarch64-apple-darwin";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// The packages that are checked for Windows. The others have sockets, files and processes of Unix in them: the record, what git
/// says, the protocol, the settings of `srt`, the trusted process, and all that is built on it, the app among it.
const FOR_WINDOWS: [&str; 7] = [
    "ironcurtain-client-config",
    "ironcurtain-egress",
    "ironcurtain-filesystem",
    "ironcurtain-paths",
    "ironcurtain-policy",
    "ironcurtain-policy-tools",
    "ironcurtain-sandbox",
];

/// Makes whatever it is told to make, with nothing in it.
const COMPILER: &str =
    "#!/bin/sh\nfor word; do\n    [ \"$last\" = -o ] && : > \"$word\"\n    last=$word\ndone\nexit 0\n";
const ARCHIVER: &str = "#!/bin/sh\nfor word; do\n    case $word in *.a) : > \"$word\" ;; esac\ndone\n";

/// Checks all of it, after the standard library of each system was installed.
pub(crate) fn check() -> anyhow::Result<()> {
    let tools = parts::root().join("target/cross");
    fs::create_dir_all(&tools)?;
    for (name, text) in [("compiler", COMPILER), ("archiver", ARCHIVER)] {
        let tool = tools.join(name);
        fs::write(&tool, text)?;
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
    }
    let mut rustup = command("rustup");
    process::run(rustup.args(["target", "add", MACOS, WINDOWS]))
        .context("the standard libraries of macOS and Windows come from `rustup`")?;
    heading("For macOS")?;
    process::run(with(&tools, MACOS).args(["--workspace", "--exclude", "xtask"]))?;
    heading("For Windows")?;
    process::run(with(&tools, WINDOWS).args(FOR_WINDOWS.iter().flat_map(|package| ["--package", package])))
}

/// `cargo check` for a system, with tools that make nothing.
fn with(tools: &Path, target: &str) -> Command {
    let mut check = cargo::command(&["check", "--target", target]);
    let suffix = target.replace('-', "_");
    for (variable, tool) in [("CC", "compiler"), ("CXX", "compiler"), ("AR", "archiver")] {
        check.env(format!("{variable}_{suffix}"), tools.join(tool));
    }
    // Else the system's own tools are asked for them.
    check.env("SDKROOT", tools).env("MACOSX_DEPLOYMENT_TARGET", "11.0");
    check
}
