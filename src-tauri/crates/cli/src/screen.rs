//! The output of commands: all of it goes through here.
//!
//! - For people, a [`Sheet`]; for programs (`--json`), JSON and nothing else. In it, what does not show as itself is
//!   escaped too: a terminal may be where it is looked at.
//! - Where nobody reads any more, the command ends quietly ([`Unread`]).

use crate::sheet::Sheet;
use anyhow::bail;
use ironcurtain_visible as visible;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, BufRead, IsTerminal, Write};

/// Whoever read what is printed has gone.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads what is printed")]
pub struct Unread;

/// The output of a command: for people or for programs.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// For programs.
    json: bool,
}

impl Screen {
    /// For programs, or for people.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns `true` if it is for programs.
    pub fn is_for_programs(self) -> bool {
        self.json
    }

    /// Prints a command's result: the sheet for people, the value for programs.
    pub fn show(self, sheet: &Sheet, value: &Value) -> anyhow::Result<()> {
        if self.json { print(&json(value)?) } else { print(sheet.as_str()) }
    }

    /// One line more, for people only.
    pub fn note(self, text: &str) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { print([text].into_iter().collect::<Sheet>().as_str()) }
    }

    /// A line on a terminal that says what is being done, in place of the one before; nothing where nobody watches.
    pub fn progress(self, text: &str) {
        let mut out = io::stderr();
        if !self.json && out.is_terminal() {
            // Nobody misses it.
            let _ = write!(out, "\r\x1b[K{}", visible::line(text));
        }
    }

    /// Returns `true` if there is somebody to be asked.
    pub fn has_terminal(self) -> bool {
        io::stdin().is_terminal()
    }

    /// Asks whether to go on.
    pub fn confirmed(self, question: &str) -> anyhow::Result<bool> {
        if !io::stdin().is_terminal() {
            bail!("nothing was written: there is no terminal to confirm at; `--yes` does what is shown");
        }
        print(&format!("{} [y/N] ", visible::line(question)))?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Unread.into()),
        written => Ok(written?),
    }
}

/// A value as it is printed.
fn json(value: &Value) -> anyhow::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Visible(PrettyFormatter::new())))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

/// Escapes what does not show as itself.
struct Visible<'a>(PrettyFormatter<'a>);

impl Formatter for Visible<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        for piece in text.split_inclusive(visible::is_deceptive) {
            let last = piece.chars().next_back().filter(|last| visible::is_deceptive(*last));
            let kept = last.map_or(piece.len(), |last| piece.len() - last.len_utf8());
            out.write_all(piece.get(..kept).unwrap_or_default().as_bytes())?;
            for unit in last.iter().flat_map(|last| last.encode_utf16(&mut [0; 2]).to_vec()) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_shows_everything_and_means_the_same() {
        let value = json!({
            "a\u{202e}": ["\u{9b}31m \u{1b}[2J \u{e0041}\u{7f}é漢\n\"", {}, [], 1.5, null, true],
            "b": { "c": "" },
        });
        let text = json(&value).unwrap();
        let expected = concat!(
            "{\n  \"a\\u202e\": [\n    \"\\u009b31m \\u001b[2J \\udb40\\udc41\\u007fé漢\\n\\\"\",\n    {},\n    [],\n",
            "    1.5,\n    null,\n    true\n  ],\n  \"b\": {\n    \"c\": \"\"\n  }\n}\n",
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
