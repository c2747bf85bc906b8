//! The sandboxes to compare, and their command lines.

use super::durations;
use super::project::{PROJECT, REFERENCE, SCRIPT};
use anyhow::{Context, ensure};
use ironcurtain_testkit::programs::built;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A sandbox, and the folder in which its commands work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// `ironcurtain run`, in a folder outside the working folder that the user allowed it to read.
    Served,
    /// `ironcurtain run`, in its working folder.
    Run,
    Nothing,
    Bubblewrap,
    Srt,
}

impl Column {
    pub(crate) fn all(home: &BenchHome) -> Vec<Self> {
        let mut all = vec![Self::Served, Self::Run, Self::Nothing, Self::Bubblewrap];
        all.extend(home.srt.is_some().then_some(Self::Srt));
        all
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Served => "run, served folder",
            Self::Run => "run, working folder",
            Self::Nothing => "no sandbox",
            Self::Bubblewrap => "bubblewrap alone",
            Self::Srt => "srt",
        }
    }
}

/// The user's home directory, with the project, and the settings for all sandboxes.
pub(crate) struct BenchHome {
    home_dir: PathBuf,
    person: PathBuf,
    settings: PathBuf,
    srt: Option<String>,
}

impl BenchHome {
    /// Creates the settings for `srt`. The daemon's files are below `base`.
    pub(crate) fn new(base: &Path, person: &Path, srt: Option<String>) -> anyhow::Result<Self> {
        let settings = base.join("srt.json");
        let content = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] } }"#;
        std::fs::write(&settings, content)?;
        Ok(Self { home_dir: base.join("ic"), person: person.to_owned(), settings, srt })
    }

    /// Measures the time from the start of a sandbox to the first byte that `echo` prints. Returns `None` for a column that
    /// differs only in its folder.
    pub(crate) fn first_byte(&self, column: Column) -> anyhow::Result<Option<Duration>> {
        if column == Column::Served {
            return Ok(None);
        }
        let began = Instant::now();
        let mut child = self.command(column, &["echo", "x"]).stdout(Stdio::piped()).spawn()?;
        child.stdout.take().context("no output")?.read_exact(&mut [0])?;
        let took = began.elapsed();
        child.wait()?;
        Ok(Some(took))
    }

    /// Runs all commands in a new sandbox. Returns their durations.
    pub(crate) fn work(&self, column: Column) -> anyhow::Result<Vec<Duration>> {
        let folder = if column == Column::Served { self.person.join(REFERENCE) } else { self.project() };
        let folder = folder.to_str().context("not UTF-8")?;
        let output = self.command(column, &["bash", SCRIPT, folder]).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "{}: {}", column.name(), output.status);
        durations(&String::from_utf8(output.stdout)?)
    }

    fn project(&self) -> PathBuf {
        self.person.join(PROJECT)
    }

    /// Returns the command line that runs `argv` in the working folder. The words in `argv` must not need quoting.
    fn command(&self, column: Column, argv: &[&str]) -> Command {
        let mut command = match column {
            Column::Nothing => Command::new("/usr/bin/env"),
            Column::Bubblewrap => {
                let mut bwrap = Command::new("bwrap");
                bwrap.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]);
                bwrap.arg("--bind").args([self.project(), self.project()]);
                bwrap.args(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--"]);
                bwrap
            }
            Column::Run | Column::Served => {
                let mut run = Command::new(built().join("ironcurtain"));
                run.args(["run", "--quiet", "--"]).env("IRONCURTAIN_HOME", &self.home_dir);
                run
            }
            Column::Srt => {
                let mut srt = Command::new(self.srt.as_deref().unwrap_or("srt"));
                srt.arg("-s").arg(&self.settings).arg("-c").arg(argv.join(" "));
                srt
            }
        };
        if column != Column::Srt {
            command.args(argv);
        }
        command.current_dir(self.project()).env("HOME", &self.person).env_remove("SSH_AUTH_SOCK");
        command.stdin(Stdio::null());
        command
    }
}
