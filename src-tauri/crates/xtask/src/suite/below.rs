//! Runs the tests with sandboxes again from `/tmp`: every sandbox has its own `/tmp`, and nothing may depend on the location
//! of a checkout.
//!
//! - The built programs and the servers' packages are copied; nothing is built again.

use super::runner::{self, one};
use crate::cargo::Built;
use crate::parts;
use crate::process::{self, command};
use crate::terminal::say;
use crate::totals::Totals;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// Folder that every sandbox replaces with its own.
const TMP: &str = "/tmp";

/// Test programs that start sandboxes.
const TESTS: [&str; 3] = ["sandbox", "escape", "system"];

/// Long tests among them whose sandboxes do not depend on the location: they are not repeated.
const ONCE: [&str; 1] = ["memory::granting_and_revoking_leaks_no_memory"];

/// Returns true if the checkout is below it anyway.
pub(crate) fn is_here() -> bool {
    parts::root().canonicalize().is_ok_and(|root| root.starts_with(TMP))
}

/// Copies the programs and runs the tests.
pub(crate) fn run(built: &[Built]) -> anyhow::Result<Totals> {
    let place = Place::new()?;
    let mut totals = Totals::default();
    let tests = place.copy(built)?;
    for (tests, program) in tests {
        say(&format!("\n-- {} in {TMP}", tests.name))?;
        let mut program = runner::program(tests, &program);
        program.args(ONCE.iter().flat_map(|test| ["--skip", test])).current_dir(&tests.package);
        totals.add(one(&mut program, Totals::of_program));
    }
    anyhow::ensure!(totals != Totals::default(), "no tests were run");
    Ok(totals)
}

/// Folder below `/tmp` with the copies, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> anyhow::Result<Self> {
        let made = process::answer(command("mktemp").args(["--directory", "--tmpdir=/tmp"]));
        let made = made.context("failed to create a folder below `/tmp`")?;
        Ok(Self(PathBuf::from(made.trim_end())))
    }

    /// Copies programs and packages to where the tests look for them, and returns the tests with their copies.
    fn copy<'a>(&self, built: &'a [Built]) -> anyhow::Result<Vec<(&'a Built, PathBuf)>> {
        let target = self.0.join("target");
        for registry in ["npm", "pypi"] {
            copy(&parts::root().join("target").join(registry), &target.join(registry))?;
        }
        let mut tests = Vec::new();
        for each in built.iter().filter(|each| is_needed(each)) {
            let file = each.program.file_name().context("the program's path has no file name")?;
            let folder = match each.program.parent().and_then(Path::file_name) {
                Some(name) if name == "examples" => target.join("debug/examples"),
                Some(name) if name == "deps" => target.join("debug/deps"),
                Some(_) | None => target.join("debug"),
            };
            let to = folder.join(file);
            copy(&each.program, &to)?;
            tests.extend(each.test.then_some((each, to)));
        }
        Ok(tests)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Ignore the error: leftovers do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns true for the programs of all packages except the app, and the tests that start sandboxes.
fn is_needed(built: &Built) -> bool {
    if built.test { TESTS.contains(&built.name.as_str()) } else { built.package != parts::root() }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to.parent().context("the path has no parent folder")?)?;
    process::run(command("cp").args(["--archive", "--reflink=auto", "--"]).args([from, to]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_sandbox_tests_but_not_the_app() {
        let built = |package: &str, name: &str, test| Built {
            package: parts::root().join(package),
            name: name.to_owned(),
            test,
            program: PathBuf::new(),
        };
        assert!(is_needed(&built("src-tauri/crates/sandbox", "ironcurtain-sandbox", false)));
        assert!(is_needed(&built("src-tauri/crates/daemon", "system", true)));
        assert!(!is_needed(&built("src-tauri/crates/daemon", "ironcurtain_daemon", true)));
        assert!(!is_needed(&built("", parts::APP, false)));
    }
}
