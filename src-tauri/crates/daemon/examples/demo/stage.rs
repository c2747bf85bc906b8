//! Temporary home directory with IronCurtain's programs, and the output of the demo.

use crate::AnswerAll;
use crate::person::ScriptedUser;
use anyhow::{Context, ensure};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Consent, Terminal};
use ironcurtain_daemon::{Daemon, DaemonOptions, start};
use serde_json::Value;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time to wait for the app to accept connections.
const APP_TIMEOUT: Duration = Duration::from_secs(20);

/// Configuration in which questions expire quickly.
const SHORT_DEADLINE: &str = r#"{ "questionDeadlineSeconds": 2 }"#;

/// Temporary home directory with IronCurtain's programs.
pub struct Stage {
    dir: TempDir,
    programs: PathBuf,
    home: Home,
}

/// The daemon, running either in this process or in the app.
#[expect(dead_code, reason = "held for its drop")]
pub enum TrustedProcess {
    InProcess(Daemon),
    App(App),
}

/// App process. Dropping it kills the process.
pub struct App(std::process::Child);

impl Drop for App {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    /// Creates the temporary home. With `short_deadline`, questions expire quickly.
    pub fn new(short_deadline: bool) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("ironcurtain-demo").tempdir()?;
        let base = dir.path().canonicalize()?;
        std::fs::create_dir(base.join("home"))?;
        let home = Home::under(&base.join("ironcurtain"), &base.join("home"));
        home.prepare()?;
        if short_deadline {
            std::fs::write(home.config.join("config.json"), SHORT_DEADLINE)?;
        }
        let example = std::env::current_exe()?;
        let programs =
            example.ancestors().nth(2).context("the demo's program has no parent directory")?.to_path_buf();
        for name in ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain"] {
            ensure!(programs.join(name).is_file(), "`{name}` is not built; run `cargo xtask demo`");
        }
        Ok(Self { dir, programs, home })
    }

    /// Creates a file in the user's home and returns its path.
    pub fn file(&self, below: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.home.user_home.join(below);
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// Starts the daemon, or the app if `desktop` is `true`.
    pub async fn start_trusted_process(
        &self,
        desktop: bool,
        answer: Option<AnswerAll>,
    ) -> anyhow::Result<TrustedProcess> {
        if desktop {
            return self.start_app().map(TrustedProcess::App);
        }
        let consent: Arc<dyn Consent> = match answer {
            Some(answer) => Arc::new(ScriptedUser::new(answer)),
            None => {
                let (input, output) = (std::io::stdin(), std::io::stdout());
                let [input, output] =
                    [input.as_fd().try_clone_to_owned()?, output.as_fd().try_clone_to_owned()?];
                Arc::new(Terminal::new(input, output)?)
            }
        };
        let options = DaemonOptions {
            home: self.home.clone(),
            programs: self.programs.clone(),
            allow_root: allow_root(),
        };
        Ok(TrustedProcess::InProcess(start(options, consent).await?))
    }

    /// Returns the command with which an agent client starts the shim.
    pub fn shim(&self) -> tokio::process::Command {
        let mut shim = tokio::process::Command::new(self.programs.join("ironcurtain-shim"));
        // If the shim ran in the project's checkout, IronCurtain would propose the checkout as a workspace.
        shim.current_dir("/");
        shim.args(["--server", "filesystem"]).env("IRONCURTAIN_HOME", self.ironcurtain_home());
        shim
    }

    /// Returns the session folder. Fails if no session is active.
    pub fn session_folder(&self) -> anyhow::Result<PathBuf> {
        let sessions = self.ironcurtain(&["sessions"])?;
        let folder = sessions.pointer("/sessions/0/sandbox_dir").and_then(Value::as_str);
        Ok(PathBuf::from(folder.context("no active session")?))
    }

    /// Runs `ironcurtain` with `--json` and returns the parsed output.
    pub fn ironcurtain(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let text = self.ironcurtain_text(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&text)
            .with_context(|| format!("`ironcurtain {}` printed: {text}", arguments.join(" ")))
    }

    /// Runs `ironcurtain` and returns its output. Fails if its exit status is not 0.
    pub fn ironcurtain_text(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.programs.join("ironcurtain"));
        let output = command.args(arguments).env("IRONCURTAIN_HOME", self.ironcurtain_home()).output()?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`ironcurtain {}`: {stdout}{stderr}", arguments.join(" "));
        Ok(stdout)
    }

    /// Replaces the paths of temporary directories with short names.
    pub fn shortened(&self, text: &str) -> String {
        let short = text.replace(&*self.home.sessions().to_string_lossy(), "SESSIONS");
        short.replace(&*self.home.user_home.to_string_lossy(), "~")
    }

    fn start_app(&self) -> anyhow::Result<App> {
        let program = self.programs.join("ironcurtain-desktop");
        let mut command = Command::new(&program);
        command
            .arg("--background")
            .env("IRONCURTAIN_HOME", self.ironcurtain_home())
            .env("HOME", &self.home.user_home);
        if allow_root() {
            command.arg("--allow-root");
        }
        let app = command.stdin(Stdio::null()).spawn().with_context(|| program.display().to_string())?;
        let app = App(app);
        let deadline = Instant::now() + APP_TIMEOUT;
        while self.ironcurtain(&["status"]).is_err() {
            ensure!(Instant::now() < deadline, "the app did not answer within {} s", APP_TIMEOUT.as_secs());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(app)
    }

    fn ironcurtain_home(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap_or_else(|_| self.dir.path().to_path_buf()).join("ironcurtain")
    }
}

/// Permits running as root, which is often the only user in a container.
fn allow_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Prints the demo's steps and the time that each one took.
pub struct StepLog {
    number: usize,
    began: Instant,
    last: Instant,
}

impl StepLog {
    /// Prints the title and starts the clock.
    pub fn begin() -> anyhow::Result<Self> {
        print_line(
            "\nIronCurtain: agents ask, you decide, the kernel enforces, and you can take it back.\n",
        )?;
        let now = Instant::now();
        Ok(Self { number: 0, began: now, last: now })
    }

    /// Prints a successful step.
    pub fn step(&mut self, what: &str, outcome: &str) -> anyhow::Result<()> {
        self.number += 1;
        let took = self.last.elapsed();
        self.last = Instant::now();
        print_line(&format!(
            "  {:>2}. {what:<44} {outcome}  [{:.1} ms]",
            self.number,
            took.as_secs_f64() * 1000.0
        ))
    }

    /// Prints the output of another program, indented.
    pub fn quote(&self, text: &str) -> anyhow::Result<()> {
        print_line("")?;
        text.lines().try_for_each(|line| print_line(&format!("      {line}")))
    }

    /// Prints the total time.
    pub fn end(self) -> anyhow::Result<()> {
        print_line(&format!("\n  All steps succeeded in {:.1} s.\n", self.began.elapsed().as_secs_f64()))
    }
}

fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
