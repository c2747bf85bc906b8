//! The app on a display of its own, for what is no test: figures of it, and the pictures of the documentation.
//!
//! - Both are made by the display tests' own means, in the program of those tests: what can be seen there is what is measured.

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

/// The test that computes every figure, and the one that draws every dialog of the documentation.
const FIGURES: &str = "figures::desktop_measurements_are_complete";
const DIALOGS: &str = "pictures::every_documented_dialog_has_a_current_picture";
/// The test of the page that measures its drawing, by a part of its name.
const DRAWING: &str = "ten thousand calls";

/// The folder of the pictures, and the room that they may take together, in bytes.
pub(crate) const PICTURES: &str = "docs/pictures";
pub(crate) const MOST_BYTES: u64 = 1_500_000;

/// Measures the app in a release build: how soon it is there, how often it wakes, and what it takes.
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
    let drawing = format!("The page, of which one drawing may take 50 ms: {drawing}.");
    say(&drawing)?;
    if write {
        bench::write_of_desktop(&format!("{table}\n{drawing}\n"))?;
    }
    Ok(())
}

/// Draws every picture of the documentation anew.
pub(crate) fn pictures() -> anyhow::Result<()> {
    prepare()?;
    heading("Building the app (some minutes the first time)")?;
    cargo::build(&["--package", APP, "--example", "desktop-stand"])?;
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
    say(&format!("{PICTURES} is made anew, {} kB: look at each before you keep it", all / 1000))
}

/// A few hundred colours are all that a window has.
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

/// The program of the display tests.
fn tests() -> anyhow::Result<PathBuf> {
    let built = cargo::build(&["--package", APP, "--test", "desktop"])?;
    let tests = built.into_iter().find(|Built { test, name, .. }| *test && name == "desktop");
    tests.map(|tests| tests.program).context("the display tests were not built")
}

/// The words of a program, which has to succeed.
fn output(program: &mut Command) -> anyhow::Result<String> {
    let output = program.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("`{}` could not be started", process::shown(program)))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success(),
        "{said}\n`{}` ended with {}",
        process::shown(program),
        output.status
    );
    Ok(said)
}
