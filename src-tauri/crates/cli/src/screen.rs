//! Prints the output of all commands and asks the user questions.
//!
//! - Prints text, or only JSON with `--json`. Misleading characters are escaped even in JSON, because a terminal may
//!   show it.
//! - If standard output is a closed pipe, the command exits without an error message ([`OutputClosed`]).

use crate::text_lines::TextLines;
use anyhow::bail;
use ironcurtain_visible as visible;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

/// Controlling terminal of this process, available even if standard input is redirected.
const TERMINAL: &str = "/dev/tty";

/// Number of columns assumed if a terminal does not report its size.
const DEFAULT_COLUMNS: usize = 80;

/// Standard output is a pipe whose reader has closed it.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub struct OutputClosed;

/// Output settings of a command.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    json: bool,
    /// `true` if standard input carries data so that answers are read from [`TERMINAL`] instead.
    has_data: bool,
}

impl Screen {
    /// Creates the output settings. `json` is `true` for JSON output.
    pub fn new(json: bool) -> Self {
        Self { json, has_data: false }
    }

    /// Reads answers from the controlling terminal, because standard input carries data.
    pub fn with_data_on_stdin(self) -> Self {
        Self { has_data: true, ..self }
    }

    /// Returns `true` if commands print JSON.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints a command's result: `out` as text, or `value` with `--json`.
    pub fn show(self, out: &TextLines, value: &Value) -> anyhow::Result<()> {
        if self.json { print(&json(value)?) } else { print(out.as_str()) }
    }

    /// Prints an additional line, unless `--json` was given.
    pub fn note(self, text: &str) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { print([text].into_iter().collect::<TextLines>().as_str()) }
    }

    /// Replaces the progress line. Prints nothing with `--json` or if standard error is not a terminal.
    pub fn progress(self, text: &str) {
        let mut out = io::stderr();
        if !self.json && out.is_terminal() {
            // Ignores the error: showing progress is optional.
            let _ = write!(out, "\r\x1b[K{}", visible::line(text));
        }
    }

    /// Returns `true` if a terminal is available for questions.
    pub fn has_terminal(self) -> bool {
        if self.has_data { File::open(TERMINAL).is_ok() } else { io::stdin().is_terminal() }
    }

    /// Asks a yes/no question on the terminal. Returns `true` for yes.
    pub fn confirmed(self, question: &str) -> anyhow::Result<bool> {
        let answer = self.answer(&format!("{question} [y/N]"))?;
        Ok(matches!(answer.as_str(), "y" | "Y" | "yes"))
    }

    /// Asks a question on the terminal. Returns the answer without surrounding whitespace.
    pub fn answer(self, question: &str) -> anyhow::Result<String> {
        if !self.has_terminal() {
            bail!("nothing was written: no terminal to confirm on; pass `--yes` to apply what is shown");
        }
        let question = wrapped(&visible::line(question), columns());
        print(&format!("{question} "))?;
        let mut answer = String::new();
        if self.has_data {
            BufReader::new(File::open(TERMINAL)?).read_line(&mut answer)?;
        } else {
            io::stdin().lock().read_line(&mut answer)?;
        }
        Ok(answer.trim().to_owned())
    }
}

/// Returns the terminal's width in columns.
fn columns() -> usize {
    let size = tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns > 0).unwrap_or(DEFAULT_COLUMNS)
}

/// Wraps a line between words so that the terminal does not break it within a word.
fn wrapped(line: &str, columns: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in line.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > columns {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        written => Ok(written?),
    }
}

/// Serializes a value as JSON with misleading characters escaped.
fn json(value: &Value) -> anyhow::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Visible(PrettyFormatter::new())))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

/// JSON formatter that escapes misleading characters in strings.
struct Visible<'a>(PrettyFormatter<'a>);

impl Formatter for Visible<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        for piece in text.split_inclusive(visible::is_deceptive) {
            let last = piece.chars().next_back().filter(|last| visible::is_deceptive(*last));
            let prefix = last.map_or(piece.len(), |last| piece.len() - last.len_utf8());
            out.write_all(piece.get(..prefix).unwrap_or_default().as_bytes())?;
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
    fn questions_wrap_between_words() {
        assert_eq!(wrapped("Let it reach `a.example`? [y/N]", 16), "Let it reach\n`a.example`?\n[y/N]");
        assert_eq!(wrapped("Add it? [y/N]", 80), "Add it? [y/N]");
        assert_eq!(wrapped("a much-too-long-word b", 5), "a\nmuch-too-long-word\nb", "no word is lost");
    }

    #[test]
    fn json_escapes_deceptive_characters_and_keeps_the_value() {
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
