//! Programs to measure and their command lines.

use super::Fallible;
use std::{fs, path::PathBuf, process::Command};
use tempfile::TempDir;

/// Working directory and settings for all programs.
pub(crate) struct Setting {
    /// Working directory, writable for all programs.
    pub(crate) dir: TempDir,
    settings: PathBuf,
    ours: String,
    srt: Option<String>,
}

impl Setting {
    pub(crate) fn make(ours: String, srt: Option<String>) -> Fallible<Self> {
        let dir = tempfile::Builder::new().prefix("sandbox-bench").tempdir_in("/var/tmp")?;
        let settings = dir.path().join("settings.json");
        let content = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] } }"#;
        fs::write(&settings, content)?;
        Ok(Self { dir, settings, ours, srt })
    }
}

impl Setting {
    /// Returns the path of our program.
    pub(crate) fn ours(&self) -> &str {
        &self.ours
    }
}

/// Program to measure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Nothing,
    Bubblewrap,
    Ours,
    Srt,
}

impl Other {
    pub(crate) fn all(setting: &Setting) -> Vec<Self> {
        let mut all = vec![Self::Ours, Self::Nothing, Self::Bubblewrap];
        all.extend(setting.srt.is_some().then_some(Self::Srt));
        all
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no sandbox",
            Self::Bubblewrap => "bubblewrap alone",
            Self::Ours => "ours",
            Self::Srt => "srt",
        }
    }

    /// Returns the command line that runs `argv`. The words in `argv` must not need quoting.
    pub(crate) fn command(self, setting: &Setting, argv: &[&str]) -> Command {
        let mut command = match self {
            Self::Nothing => Command::new("/usr/bin/env"),
            Self::Bubblewrap => {
                let mut bwrap = Command::new("bwrap");
                bwrap.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]);
                bwrap.args(["--dev", "/dev", "--proc", "/proc", "--"]);
                bwrap
            }
            Self::Ours => {
                let mut ours = Command::new(&setting.ours);
                ours.args(["--allow-root", "-s"]).arg(&setting.settings).arg("--");
                ours
            }
            Self::Srt => {
                let mut srt = Command::new(setting.srt.as_deref().unwrap_or("srt"));
                srt.arg("-s").arg(&setting.settings).arg("-c").arg(argv.join(" "));
                srt
            }
        };
        if self != Self::Srt {
            command.args(argv);
        }
        command.current_dir(setting.dir.path());
        command
    }
}
