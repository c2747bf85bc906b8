//! Where events are told, a line for each: much of what is in one comes from agents and servers.

use crate::consent::visible;
use std::io::{self, Write};

/// Writes each event as one line in which nothing hides. Colours of our own would be written out too: tell it none.
#[derive(Debug)]
pub struct EventLog<W>(pub W);

impl<W: Write> Write for EventLog<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = visible::line(text.strip_suffix('\n').unwrap_or(&text));
        self.0.write_all(format!("{line}\n").as_bytes()).map(|()| event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let mut log = EventLog(Vec::new());
        log.write_all(b"INFO said by a server: \x1b[2J\nERROR forged\n").unwrap();
        log.write_all("INFO é\u{1d173}\n".as_bytes()).unwrap();
        let told = String::from_utf8(log.0).unwrap();
        assert_eq!(told, "INFO said by a server: \\u{1b}[2J\\u{a}ERROR forged\nINFO é\\u{1d173}\n");
    }
}
