//! Text that comes from an agent or a file name, made safe to look at: what is shown is what is there.

use std::fmt::Write as _;

/// One line: every character that does not show as itself is written as `\u{...}`.
#[must_use]
pub fn line(text: &str) -> String {
    shown(text, is_deceptive)
}

/// A path on one line. Letters that are written from right to left turn the order of what follows them: where they
/// stand before the last component, they are written as `\u{...}` too.
#[must_use]
pub fn path(text: &str) -> String {
    let turns = text.rsplit_once('/').is_some_and(|(above, _)| above.chars().any(is_right_to_left));
    shown(text, |c| is_deceptive(c) || (turns && is_right_to_left(c)))
}

/// Several lines: line feeds and tabs stay.
#[must_use]
pub fn lines(text: &str) -> String {
    shown(text, |c| is_deceptive(c) && !matches!(c, '\n' | '\t'))
}

/// At most `most` characters of `text`, with a mark that says how many more there are.
#[must_use]
pub fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let (kept, rest) = text.split_at(at);
            format!("{kept} … ({} characters more)", rest.chars().count())
        }
    }
}

fn shown(text: &str, hides: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters, and those that show as nothing, as a plain space, or turn the order of others (Unicode
/// Technical Report 36, section 2.8; bidirectional controls of Annex 9).
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{1680}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// Letters and digits of the scripts that are written from right to left, by the blocks set aside for them.
fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(line("/a/b\u{202e}txt.exe\n\u{7}é漢"), "/a/b\\u{202e}txt.exe\\u{a}\\u{7}é漢");
        assert_eq!(lines("a\n\tb\r\u{200b}"), "a\n\tb\\u{d}\\u{200b}");
    }

    #[test]
    fn spaces_that_are_not_the_space_bar_show() {
        for space in
            ['\u{a0}', '\u{1680}', '\u{2000}', '\u{2007}', '\u{200a}', '\u{202f}', '\u{205f}', '\u{3000}']
        {
            assert_eq!(line(&format!("a{space}b c")), format!("a\\u{{{:x}}}b c", u32::from(space)));
        }
    }

    #[test]
    fn no_letter_turns_the_order_of_a_path() {
        assert_eq!(path("/docs/\u{5d0}/\u{5d1}"), "/docs/\\u{5d0}/\\u{5d1}");
        assert_eq!(path("/docs/\u{627}/1"), "/docs/\\u{627}/1");
        assert_eq!(path("/docs/\u{5d0}"), "/docs/\u{5d0}");
        assert_eq!(path("/é/漢\u{202e}"), "/é/漢\\u{202e}");
    }

    #[test]
    fn long_text_says_how_long_it_is() {
        assert_eq!(head("äöü", 3), "äöü");
        assert_eq!(head("äöüß", 2), "äö … (2 characters more)");
    }
}
