//! `cargo xtask servers`: adds servers from npm and PyPI as a user does, and calls them.

use crate::machine::{self, Purpose};
use crate::parts::DAEMON;
use crate::terminal::heading;
use crate::{cargo, process, programs};
use std::process::Command;

/// Adds and calls one server, or each in turn, and prints a table.
pub(crate) fn run(name: Option<&str>) -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Compile, Purpose::Sandbox, Purpose::Tests, Purpose::Servers])?;
    heading("Building (some minutes the first time)")?;
    let built = programs::build(&["--package", DAEMON], &["--bins", "--example", "foreign-servers"])?;
    heading("Adding servers from npm and PyPI")?;
    process::run(Command::new(cargo::find(&built, "foreign-servers")?).args(name))
}
