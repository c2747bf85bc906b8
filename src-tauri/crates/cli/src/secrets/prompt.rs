//! Reads secrets and passphrases from the terminal without echo, or from standard input.

use anyhow::Context;
use ironcurtain_secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

/// Maximum number of bytes to read, slightly more than the longest valid secret.
const MAX_BYTES: u64 = 64 * 1024 + 2;

/// Prompts for a secret on the terminal. If standard input is not a terminal, reads all of standard input instead.
pub fn secret(prompt: &str) -> anyhow::Result<Secret> {
    if io::stdin().is_terminal() {
        return from_terminal(prompt);
    }
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .context("standard input is not valid UTF-8")?;
    Ok(Secret::parse(&text)?)
}

/// Reads the next line of standard input. Prompts on the terminal if standard input is a terminal or has reached EOF.
pub fn line(prompt: &str) -> anyhow::Result<Secret> {
    if !io::stdin().is_terminal() {
        let mut text = String::new();
        let read = io::stdin().lock().take(MAX_BYTES + 1).read_line(&mut text);
        if read.context("standard input is not valid UTF-8")? > 0 {
            return Ok(Secret::parse(&text)?);
        }
    }
    from_terminal(prompt)
}

/// Reads the first line of standard input.
pub fn piped() -> anyhow::Result<Secret> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_BYTES + 1).read_line(&mut text);
    read.context("standard input is not valid UTF-8")?;
    Ok(Secret::parse(&text)?)
}

/// Prompts for a line on the terminal and reads it without echo.
fn from_terminal(prompt: &str) -> anyhow::Result<Secret> {
    let typed = || -> io::Result<String> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        // Must precede the prompt, because it discards pending input, which was typed before the prompt was shown.
        let quiet = NoEcho::begin(&tty)?;
        write!(&tty, "{prompt} (not shown): ")?;
        let mut line = String::new();
        let read = BufReader::new(&tty).take(MAX_BYTES + 1).read_line(&mut line);
        drop(quiet);
        writeln!(&tty)?;
        read.map(|_| line)
    };
    let typed = typed().with_context(|| no_terminal(prompt))?;
    Ok(Secret::parse(&typed)?)
}

/// Returns the error message for a prompt without a terminal.
fn no_terminal(prompt: &str) -> String {
    if prompt == super::PASSPHRASE_PROMPT {
        return "your secrets are locked, and there is no terminal to type the passphrase; run this in a terminal, or: echo PASSPHRASE | \
            ironcurtain secrets unlock --stdin"
            .to_owned();
    }
    format!("no terminal to type this: {prompt}; run this in a terminal, or pipe it to standard input")
}

/// Guard that turns off a terminal's echo and signal keys until dropped.
struct NoEcho<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> NoEcho<'a> {
    fn begin(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(tty, OptionalActions::Flush, &quiet)?;
        Ok(Self { tty, before })
    }
}

impl Drop for NoEcho<'_> {
    fn drop(&mut self) {
        // Ignores the error: the terminal was closed.
        let _ = tcsetattr(self.tty, OptionalActions::Flush, &self.before);
    }
}
