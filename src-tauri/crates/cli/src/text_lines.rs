//! Builds terminal output line by line.
//!
//! - Line breaks and control characters within a line are escaped, so text from agents, servers and file names can
//!   neither start a line nor control the terminal.

use ironcurtain_visible as visible;
use std::fmt;

/// Lines to print on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextLines(String);

impl TextLines {
    /// Appends one line.
    pub fn line(&mut self, text: impl fmt::Display) {
        self.0.push_str(&visible::line(&text.to_string()));
        self.0.push('\n');
    }

    /// Appends text that may have several lines, such as a server's output. All lines but the first are indented and
    /// start with `|`.
    pub fn quoting(&mut self, text: impl fmt::Display) {
        let text = text.to_string().replace('\t', "    ");
        for (at, line) in text.lines().enumerate() {
            self.line(if at == 0 { line.to_owned() } else { format!("  | {line}") });
        }
    }

    /// Appends the lines of another [`TextLines`].
    pub fn append(&mut self, below: &Self) {
        self.0.push_str(&below.0);
    }

    /// Returns the whole text. Every line ends with a line feed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: fmt::Display> FromIterator<T> for TextLines {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut out = Self::default();
        lines.into_iter().for_each(|line| out.line(line));
        out
    }
}

/// Formats a count with its noun. Appends a plural `s` unless the count is 1.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_neither_starts_a_line_nor_controls_the_terminal() {
        let mut out: TextLines = ["ours: \u{1b}[2J\u{202e}/a\nours: forged\r", "é漢"].into_iter().collect();
        out.quoting("it said: one\n\ttwo\u{9b}31m\r\nours: forged");
        let expected = "ours: \\u{1b}[2J\\u{202e}/a\\u{a}ours: forged\\u{d}\né漢\n\
            it said: one\n  |     two\\u{9b}31m\n  | ours: forged\n";
        assert_eq!(out.as_str(), expected);
    }
}
