//! Generates shell completions and manual pages from the command-line definition.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Prints the completion script for a shell.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ironcurtain", &mut text);
    io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a manual page for each command to the folder.
pub fn pages(folder: &Path) -> anyhow::Result<ExitCode> {
    let written = clap_mangen::generate_to(Arguments::command(), folder);
    written.with_context(|| format!("failed to write manual pages to `{}`", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
