//! Shortens long text, and collects the full text in a block.
//!
//! - INVARIANT: the block contains the full text of everything that was shortened. The user must read the block to its
//!   end before Allow is accepted.

use super::TextBlock;
use crate::consent::text;
use ironcurtain_visible as visible;

/// Full text of everything that was shortened.
#[derive(Debug, Default)]
pub(super) struct Rest(Vec<(String, String)>);

/// Text on one line, possibly shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// Text, or its start and end.
    pub(super) text: String,
    /// IronCurtain's note about the omitted part, or `None` if the text is complete.
    pub(super) mark: Option<String>,
}

impl Rest {
    /// Returns the text on one line of at most `most` characters.
    pub(super) fn line(&mut self, name: &str, full: &str, most: usize) -> Shown {
        let lines: Vec<&str> = full.trim_end_matches('\n').split('\n').collect();
        let (text, mark) = match lines.as_slice() {
            [first, .., last] => {
                let end = |line: &str| visible::head_and_tail(&text::line(line), most / 2);
                let text = format!("{} \u{2026} {}", end(first), end(last));
                (text, Some(format!(" ({} lines, shown in full below)", lines.len())))
            }
            [] | [_] => {
                let line = text::line(full);
                let text = visible::head_and_tail(&line, most);
                let is_cut = text != line;
                (text, is_cut.then(|| " (shown in full below)".to_owned()))
            }
        };
        if mark.is_some() {
            self.add(name, full);
        }
        Shown { text, mark }
    }

    /// Returns the text unchanged if it is within the limits for lines and characters, otherwise shortened to one
    /// line.
    pub(super) fn lines(&mut self, name: &str, full: &str, (lines, chars): (usize, usize)) -> Shown {
        if full.chars().count() > chars || full.lines().count() > lines {
            return self.line(name, full, chars / 2);
        }
        Shown { text: full.to_owned(), mark: None }
    }

    /// Adds text that is shown only in the block.
    pub(super) fn add(&mut self, name: &str, full: &str) {
        self.0.push((name.to_owned(), full.to_owned()));
    }

    /// Returns the block, or `None` if nothing was shortened.
    pub(super) fn into_block(self) -> Option<TextBlock> {
        if self.0.is_empty() {
            return None;
        }
        let one = |(name, full): &(String, String)| {
            let lines: String =
                text::block(full).split('\n').map(|line| format!("\n\u{2502} {line}")).collect();
            format!("{}:{lines}", text::line(name))
        };
        let text = self.0.iter().map(one).collect::<Vec<_>>().join("\n\n");
        Some(TextBlock { title: "Full text of what is shortened above", text, diff: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_are_in_the_block_in_full() {
        let mut rest = Rest::default();
        let whole = |text: &str| Shown { text: text.into(), mark: None };
        assert_eq!(rest.line("a", "short", 10), whole("short"));
        assert_eq!(rest.lines("a", "one\ntwo", (2, 10)), whole("one\ntwo"));
        let hidden = format!("{} DROP TABLE customers; {}", "x".repeat(300), "y".repeat(300));
        let cut = rest.line("query", &hidden, 60);
        assert!(!cut.text.contains("DROP") && cut.text.contains("characters more"), "{cut:?}");
        assert_eq!(cut.mark.as_deref(), Some(" (shown in full below)"));
        let script =
            Shown { text: "a \u{2026} c".into(), mark: Some(" (3 lines, shown in full below)".into()) };
        assert_eq!(rest.lines("script", "a\nDROP TABLE x\nc\n", (2, 100)), script);
        let block = rest.into_block().map(|block| block.text);
        assert_eq!(
            block,
            Some(format!(
                "query:\n\u{2502} {hidden}\n\nscript:\n\u{2502} a\n\u{2502} DROP TABLE x\n\u{2502} c\n\u{2502} "
            ))
        );
        assert_eq!(Rest::default().into_block(), None);
    }
}
