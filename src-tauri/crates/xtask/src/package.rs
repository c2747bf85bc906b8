//! Builds the Debian and Fedora packages, the bundle for desktop clients, and the software bill of materials.
//!
//! - The distributions' own tools package a common file tree ([`tree`]). The result is reproducible: packaging the
//!   same programs twice produces the same bytes.
//! - Tests package a debug build instead of a release build. Only the programs differ.

mod bundle;
mod clean_root;
mod deb;
mod parts_list;
mod proof;
mod rpm;
mod tree;

use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::terminal::{heading, say};
use crate::totals::Totals;
use crate::{parts, process, programs};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the packages.
const NAME: &str = "ironcurtain";

/// One-line description of the packages.
const SUMMARY: &str = "Agents ask, you decide, the kernel enforces, and you can take it back";

/// Maintainer of the packages, as the formats require. The address receives no mail; the contact is [`BUGS`].
const MAINTAINER: &str = "The IronCurtain authors <ironcurtain-desktop@users.noreply.github.com>";
const BUGS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");

/// Parameters for building the packages.
struct Making<'a> {
    built: &'a [Built],
    version: String,
    /// Timestamp of all files, in seconds since the Unix epoch.
    moment: String,
    /// Output folder.
    folder: PathBuf,
    /// `true` to use the best compression instead of the fastest.
    is_release: bool,
}

/// Paths of the built packages.
struct Packages {
    deb: PathBuf,
    rpm: PathBuf,
    parts: PathBuf,
    bundle: PathBuf,
}

impl Packages {
    fn files(&self) -> [&Path; 4] {
        [&self.deb, &self.rpm, &self.parts, &self.bundle]
    }
}

/// Makes a release build and packages it.
pub(crate) fn release() -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Compile, Purpose::App, Purpose::Packages])?;
    heading("Building for release (some minutes the first time)")?;
    let built = programs::build_for_release(&["--package", parts::APP], &["--bins"])?;
    made(&built, true).map(drop)
}

/// Packages the debug build and, if requested, tests the `.deb` in a minimal Debian system.
pub(crate) fn debug(in_clean_root: bool) -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Compile, Purpose::App, Purpose::Packages])?;
    let packages = ["--package", parts::APP, "--package", parts::DAEMON];
    let built = programs::build(&packages, &["--bins", "--example", "demo"])?;
    let made = made(&built, false)?;
    if in_clean_root {
        machine::prepare(&[Purpose::CleanRoot])?;
        clean_root::prove(&made, cargo::find(&built, "demo")?)?;
    }
    Ok(())
}

/// Packages a build twice and checks the results.
pub(crate) fn test(built: &[Built]) -> anyhow::Result<Totals> {
    machine::prepare(&[Purpose::Packages])?;
    let one = Making::new(built, parts::root().join("target/package-one"), false)?.make()?;
    let two = Making::new(built, parts::root().join("target/package-two"), false)?.make()?;
    let totals = proof::compare(&one, &two)?;
    for folder in [&one, &two].into_iter().filter_map(|made| made.deb.parent()) {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(totals)
}

fn made(built: &[Built], is_release: bool) -> anyhow::Result<Packages> {
    heading("Packages")?;
    let made = Making::new(built, parts::root().join("target/package"), is_release)?.make()?;
    made.files().into_iter().try_for_each(|file| say(&file.display().to_string()))?;
    let mut lintian = process::command("lintian");
    quietly(lintian.args(["--fail-on", "error,warning", "--allow-root"]).arg(&made.deb))
        .context("lintian found errors in the `.deb`")?;
    Ok(made)
}

impl<'a> Making<'a> {
    fn new(built: &'a [Built], folder: PathBuf, is_release: bool) -> anyhow::Result<Self> {
        let moment = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(moment) => moment,
            Err(_) => process::answer(process::command("git").args(["log", "-1", "--format=%ct"]))
                .context("no git history; set `SOURCE_DATE_EPOCH`")?
                .trim()
                .to_owned(),
        };
        Ok(Self { built, version: parts_list::version()?, moment, folder, is_release })
    }

    fn make(&self) -> anyhow::Result<Packages> {
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder)?;
        }
        std::fs::create_dir_all(&self.folder)?;
        let parts = self.folder.join(format!("{NAME}-{}.cdx.json", self.version));
        std::fs::write(&parts, parts_list::text(&self.version, &self.moment)?)?;
        let tree = tree::lay(self, &parts)?;
        let (deb, rpm) = (deb::make(self, &tree)?, rpm::make(self, &tree)?);
        Ok(Packages { deb, rpm, parts, bundle: bundle::make(self)? })
    }

    /// Returns the command for a packaging tool, with an environment that sets the fixed timestamp.
    fn tool(&self, name: &str) -> Command {
        let mut tool = process::command(name);
        tool.env("SOURCE_DATE_EPOCH", &self.moment).env("LC_ALL", "C").env("TZ", "UTC");
        tool
    }
}

/// Returns the content of a file in the checkout.
fn ours(path: &str) -> anyhow::Result<String> {
    let path = parts::root().join(path);
    std::fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))
}

/// Runs a tool. Shows its output only if it fails.
fn quietly(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.output().with_context(|| format!("failed to start `{}`", process::shown(command)))?;
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    anyhow::ensure!(output.status.success(), "`{}` failed: {printed}", process::shown(command));
    Ok(printed)
}

/// Returns the total size of the files in a folder, in bytes.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        sum += if facts.is_dir() { size(&entry.path())? } else { facts.len() };
    }
    Ok(sum)
}
