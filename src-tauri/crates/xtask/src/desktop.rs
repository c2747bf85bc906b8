//! Measures the app, and draws the documentation's pictures, on a private display.
//!
//! - Both use the program of the display tests, so they show and measure the same code.

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

/// Names of the test that computes every figure, and of the test that draws every dialog of the documentation.
const FIGURES: &str = "measurements::desktop_measurements_are_complete";
const DIALOGS: &str = "pictures::every_documented_dialog_has_a_current_picture";
/// Part of the name of the page test that measures drawing.
const DRAWING: &str = "ten thousand calls";

/// Folder of the pictures, and their maximum total size in bytes.
pub(crate) const PICTURES: &str = "docs/pictures";
pub(crate) const MOST_BYTES: u64 = 1_500_000;

/// Measures startup, wake-ups and memory of the app in a release build.
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
    let page = output(node.arg("tests/window/pages.browser.js"))?;
    let drawing =
        page.lines().find(|line| line.contains("drawing took")).context("the page was not measured")?;
    let drawing = drawing.trim_start_matches(['#', ' ']);
    let drawing = format!("The page (limit for one drawing: 50 ms): {drawing}.");
    say(&drawing)?;
    if write {
        bench::write_of_desktop(&format!("{table}\n{drawing}\n"))?;
    }
    Ok(())
}

/// Draws every picture of the documentation again.
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
    dialogs.args(["--exact", DIALOGS]).env("IRONCURTAIN_PICTURES", &folder).current_dir(parts::root());
    output(&mut dialogs)?;
    process::run(command("node").args(["tests/window/pictures.js", "--guide"]).arg(&folder))?;
    let mut all = 0;
    for picture in fs::read_dir(&folder)? {
        let picture = picture?.path();
        smaller(&picture)?;
        all += fs::metadata(&picture)?.len();
    }
    anyhow::ensure!(all <= MOST_BYTES, "the pictures take {all} bytes, more than {MOST_BYTES}");
    say(&format!("updated {PICTURES}, {} kB; review each picture before committing", all / 1000))
}

/// Reduces the palette, because a window uses only a few hundred colours.
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

/// Returns the program of the display tests.
fn tests() -> anyhow::Result<PathBuf> {
    let built = cargo::build(&["--package", APP, "--test", "desktop"])?;
    let tests = built.into_iter().find(|Built { test, name, .. }| *test && name == "desktop");
    tests.map(|tests| tests.program).context("the display tests were not built")
}

/// Returns the output of a program, which must succeed.
fn output(program: &mut Command) -> anyhow::Result<String> {
    let output = program.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("failed to start `{}`", process::shown(program)))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success(),
        "{said}\n`{}` failed: {}",
        process::shown(program),
        output.status
    );
    Ok(said)
}
