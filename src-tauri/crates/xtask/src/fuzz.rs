//! Fuzzes all parsers of untrusted bytes. The fuzz targets are in `src-tauri/fuzz`, a separate workspace.
//!
//! - Findings are stored in `src-tauri/fuzz/artifacts`, and make the task fail.

use crate::terminal::{heading, say};
use crate::{parts, process};
use anyhow::{Context, bail};

const DIRECTORY: &str = "src-tauri/fuzz";

/// Manifest of the fuzzing workspace.
pub(crate) const MANIFEST: &str = "src-tauri/fuzz/Cargo.toml";

/// Runs one fuzz target, or all of them one after another.
pub(crate) fn run(target: Option<&str>, seconds: u32) -> anyhow::Result<()> {
    let all = targets()?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| target.is_none_or(|wanted| wanted == *name)).collect();
    if chosen.is_empty() {
        bail!("unknown target; expected one of {}", all.join(", "));
    }
    prepare()?;
    for target in chosen {
        heading(&format!("Fuzzing `{target}` for {seconds} s"))?;
        let corpus = format!("{DIRECTORY}/corpus/{target}");
        std::fs::create_dir_all(parts::root().join(&corpus))?;
        let seeds = format!("{DIRECTORY}/seeds/{target}");
        let mut fuzz = process::command("cargo");
        fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir", DIRECTORY, "--target-dir", "target/fuzz"]);
        fuzz.args([target.as_str(), &corpus, &seeds, "--"]).arg(format!("-max_total_time={seconds}"));
        // `cargo-fuzz` selects the nightly compiler only if these variables are unset.
        process::run(fuzz.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO"))?;
    }
    say("no findings")
}

/// Returns the names of all fuzz targets.
fn targets() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(parts::root().join(DIRECTORY).join("targets"))? {
        let path = file?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Requires a nightly compiler, and installs `cargo-fuzz` if it is missing.
fn prepare() -> anyhow::Result<()> {
    let mut nightly = process::command("cargo");
    process::answer(
        nightly.args(["+nightly", "--version"]).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO"),
    )
    .context("fuzzing needs a nightly compiler: `rustup toolchain install nightly`")?;
    if process::answer(process::command("cargo").args(["fuzz", "--version"])).is_none() {
        heading("Installing cargo-fuzz")?;
        process::run(process::command("cargo").args(["install", "cargo-fuzz", "--locked"]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_listed_and_has_seeds() {
        let manifest = std::fs::read_to_string(parts::root().join(DIRECTORY).join("Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
        for target in targets {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
            let seeds = parts::root().join(DIRECTORY).join("seeds").join(&target);
            assert!(std::fs::read_dir(seeds).unwrap().next().is_some(), "{target}");
        }
    }
}
