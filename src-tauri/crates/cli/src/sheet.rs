//! Text for a terminal, line by line.
//!
//! - Every line break is ours. Whatever is in a line is made visible, so nothing that comes from an agent, a server or
//!   the name of a file can begin a line of its own or steer the terminal.

use ironcurtain_visible as visible;
use std::fmt;

/// Lines for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sheet(String);

impl Sheet {
    /// One line.
    pub fn line(&mut self, text: impl fmt::Display) {
        self.0.push_str(&visible::line(&text.to_string()));
        self.0.push('\n');
    }

    /// A line that may quote several, as what a server says last: those after the first are marked.
    pub fn quoting(&mut self, text: impl fmt::Display) {
        let text = text.to_string().replace('\t', "    ");
        for (at, line) in text.lines().enumerate() {
            self.line(if at == 0 { line.to_owned() } else { format!("  | {line}") });
        }
    }

    /// Another sheet below this one.
    pub fn sheet(&mut self, below: &Self) {
        self.0.push_str(&below.0);
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: fmt::Display> FromIterator<T> for Sheet {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut sheet = Self::default();
        lines.into_iter().for_each(|line| sheet.line(line));
        sheet
    }
}

/// A number of things, in words.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_begins_a_line_or_steers_the_terminal() {
        let mut sheet: Sheet = ["ours: \u{1b}[2J\u{202e}/a\nours: forged\r", "é漢"].into_iter().collect();
        sheet.quoting("it said: one\n\ttwo\u{9b}31m\r\nours: forged");
        let expected = "ours: \\u{1b}[2J\\u{202e}/a\\u{a}ours: forged\\u{d}\né漢\n\
            it said: one\n  |     two\\u{9b}31m\n  | ours: forged\n";
        assert_eq!(sheet.as_str(), expected);
    }
}
