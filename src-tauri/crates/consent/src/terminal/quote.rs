//! Shortens or splits other programs' text to fit a number of terminal columns.
//!
//! - INVARIANT: no line exceeds its width. A non-ASCII character counts as two columns, the maximum that a terminal
//!   uses.

use ironcurtain_visible as visible;

/// Character that marks omitted text.
const ELLIPSIS: char = '\u{2026}';

/// Escapes line feeds, runs of spaces and right-to-left letters, so that the text stays on one line.
pub(super) fn line(text: &str) -> String {
    visible::path(text)
}

/// Returns the longest prefix of a line that fits, followed by the number of omitted characters.
pub(super) fn head(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let omitted_mark =
        |shown: &str| format!("{ELLIPSIS} ({} more)", text.chars().count() - shown.chars().count());
    let mut shown = take_columns(text.chars(), width.saturating_sub(columns(&omitted_mark(""))));
    shown.push_str(&omitted_mark(&shown));
    shown
}

/// Returns the start and the end of a path, with the number of characters omitted between them.
pub(super) fn shorten_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let all = text.chars().count();
    let omitted_mark = |shown: usize| format!("{ELLIPSIS}({} more){ELLIPSIS}", all - shown);
    let room = width.saturating_sub(columns(&omitted_mark(0)));
    let head = take_columns(text.chars(), room / 3);
    let tail: String = take_columns(text.chars().rev(), room - room / 3).chars().rev().collect();
    format!("{head}{}{tail}", omitted_mark(head.chars().count() + tail.chars().count()))
}

/// Splits text into pieces of at most `width` columns, preferably after a space. An empty line is one piece.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let text = text.replace('\t', "    ");
    let mut all = Vec::new();
    for line in visible::lines(&text).split('\n') {
        let mut rest = line;
        loop {
            // Takes at least one character, so that the loop terminates.
            let piece = Some(take_columns(rest.chars(), width)).filter(|piece| !piece.is_empty());
            let mut piece = piece.unwrap_or_else(|| rest.chars().take(1).collect());
            let is_within_word = rest.len() > piece.len()
                && !rest.get(piece.len()..).is_some_and(|rest| rest.starts_with(' '));
            if let Some(space) = piece.rfind(' ').filter(|space| is_within_word && *space >= piece.len() / 2)
            {
                piece.truncate(space + 1);
            }
            rest = rest.get(piece.len()..).unwrap_or_default();
            all.push(piece);
            if rest.is_empty() {
                break;
            }
        }
    }
    all
}

/// Returns the maximum number of columns that the text occupies.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn take_columns(text: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += width_of(*c);
        used <= width
    };
    text.take_while(fits).collect()
}

fn width_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn omitted_characters_are_counted() {
        assert_eq!(head("short", 5), "short");
        assert_eq!(head(&"x".repeat(100), 20), "xxxxxxx\u{2026} (93 more)");
        let path = format!("/home/u/{}/secret.txt", "x".repeat(100));
        assert_eq!(shorten_middle(&path, 40), "/home/u/\u{2026}(93 more)\u{2026}xxxxxxx/secret.txt");
        assert_eq!(line("a\n1  Allow"), "a\\u{a}1\\u{20}×2Allow");
        // A terminal cannot isolate text directions, so the letters are escaped. The dialog isolates directions
        // itself.
        assert_eq!(line("read /docs/\u{5d0}/x"), "read /docs/\\u{5d0}/x");
        assert_eq!(wrap_text("abcde\n\n\tf\u{202e}", 4), ["abcd", "e", "", "    ", "f\\u{", "202e", "}"]);
    }

    #[test]
    fn pieces_end_between_words_where_possible() {
        assert_eq!(wrap_text("may use every tool", 10), ["may use ", "every tool"]);
        assert_eq!(
            wrap_text("a verylongword", 8),
            ["a verylo", "ngword"],
            "a space too far back is not used"
        );
    }

    proptest! {
        #[test]
        fn no_line_exceeds_its_width(text in "\\PC{0,80}|[a-z /\u{4e00}\u{1f600}\n\t\u{202e}]{0,80}", width in 20_usize..90) {
            let whole = line(&text);
            for cut in [head(&whole, width), shorten_middle(&whole, width)] {
                prop_assert!(columns(&cut) <= width && !cut.contains('\n'), "{cut}");
            }
            let wrap = wrap_text(&text, width);
            prop_assert!(wrap.iter().all(|piece| columns(piece) <= width && !piece.contains('\n')));
            prop_assert_eq!(wrap.concat(), visible::lines(&text.replace('\t', "    ")).replace('\n', ""));
        }
    }
}
