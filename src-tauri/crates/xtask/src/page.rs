//! Checks the types in the window's page, and runs its tests in Node.js and in the app's web engine.
//!
//! - `tests/package.json` pins the versions of the tools.

use crate::machine::{self, Purpose};
use crate::terminal::say;
use crate::totals::Totals;
use crate::{parts, process, servers};
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Timeout for the tests, ample even on a slow machine.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Tests of the page to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageTests {
    /// Tests of functions, in Node.js.
    Functions,
    /// Tests of whole pages, in the web engine on a private display.
    Pages,
}

/// Checks the types in all files of `ui/`, using a copy with type declarations for third-party files.
pub(crate) fn types() -> anyhow::Result<()> {
    machine::prepare(&[Purpose::Tests])?;
    servers::install()?;
    let (root, npm) = (parts::root(), parts::root().join("target/npm/node_modules"));
    let copy = root.join("target/page");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_all(&root.join("ui"), &copy.join("ui"))?;
    for file in ["tsconfig.json", "globals.d.ts"] {
        fs::copy(root.join("tests/window").join(file), copy.join(file))?;
    }
    for file in ["lit-html.d.ts", "directive.d.ts", "directives/repeat.d.ts", "directives/live.d.ts"] {
        fs::copy(npm.join("lit-html").join(file), copy.join("ui/vendor/lit-html").join(file))?;
    }
    process::run(process::command("node").arg(npm.join("typescript/bin/tsc")).arg("--project").arg(copy))
}

/// Runs the tests, as many files at once as there are processors. Starts with the largest file, which takes longest.
/// Prints the output at the end, because another stage may be printing.
pub(crate) fn test(tests: PageTests) -> anyhow::Result<Totals> {
    let ending = match tests {
        PageTests::Functions => ".test.js",
        PageTests::Pages => ".browser.js",
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(parts::root().join("tests/window"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(ending) {
            files.push((entry.metadata()?.len(), entry.path()));
        }
    }
    files.sort();
    let at_once = format!("--test-concurrency={}", thread::available_parallelism()?);
    let mut node = process::command("node");
    node.args(["--test", "--test-reporter=tap", &at_once])
        .args(files.into_iter().rev().map(|(_, file)| file));
    let (mut totals, mut told, mut lines) = (Totals::default(), false, Vec::new());
    let ended = process::watch(&mut node, LIMIT, |line| {
        told |= add(&mut totals, line);
        lines.push(line.to_owned());
        Ok(())
    });
    say(&lines.join("\n"))?;
    let ended = ended?;
    anyhow::ensure!(told && totals != Totals::default(), "no tests were run");
    if !ended.success() && totals.failed == 0 {
        totals.add(Totals::ONE_FAILURE);
    }
    Ok(totals)
}

/// Adds a line of Node.js's test summary to the totals. A skipped test counts as failed. Returns `false` if the line
/// is not part of a summary.
fn add(totals: &mut Totals, line: &str) -> bool {
    let Some((what, count)) = line.strip_prefix("# ").and_then(|line| line.split_once(' ')) else {
        return false;
    };
    let Ok(count) = count.parse::<u64>() else { return false };
    match what {
        "pass" => totals.passed += count,
        "fail" | "cancelled" | "skipped" | "todo" => totals.failed += count,
        _ => return false,
    }
    true
}

fn copy_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = (entry?, to.to_path_buf());
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| format!("{}", to.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_count_as_failures() {
        let mut totals = Totals::default();
        let sum = [
            "# tests 9",
            "# pass 5",
            "# fail 1",
            "# cancelled 1",
            "# skipped 2",
            "# drawing took 3 ms",
            "ok 1",
        ];
        let told = sum.iter().filter(|line| add(&mut totals, line)).count();
        assert_eq!((totals, told), (Totals { passed: 5, failed: 4 }, 4));
    }
}
