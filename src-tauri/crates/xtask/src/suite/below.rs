//! Repeats tests that could depend on the location of the checkout, the home directory or the user, using copies of the
//! programs below `/tmp`.
//!
//! - If root runs the suite, as in CI, these tests run as an ordinary user. Root could, for example, open a file whose
//!   path the user cannot reach, or take a terminal from another session.
//! - Every sandbox has a private `/tmp`, so a home directory, program or grant below the host's `/tmp` is mounted
//!   differently.
//! - Programs and server packages are linked or copied, not built again. Linking a file changes its `ctime`, and a server
//!   whose program changes while it is starting is refused. Files are therefore linked and unlinked while no other tests
//!   are running.

use super::report::Report;
use super::runner;
use crate::cargo::Built;
use crate::parts;
use crate::process::{self, command};
use crate::programs;
use crate::totals::Totals;
use anyhow::Context;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory that is private in each sandbox.
const TMP: &str = "/tmp";

/// Id of a user and a group that own no files.
const ORDINARY_USER: &str = "12345";

/// Test programs to repeat, each with its modules about mounts, views, home directories, protected paths, and starting
/// programs.
const TESTS: [(&str, &[&str]); 2] = [
    ("sandbox", &["grants::", "host_read::", "runtimes::", "special::", "view::"]),
    (
        "system",
        &[
            "attach::background::",
            "attach::permitted::",
            "containment::",
            "managed::denied_folders::",
            "mount_stability::",
            "package_installs::attacks::",
            "protected::",
            "run_terminal::",
            "visibility::",
            "workspace::",
        ],
    ),
];

/// Returns `true` if the checkout is already below `/tmp`.
pub(crate) fn is_here() -> bool {
    parts::root().canonicalize().is_ok_and(|root| root.starts_with(TMP))
}

/// Returns the command that runs another one as an ordinary user, or that command if the current user is not root.
fn as_ordinary_user(command: Command) -> Command {
    if !programs::is_root() {
        return command;
    }
    let mut user = Command::new("setpriv");
    user.args(["--reuid", ORDINARY_USER, "--regid", ORDINARY_USER, "--clear-groups"]);
    user.args(["env", "HOME=/nonexistent"]).arg(command.get_program()).args(command.get_args());
    user
}

fn modules(program: &str) -> &'static [&'static str] {
    TESTS.iter().find(|(name, _)| *name == program).map_or(&[], |(_, modules)| *modules)
}

/// Copy of the checkout below `/tmp`.
pub(crate) struct CheckoutCopy {
    folder: CopyFolder,
    tests: Vec<Built>,
}

impl CheckoutCopy {
    /// Copies all needed files.
    pub(crate) fn create(built: &[Built]) -> anyhow::Result<Self> {
        let folder = CopyFolder::create()?;
        let tests = folder.copy(built)?;
        Ok(Self { folder, tests })
    }

    /// Runs the tests.
    pub(crate) fn test(&self) -> anyhow::Result<Report> {
        let programs: Vec<&Built> = self.tests.iter().collect();
        let report = runner::run_all(&programs, 1, |tests| {
            let mut program = as_ordinary_user(runner::program(tests, &tests.program));
            program.args(modules(&tests.name)).current_dir(&self.folder.0);
            program
        });
        anyhow::ensure!(report.totals != Totals::default(), "there is no test to run");
        Ok(report)
    }
}

/// Folder below `/tmp` that contains the copies. Dropping it removes the folder.
struct CopyFolder(PathBuf);

impl CopyFolder {
    fn create() -> anyhow::Result<Self> {
        let made = process::answer(command("mktemp").args(["--directory", "--tmpdir=/tmp"]));
        let made = made.context("failed to create a folder below `/tmp`")?;
        let folder = Self(PathBuf::from(made.trim_end()));
        std::fs::set_permissions(&folder.0, Permissions::from_mode(0o755))?;
        Ok(folder)
    }

    /// Copies programs and packages to the paths that tests expect. Returns the copied test programs.
    fn copy(&self, built: &[Built]) -> anyhow::Result<Vec<Built>> {
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
            tests.extend(each.test.then(|| Built { program: to, ..each.clone() }));
        }
        Ok(tests)
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        // Ignores the error: leftover files are harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns `true` for programs of all packages except the app, and for tests that start sandboxes.
fn is_needed(built: &Built) -> bool {
    if built.test { !modules(&built.name).is_empty() } else { built.package != parts::root() }
}

/// Hard-links files if both paths are on the same file system, because the packages need more than a gigabyte.
/// Otherwise, copies them.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().context("the path has no parent folder")?;
    std::fs::create_dir_all(folder)?;
    let how = if from.metadata()?.dev() == folder.metadata()?.dev() { "--link" } else { "--reflink=auto" };
    process::run(command("cp").args(["--archive", how, "--"]).args([from, to]))
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
