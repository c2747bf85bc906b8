//! Running other programs, and never for longer than they may take.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The time for which silence lasts before we look whether the program is still there.
const GLANCE: Duration = Duration::from_millis(100);

/// A command at the root of the checkout, without the variables that `cargo run` gave to us alone.
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

/// Runs to the end; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("`{}` could not be started", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// The standard output of a program, if it exists and succeeded.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns `true` if there is such a program.
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs, showing `see` every line it prints, on either stream; kills it at the limit.
pub(crate) fn watch(
    command: &mut Command,
    limit: Duration,
    mut see: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    let name = shown(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("`{name}` could not be started"))?;
    let lines = lines(&mut child)?;
    loop {
        match lines.recv_timeout(GLANCE) {
            Ok(line) => see(&line)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                child.kill()?;
                child.wait()?;
                bail!("`{name}` was not done after {}", crate::terminal::spoken(limit));
            }
            // Something it left behind may hold its output open for ever.
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait()? {
                    lines.try_iter().try_for_each(|line| see(&line))?;
                    return Ok(status);
                }
            }
        }
    }
}

/// A command as a person would type it.
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
    fn every_line_is_seen() {
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
    fn what_hangs_is_ended() {
        let hung = watch(Command::new("sleep").arg("600"), Duration::from_millis(20), |_| Ok(()));
        assert_eq!(hung.unwrap_err().to_string(), "`sleep 600` was not done after 0.0 s");
    }
}
