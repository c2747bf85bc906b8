//! Runs other programs, with timeouts.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval for checking whether a program that prints nothing has exited.
const GLANCE: Duration = Duration::from_millis(100);

/// Maximum time to wait for more output after a program has exited, because a background process may keep the output
/// open forever.
const LAST_LINES: Duration = Duration::from_secs(10);

/// Creates a command that runs in the root of the checkout, without the variables that `cargo run` sets.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::parts::root());
    for (name, _) in std::env::vars_os() {
        let ours =
            name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_"));
        if ours {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command until it exits. Returns an error if it fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Returns the standard output of a command, or `None` if the command fails.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns `true` if the program is found on `PATH`.
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs a command and passes each line of its output to `see`. Kills the command after the time limit.
pub(crate) fn watch(
    command: &mut Command,
    limit: Duration,
    mut see: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    let name = shown(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("failed to start `{name}`"))?;
    let lines = lines(&mut child)?;
    let mut exited = None;
    loop {
        match (lines.recv_timeout(GLANCE), exited) {
            (Ok(line), _) => see(&line)?,
            (Err(RecvTimeoutError::Disconnected), _) => return Ok(child.wait()?),
            (Err(RecvTimeoutError::Timeout), Some((status, at))) if Instant::now() >= at + LAST_LINES => {
                return Ok(status);
            }
            (Err(RecvTimeoutError::Timeout), Some(_)) => {}
            (Err(RecvTimeoutError::Timeout), None) if Instant::now() >= deadline => {
                child.kill()?;
                child.wait()?;
                bail!("`{name}` timed out after {}", crate::terminal::spoken(limit));
            }
            (Err(RecvTimeoutError::Timeout), None) => {
                exited = child.try_wait()?.map(|status| (status, Instant::now()));
            }
        }
    }
}

/// Formats a command as a user would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn lines(child: &mut Child) -> anyhow::Result<mpsc::Receiver<String>> {
    let (send, lines) = mpsc::channel();
    read(child.stdout.take().context("no standard output to read")?, send.clone());
    read(child.stderr.take().context("no standard error to read")?, send);
    Ok(lines)
}

fn read(stream: impl Read + Send + 'static, send: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_reported() {
        let mut seen = Vec::new();
        let status = watch(
            Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]),
            Duration::from_secs(60),
            |line| {
                seen.push(line.to_owned());
                Ok(())
            },
        );
        assert_eq!(status.unwrap().code(), Some(3));
        seen.sort();
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn last_lines_of_a_program_that_has_exited_are_reported() {
        let mut seen = Vec::new();
        // A background process prints the last line long after the program's exit was detected.
        let script = "(sleep 0.4; echo last) & echo first";
        let status = watch(Command::new("sh").args(["-c", script]), Duration::from_secs(60), |line| {
            seen.push(line.to_owned());
            Ok(())
        });
        assert!(status.unwrap().success());
        assert_eq!(seen, ["first", "last"]);
    }

    #[test]
    fn hanging_program_is_killed() {
        let hung = watch(Command::new("sleep").arg("600"), Duration::from_millis(20), |_| Ok(()));
        assert_eq!(hung.unwrap_err().to_string(), "`sleep 600` timed out after 0.0 s");
    }
}
