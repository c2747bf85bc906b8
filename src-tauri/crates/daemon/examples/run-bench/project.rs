//! The project in which the commands work, and the commands.

use anyhow::{Context, ensure};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name of the working folder.
pub(crate) const PROJECT: &str = "project";

/// Name of a folder with the same files, outside the working folder.
pub(crate) const REFERENCE: &str = "reference";

/// File in the project that runs the commands.
pub(crate) const SCRIPT: &str = "bench.sh";

/// Number of text files in a folder.
const PER_FOLDER: usize = 100;

/// Number of modules of the Rust program, and of npm packages, to build and to install.
const PARTS: usize = 20;

/// A measured command.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) goal: &'static str,
    /// Shell command.
    command: &'static str,
    /// Shell command that runs before it and is not measured.
    before: &'static str,
    /// `true` if the command changes files, so that it is measured only in the working folder.
    changes: bool,
}

const fn reads(name: &'static str, command: &'static str, goal: &'static str) -> Step {
    Step { name, goal, command, before: "", changes: false }
}

/// The measured commands, in order. Each one runs in the folder to measure.
pub(crate) const BENCH_STEPS: [Step; 8] = [
    reads("`git status`", "git status", "<= 1.05x bubblewrap; served <= 4x working"),
    reads("ripgrep", "rg -c needle", "<= 1.05x bubblewrap; served <= 8x working"),
    reads("ripgrep, again", "rg -c needle", "served <= 5x working"),
    reads("read a large file", "cat large", "served <= 4x working"),
    reads("read it again", "cat large", "served <= 1.5x working"),
    Step {
        before: "rm -rf program/target",
        changes: true,
        ..reads(
            "`cargo build`",
            "cargo build --quiet --offline --manifest-path program/Cargo.toml",
            "<= 1.05x bubblewrap",
        )
    },
    Step {
        before: "touch program/src/main.rs",
        changes: true,
        ..reads(
            "`cargo build`, again",
            "cargo build --quiet --offline --manifest-path program/Cargo.toml",
            "<= 1.05x bubblewrap",
        )
    },
    Step {
        before: "rm -rf packages/node_modules",
        changes: true,
        ..reads("`npm ci`", "npm ci --prefix packages --cache cache --offline", "<= 1.05x bubblewrap")
    },
];

/// Beginning of the script. `t` runs a command and prints its duration in microseconds.
const PRELUDE: &str = r#"set -eu
export LC_ALL=C
t() { local began=$EPOCHREALTIME; "$@" > /dev/null; local ended=$EPOCHREALTIME; echo $((${ended/./} - ${began/./})); }
cd "$1"
# The question about the folder is not part of the measurement.
cat first > /dev/null
"#;

/// Size of the project.
pub(crate) struct Project {
    /// Number of folders with text files.
    folders: usize,
    /// Size of the large file, in MiB.
    large: usize,
}

impl Project {
    pub(crate) const MEASURED: Self = Self { folders: 170, large: 300 };
    pub(crate) const SMOKE: Self = Self { folders: 1, large: 1 };

    /// Creates both folders in the user's home directory.
    pub(crate) fn create(&self, home: &Path) -> anyhow::Result<()> {
        let (project, reference) = (home.join(PROJECT), home.join(REFERENCE));
        for folder in [&project, &reference] {
            self.create_files(folder)?;
        }
        create_program(&project.join("program"))?;
        create_packages(&project.join("packages"))?;
        fs::write(project.join(SCRIPT), script()?)?;
        for folder in [&project, &reference] {
            for words in
                [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"], &["status"]]
            {
                git(folder, words)?;
            }
        }
        Ok(())
    }

    fn create_files(&self, folder: &Path) -> anyhow::Result<()> {
        for number in 0..self.folders {
            let below = folder.join(format!("text/{number}"));
            fs::create_dir_all(&below)?;
            for file in 0..PER_FOLDER {
                let word = if file == 0 { "needle" } else { "straw" };
                fs::write(below.join(format!("{file}.txt")), format!("{word} {number} {file}\n").repeat(50))?;
            }
        }
        let mut large = File::create(folder.join("large"))?;
        (0..self.large).try_for_each(|_| large.write_all(&[b'x'; 1 << 20]))?;
        fs::write(folder.join("first"), "first\n")?;
        fs::write(folder.join(".gitignore"), "/large\n/cache\n/program/target\n/packages/node_modules\n")?;
        Ok(())
    }
}

/// Returns the script. Its argument is the folder to measure.
fn script() -> anyhow::Result<String> {
    let mut script = format!("{PRELUDE}export PATH='{}':\"$PATH\"\n", toolchain()?.join("bin").display());
    for Step { command, before, changes, .. } in &BENCH_STEPS {
        if *changes {
            writeln!(script, "if [ -d program ]; then {before}; t {command}; fi")?;
        } else {
            writeln!(script, "t {command}")?;
        }
    }
    Ok(script)
}

/// Returns the folder of the Rust toolchain, whose programs need no settings of the user.
fn toolchain() -> anyhow::Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    ensure!(output.status.success(), "rustc: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}

/// Creates a Rust program without dependencies.
fn create_program(folder: &Path) -> anyhow::Result<()> {
    let source = folder.join("src");
    fs::create_dir_all(&source)?;
    let manifest = "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let mut main = String::from("#![allow(dead_code)]\n");
    for number in 0..PARTS {
        writeln!(main, "mod part{number};")?;
        let mut part = String::new();
        for at in 0..PARTS {
            writeln!(
                part,
                "#[derive(Debug, Clone, PartialEq, Default)]\npub struct S{at} {{ pub a: String, pub b: Vec<u64> }}"
            )?;
        }
        fs::write(source.join(format!("part{number}.rs")), part)?;
    }
    main.push_str("fn main() {\n");
    for number in 0..PARTS {
        writeln!(main, "    println!(\"{{:?}}\", part{number}::S0::default());")?;
    }
    main.push_str("}\n");
    Ok(fs::write(source.join("main.rs"), main)?)
}

/// Creates packages on disk, and a project that depends on all of them.
fn create_packages(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let mut dependencies = serde_json::Map::new();
    for number in 0..PARTS {
        let (name, package) = (format!("part{number}"), folder.join(format!("make/{number}/package")));
        fs::create_dir_all(&package)?;
        let manifest = serde_json::json!({ "name": name, "version": "1.0.0" });
        fs::write(package.join("package.json"), manifest.to_string())?;
        for file in 0..PER_FOLDER {
            fs::write(
                package.join(format!("{file}.js")),
                format!("export const x{file} = {file};\n").repeat(20),
            )?;
        }
        let archive = folder.join(format!("{name}.tgz"));
        let from = package.parent().context("no folder")?;
        run(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(from).arg("package"))?;
        dependencies.insert(name.clone(), format!("file:{name}.tgz").into());
    }
    fs::remove_dir_all(folder.join("make"))?;
    let manifest =
        serde_json::json!({ "name": "packages", "version": "1.0.0", "dependencies": dependencies });
    fs::write(folder.join("package.json"), manifest.to_string())?;
    let cache = folder.with_file_name("cache");
    run(Command::new("npm").args(["install", "--offline", "--cache"]).arg(cache).current_dir(folder))
}

fn git(folder: &Path, words: &[&str]) -> anyhow::Result<()> {
    let author =
        ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgSign=false"];
    run(Command::new("git").args(author).args(words).current_dir(folder))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
