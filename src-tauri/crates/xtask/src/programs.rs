//! Tasks that build a program and run it.

use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::parts::{APP, DAEMON, HELPERS, SANDBOX};
use crate::process;
use crate::terminal::{heading, say};
use std::path::Path;
use std::process::Command;

/// Starts the app, or the demo if there is no display.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if !has_display() {
        say("No display found; running the demo instead of the app.")?;
        return demo(arguments);
    }
    machine::prepare(&[Purpose::Compile, Purpose::Sandbox, Purpose::App])?;
    heading("Building the app (some minutes the first time)")?;
    let built = build(&["--package", APP], &["--bins"])?;
    let mut app = Command::new(cargo::find(&built, APP)?);
    if is_root() && !arguments.iter().any(|a| a == "--allow-root") {
        app.arg("--allow-root");
    }
    heading("IronCurtain is running; look for the curtain icon in your panel. Press Ctrl-C to quit")?;
    process::run(app.args(arguments))
}

/// Runs the demo.
pub(crate) fn demo(arguments: &[String]) -> anyhow::Result<()> {
    let on_desktop = arguments.iter().any(|a| a == "--desktop");
    let (purposes, packages): (&[Purpose], &[&str]) = if on_desktop {
        (&[Purpose::Compile, Purpose::Sandbox, Purpose::App], &["--package", DAEMON, "--package", APP])
    } else {
        (&[Purpose::Compile, Purpose::Sandbox], &["--package", DAEMON])
    };
    machine::prepare(purposes)?;
    heading("Building the demo (a minute or two the first time)")?;
    let built = build(packages, &["--bins", "--example", "demo"])?;
    process::run(Command::new(cargo::find(&built, "demo")?).args(arguments))
}

/// Builds packages and the programs that they expect in the same directory.
pub(crate) fn build(packages: &[&str], targets: &[&str]) -> anyhow::Result<Vec<Built>> {
    let helpers = HELPERS.iter().flat_map(|helper| ["--package", helper]);
    cargo::build(&packages.iter().copied().chain(helpers).chain(targets.iter().copied()).collect::<Vec<_>>())
}

/// Like [`build`], but makes a release build with a statically linked sandbox supervisor.
pub(crate) fn build_for_release(packages: &[&str], targets: &[&str]) -> anyhow::Result<Vec<Built>> {
    let built = build(&[&["--release"], packages].concat(), targets)?;
    if !cargo::link_statically(SANDBOX) {
        say("No static C library found; each sandbox uses about 1 MB more memory.")?;
        return build(&[&["--release"], packages].concat(), targets);
    }
    Ok(built)
}

fn has_display() -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|v| std::env::var_os(v).is_some_and(|v| !v.is_empty()))
}

/// Returns `true` if this process runs as root, judging by the owner of its `/proc` entry.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|me| me.uid() == 0)
}
