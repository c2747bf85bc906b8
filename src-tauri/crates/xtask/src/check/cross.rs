//! `cargo xtask check --cross`: checks that the code compiles for macOS and Windows.
//!
//! - Only types are checked, without linking or running. A fake C compiler creates empty files for the C code of
//!   dependencies, so no toolchains for these systems are needed.
//! - All crates are checked for macOS, but only those that need no Unix interfaces for Windows ([`FOR_WINDOWS`]).

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

/// Packages that are checked for Windows. The others use Unix sockets, files or processes: the audit log, git facts,
/// the protocol, the `srt` settings, the trusted process and everything that depends on it, including the app.
const FOR_WINDOWS: [&str; 7] = [
    "ironcurtain-client-config",
    "ironcurtain-egress",
    "ironcurtain-filesystem",
    "ironcurtain-paths",
    "ironcurtain-policy",
    "ironcurtain-policy-tools",
    "ironcurtain-sandbox",
];

/// Shell script of the fake C compiler, which creates an empty output file.
const COMPILER: &str =
    "#!/bin/sh\nfor word; do\n    [ \"$last\" = -o ] && : > \"$word\"\n    last=$word\ndone\nexit 0\n";
const ARCHIVER: &str = "#!/bin/sh\nfor word; do\n    case $word in *.a) : > \"$word\" ;; esac\ndone\n";

/// Installs each target's standard library and checks the crates.
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
        .context("failed to install the standard libraries of macOS and Windows with `rustup`")?;
    heading("For macOS")?;
    process::run(with(&tools, MACOS).args(["--workspace", "--exclude", "xtask"]))?;
    heading("For Windows")?;
    process::run(with(&tools, WINDOWS).args(FOR_WINDOWS.iter().flat_map(|package| ["--package", package])))
}

/// Returns the `cargo check` command for a target, which uses the fake compiler in `tools`.
fn with(tools: &Path, target: &str) -> Command {
    let mut check = cargo::command(&["check", "--target", target]);
    let suffix = target.replace('-', "_");
    for (variable, tool) in [("CC", "compiler"), ("CXX", "compiler"), ("AR", "archiver")] {
        check.env(format!("{variable}_{suffix}"), tools.join(tool));
    }
    // Without these variables, build scripts would run macOS tools.
    check.env("SDKROOT", tools).env("MACOSX_DEPLOYMENT_TARGET", "11.0");
    check
}
