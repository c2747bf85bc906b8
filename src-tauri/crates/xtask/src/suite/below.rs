//! The tests that start sandboxes once more, by programs below `/tmp`: every sandbox has a `/tmp` of its own, and nothing
//! may depend on where a checkout is.
//!
//! - What was built is copied, with the packages that servers are started from; nothing is built a second time.

use super::runner::{self, one};
use crate::cargo::Built;
use crate::parts;
use crate::process::{self, command};
use crate::terminal::say;
use crate::totals::Totals;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// Of which every sandbox has its own.
const TMP: &str = "/tmp";

/// The collections of tests that start sandboxes.
const TESTS: [&str; 3] = ["sandbox", "escape", "system"];

/// Long ones among them that start no sandbox otherwise there: they run once.
const ONCE: [&str; 1] = ["memory::granting_and_revoking_leaks_no_memory"];

/// Returns `true` if the checkout is there in any case.
pub(crate) fn is_here() -> bool {
    parts::root().canonicalize().is_ok_and(|root| root.starts_with(TMP))
}

/// Copies what is needed, and runs it.
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
    anyhow::ensure!(totals != Totals::default(), "there is no test to run");
    Ok(totals)
}

/// A folder below `/tmp` with what was built. Dropped, it is removed.
struct Place(PathBuf);

impl Place {
    fn new() -> anyhow::Result<Self> {
        let made = process::answer(command("mktemp").args(["--directory", "--tmpdir=/tmp"]));
        let made = made.context("no folder could be made below `/tmp`")?;
        Ok(Self(PathBuf::from(made.trim_end())))
    }

    /// Copies programs and packages to where tests look for them; gives the tests with their copies.
    fn copy<'a>(&self, built: &'a [Built]) -> anyhow::Result<Vec<(&'a Built, PathBuf)>> {
        let target = self.0.join("target");
        for registry in ["npm", "pypi"] {
            copy(&parts::root().join("target").join(registry), &target.join(registry))?;
        }
        let mut tests = Vec::new();
        for each in built.iter().filter(|each| is_needed(each)) {
            let file = each.program.file_name().context("a program without a name")?;
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
        // What is left of it does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The programs of all packages but the app, and the tests that start sandboxes.
fn is_needed(built: &Built) -> bool {
    if built.test { TESTS.contains(&built.name.as_str()) } else { built.package != parts::root() }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to.parent().context("a place without a folder")?)?;
    process::run(command("cp").args(["--archive", "--reflink=auto", "--"]).args([from, to]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_sandboxes_is_copied_and_the_app_is_not() {
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
