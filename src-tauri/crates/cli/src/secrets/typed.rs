//! Secrets and passphrases as they come in: typed at the terminal, where they are not shown, or as lines of standard input.

use anyhow::Context;
use ironcurtain_secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

/// The most that is read, in bytes: more than the longest secret.
const MOST: u64 = 64 * 1024 + 2;

/// The secret, which is all of standard input where that is no terminal.
pub fn secret(prompt: &str) -> anyhow::Result<Secret> {
    if io::stdin().is_terminal() {
        return from_terminal(prompt);
    }
    let mut text = String::new();
    io::stdin().lock().take(MOST + 1).read_to_string(&mut text).context("standard input is no text")?;
    Ok(Secret::typed(&text)?)
}

/// The next line of standard input; asked for at the terminal where there is none, or where it is one.
pub fn line(prompt: &str) -> anyhow::Result<Secret> {
    if !io::stdin().is_terminal() {
        let mut text = String::new();
        let read = io::stdin().lock().take(MOST + 1).read_line(&mut text);
        if read.context("standard input is no text")? > 0 {
            return Ok(Secret::typed(&text)?);
        }
    }
    from_terminal(prompt)
}

/// The first line of standard input.
pub fn piped() -> anyhow::Result<Secret> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MOST + 1).read_line(&mut text);
    read.context("standard input is no text")?;
    Ok(Secret::typed(&text)?)
}

/// A line that is not shown while it is typed.
fn from_terminal(prompt: &str) -> anyhow::Result<Secret> {
    let typed = || -> io::Result<String> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        // Before anybody is asked: what was typed until then is no answer.
        let quiet = Quiet::begin(&tty)?;
        write!(&tty, "{prompt} (it is not shown): ")?;
        let mut line = String::new();
        let read = BufReader::new(&tty).take(MOST + 1).read_line(&mut line);
        drop(quiet);
        writeln!(&tty)?;
        read.map(|_| line)
    };
    let typed = typed().with_context(|| no_terminal(prompt))?;
    Ok(Secret::typed(&typed)?)
}

/// Why nothing could be typed, and what to do.
fn no_terminal(prompt: &str) -> String {
    if prompt == super::PASSPHRASE {
        return "your secrets are locked, and there is no terminal to type the passphrase; run this in a terminal, or: echo PASSPHRASE | \
            ironcurtain secrets unlock --stdin"
            .to_owned();
    }
    format!(
        "there is no terminal to ask at for this: {prompt}; run this in a terminal, or pipe it to standard input"
    )
}

/// A terminal that does not show what is typed. Dropped, it does again; no key ends the program meanwhile.
struct Quiet<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(tty, OptionalActions::Flush, &quiet)?;
        Ok(Self { tty, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _ = tcsetattr(self.tty, OptionalActions::Flush, &self.before);
    }
}
