//! Measures the app, and draws the documentation's pictures on a private display.
//!
//! - Both use the program of the display tests, so they measure and show the code that is tested.

use crate::bench;
use crate::cargo::{self, Built};
use crate::machine::{self, Purpose};
use crate::parts::{self, APP};
use crate::process::{self, command};
use crate::terminal::{heading, say};
use crate::{programs, servers};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Test that takes all measurements (`FIGURES`), and the common prefix of the tests that draw the documentation's
/// dialogs.
const FIGURES: &str = "measurements::desktop_measurements_are_complete";
const DIALOGS: &str = "pictures::";
/// Text in the names of the page tests that measure (`DRAWING`), and the prefixes of the lines that they print.
const DRAWING: &str = "ten thousand";
const DRAWN: [&str; 2] = ["scrolling ", "drawing took "];

/// Folder of the pictures (`PICTURES`), and their maximum total size in bytes.
pub(crate) const PICTURES: &str = "docs/pictures";
pub(crate) const MAX_BYTES: u64 = 1_500_000;

/// Measures the startup, wake-ups and memory of a release build of the app.
pub(crate) fn measure(write: bool) -> anyhow::Result<()> {
    prepare()?;
    heading("Building for release (many minutes the first time)")?;
    let app = programs::build_for_release(&["--package", APP], &["--bins"])?;
    let tests = tests()?;
    heading("Measuring")?;
    let mut figures = Command::new(&tests);
    figures.args(["--exact", FIGURES, "--nocapture"]).current_dir(parts::root());
    figures.env("IRONCURTAIN_FIGURES", "whole").env("IRONCURTAIN_APP", cargo::find(&app, APP)?);
    let table: String = output(&mut figures)?
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| format!("{line}\n"))
        .collect();
    say(&table)?;
    let mut node = command("node");
    node.args(["--test", "--test-reporter=tap", &format!("--test-name-pattern={DRAWING}")]);
    let page = output(node.args(["tests/window/activity.browser.js", "tests/window/pages.browser.js"]))?;
    let mut drawing = "The page:\n".to_owned();
    for start in DRAWN {
        let line =
            page.lines().find_map(|line| line.split_once(start)).context("the page was not measured")?;
        drawing += &format!("\n- {start}{}", line.1);
    }
    say(&drawing)?;
    if write {
        bench::write_of_desktop(&format!("{table}\n{drawing}\n"))?;
    }
    Ok(())
}

/// Redraws all pictures in the documentation.
pub(crate) fn pictures() -> anyhow::Result<()> {
    prepare()?;
    heading("Building the app (some minutes the first time)")?;
    cargo::build(&["--package", APP, "--example", "desktop-harness"])?;
    let tests = tests()?;
    let folder = parts::root().join(PICTURES);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    heading("Drawing")?;
    let mut dialogs = Command::new(&tests);
    dialogs.arg(DIALOGS).env("IRONCURTAIN_PICTURES", &folder).current_dir(parts::root());
    output(&mut dialogs)?;
    process::run(command("node").args(["tests/window/pictures.js", "--guide"]).arg(&folder))?;
    let mut all = 0;
    for picture in fs::read_dir(&folder)? {
        let picture = picture?.path();
        smaller(&picture)?;
        all += fs::metadata(&picture)?.len();
    }
    anyhow::ensure!(all <= MAX_BYTES, "the pictures take {all} bytes, more than {MAX_BYTES}");
    say(&format!("updated {PICTURES}, {} kB; review each picture before committing", all / 1000))
}

/// Shrinks a picture by reducing its colours. A window uses only a few hundred.
fn smaller(picture: &Path) -> anyhow::Result<()> {
    let mut convert = command("convert");
    convert.arg(picture).args(["-strip", "+dither", "-colors", "128", "-define", "png:compression-level=9"]);
    process::run(convert.arg(format!("PNG8:{}", picture.display())))
}

fn prepare() -> anyhow::Result<()> {
    machine::prepare(&[
        Purpose::Compile,
        Purpose::Sandbox,
        Purpose::App,
        Purpose::Tests,
        Purpose::DisplayTests,
    ])?;
    servers::install()
}

/// Builds the display tests and returns the path of their program.
fn tests() -> anyhow::Result<PathBuf> {
    let built = cargo::build(&["--package", APP, "--test", "desktop"])?;
    let tests = built.into_iter().find(|Built { test, name, .. }| *test && name == "desktop");
    tests.map(|tests| tests.program).context("the display tests were not built")
}

/// Returns a program's output, or an error if the program fails.
fn output(program: &mut Command) -> anyhow::Result<String> {
    let output = program.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("failed to start `{}`", process::shown(program)))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success(),
        "{stdout}\n`{}` failed: {}",
        process::shown(program),
        output.status
    );
    Ok(stdout)
}
