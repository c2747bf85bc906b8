//! Writes the daemon's events to standard error, one line per event. Most of the text originates from agents and
//! servers, so it is escaped.
//!
//! - A terminal may also show questions. Long lines are therefore wrapped, and each continuation line is marked.

use ironcurtain_consent::wrap_text;
use ironcurtain_visible as visible;
use rustix::termios::tcgetwinsize;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Prefix of each continuation line.
const CONTINUATION: &str = "           | ";

/// Minimum terminal width for wrapping, in characters.
const MIN_COLUMNS: usize = 36;

/// Writer that escapes each event and writes it as one line. Disable colours in the subscriber: their escape sequences
/// would be escaped too.
#[derive(Debug)]
pub struct EventLog<W> {
    writer: W,
    /// Width of the terminal in characters, or `None` if the output is not a terminal.
    columns: Option<usize>,
}

impl<W: Write + AsFd> EventLog<W> {
    /// Creates a log that writes to `writer`, and checks whether that is a terminal.
    pub fn new(writer: W) -> Self {
        let columns =
            tcgetwinsize(&writer).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        Self { writer, columns }
    }
}

impl<W: Write> Write for EventLog<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = visible::line(text.strip_suffix('\n').unwrap_or(&text));
        let lines = match self.columns {
            Some(columns) => wrap_text(&line, columns.max(MIN_COLUMNS) - CONTINUATION.len())
                .join(&format!("\n{CONTINUATION}")),
            None => line,
        };
        self.writer.write_all(format!("{lines}\n").as_bytes()).map(|()| event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(columns: Option<usize>, event: &str) -> String {
        let mut log = EventLog { writer: Vec::new(), columns };
        log.write_all(event.as_bytes()).unwrap();
        String::from_utf8(log.writer).unwrap()
    }

    #[test]
    fn an_event_with_control_characters_is_one_line() {
        let event = "INFO said by a server: \x1b[2J\nERROR forged é\u{1d173}\n";
        assert_eq!(logged(None, event), "INFO said by a server: \\u{1b}[2J\\u{a}ERROR forged é\\u{1d173}\n");
    }

    #[test]
    fn wrapped_lines_are_marked_on_a_terminal() {
        let event = format!("INFO said by a server:{:>42}", " READ       | ~/notes.txt");
        let lines = logged(Some(40), &event);
        let first = lines.lines().next().unwrap();
        assert!(first.starts_with("INFO said") && lines.lines().all(|line| line.len() <= 40), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with(CONTINUATION)), "{lines}");
        assert_eq!(lines.replace(&format!("\n{CONTINUATION}"), ""), format!("{event}\n"));
    }
}
