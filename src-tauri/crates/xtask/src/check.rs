//! `cargo xtask check`: runs all checks before a commit except the tests.

mod bounds;
mod circles;
mod cross;
mod doc_lines;
mod documentation;
mod error_types;
mod identifiers;
mod layers;
mod phrases;
mod tidy;
mod tree;
mod type_names;
mod workspace;

use crate::arguments::Scope;
use crate::book;
use crate::cargo;
use crate::fuzz;
use crate::machine::{self, Purpose};
use crate::page;
use crate::parts::APP;
use crate::process;
use crate::servers;
use crate::terminal::{complain, heading, say, spoken};
use anyhow::{Context, bail};
use std::cell::RefCell;
use std::io;
use std::process::Output;
use std::thread::JoinHandle;
use std::time::Instant;

pub(crate) use cross::check as cross;

/// Runs all checks in the scope and reports every failure.
pub(crate) fn run(scope: Scope) -> anyhow::Result<()> {
    let (purposes, app): (&[Purpose], &[&str]) = match scope {
        Scope::Everything => (&[Purpose::Compile, Purpose::App], &[]),
        Scope::Fast => (&[Purpose::Compile], &["--exclude", APP]),
    };
    machine::prepare(purposes)?;
    let cargo =
        |arguments: &[&str]| process::run(cargo::command(arguments).env("RUSTDOCFLAGS", "-D warnings"));
    let clippy = [&["clippy", "--workspace", "--all-targets"], app, &["--", "-D", "warnings"]].concat();
    let doc = [&["doc", "--workspace", "--no-deps"], app].concat();
    // The fuzzing workspace is compiled in the background.
    let fuzz = ["check", "--manifest-path", fuzz::MANIFEST, "--target-dir", "target/fuzz"];
    let fuzz = std::thread::spawn(move || cargo::command(&fuzz).output());
    let fuzz = RefCell::new(Some(fuzz));
    let checks: [(&str, &dyn Fn() -> anyhow::Result<()>); 16] = [
        ("Tidiness", &tidy::check),
        ("Imports", &imports),
        ("Type names", &type_names),
        ("Error types", &error_types),
        ("Identifiers", &identifiers),
        ("Pages", &documentation::check),
        ("Documented limits", &bounds::check),
        ("Doc comments", &doc_lines::check),
        ("Plain English", &phrases::check),
        ("Page types", &page::types),
        ("The book", &book::build),
        ("Formatting", &|| cargo(&["fmt", "--all", "--check"])),
        ("Lints", &|| cargo(&clippy)),
        ("Fuzz targets", &|| finished(fuzz.take())),
        ("Documentation", &|| cargo(&doc)),
        ("Dependencies", &dependencies),
    ];
    let mut failed = Vec::new();
    let mut took = Vec::new();
    for (name, check) in checks {
        heading(name)?;
        let began = Instant::now();
        if let Err(problem) = check() {
            complain(&format!("{problem:#}"));
            failed.push(name);
        }
        took.push(format!("{name} {}", spoken(began.elapsed())));
    }
    say(&format!("\n{}", took.join(", ")))?;
    if !failed.is_empty() {
        bail!("failed checks: {}", failed.join(", "));
    }
    say("\nall checks passed")
}

/// Waits for a background command, and shows its output if it failed.
fn finished(command: Option<JoinHandle<io::Result<Output>>>) -> anyhow::Result<()> {
    let output = command.map(JoinHandle::join).context("the command was already awaited")?;
    let output = output.map_err(|_| anyhow::anyhow!("the command's thread panicked"))??;
    if !output.status.success() {
        bail!("{}\nthe command failed: {}", String::from_utf8_lossy(&output.stderr), output.status);
    }
    Ok(())
}

/// Checks imports between crates and between modules.
fn imports() -> anyhow::Result<()> {
    let packages = workspace::packages()?;
    let trees = workspace::trees(&packages)?;
    circles::check(&trees)?;
    layers::check(&packages, &trees)
}

fn type_names() -> anyhow::Result<()> {
    type_names::check(&workspace::trees(&workspace::packages()?)?)
}

fn identifiers() -> anyhow::Result<()> {
    identifiers::check(&workspace::trees(&workspace::packages()?)?)
}

fn error_types() -> anyhow::Result<()> {
    error_types::check(&workspace::trees(&workspace::packages()?)?)
}

/// Checks the licences and sources of dependencies and, if the advisory database can be downloaded from GitHub, their
/// known vulnerabilities.
fn dependencies() -> anyhow::Result<()> {
    let program = servers::install_deny_tool()?;
    let deny = |arguments: &[&str]| {
        let mut command = process::command(&program.to_string_lossy());
        command.args(["--config", ".deny.toml"]).args(arguments);
        command
    };
    process::run(&mut deny(&["check", "licenses", "bans", "sources"]))?;
    if process::answer(&mut deny(&["fetch", "db"])).is_none() {
        return say("skipped known vulnerabilities: failed to fetch the advisory database");
    }
    process::run(&mut deny(&["check", "advisories"]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn bounds_in_pages_are_valid() {
        if let Err(problem) = super::bounds::check() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn imports_are_valid() {
        if let Err(problem) = super::imports() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn documentation_lines_are_valid() {
        if let Err(problem) = super::doc_lines::check() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn pages_are_valid() {
        if let Err(problem) = super::documentation::check() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn texts_are_plain_english() {
        if let Err(problem) = super::phrases::check() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn identifiers_are_plain() {
        if let Err(problem) = super::identifiers() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn error_types_are_valid() {
        if let Err(problem) = super::error_types() {
            panic!("{problem:#}");
        }
    }

    #[test]
    fn type_names_are_unique() {
        if let Err(problem) = super::type_names() {
            panic!("{problem:#}");
        }
    }
}
