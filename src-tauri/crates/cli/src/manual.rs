//! The commands as a shell and a manual know them, from the same lines that read them.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Prints what a shell reads to complete them.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ironcurtain", &mut text);
    io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for each command.
pub fn pages(folder: &Path) -> anyhow::Result<ExitCode> {
    let written = clap_mangen::generate_to(Arguments::command(), folder);
    written.with_context(|| format!("`{}` cannot be written", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
