//! Text that comes from an agent or a file name, made safe to look at: what is shown is what is there.
//!
//! - Never hides a character: one that a reader does not see is written as its code point.
//! - Knows no interface: the result is plain text.
//!
//! ```
//! assert_eq!(ironcurtain_visible::line("a\u{202e}b"), "a\\u{202e}b");
//! ```

use icu_properties::props::{BidiClass, DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};
use std::fmt::Write as _;

/// One line: every character that does not show as itself is written as `\u{...}`.
#[must_use]
pub fn line(text: &str) -> String {
    shown(text, is_deceptive)
}

/// A path on one line with the letters that it has, its [`spaces`] counted: for whoever keeps those that are written from right
/// to left in their place by itself.
#[must_use]
pub fn whole_path(text: &str) -> String {
    spaces(&line(text))
}

/// A path on one line, its [`spaces`] counted. Letters that are written from right to left turn the order of what
/// follows them: where they stand before the last component, they are written as `\u{...}` too.
#[must_use]
pub fn path(text: &str) -> String {
    let turns = text.rsplit_once('/').is_some_and(|(above, _)| above.chars().any(is_right_to_left));
    spaces(&shown(text, |c| is_deceptive(c) || (turns && is_right_to_left(c))))
}

/// Several spaces in a row as `\u{20}` and their number: they would push what follows out of sight, or into a line that
/// looks like another.
#[must_use]
pub fn spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("  ") {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches(' ');
        // Writing to a string cannot fail.
        let _ = write!(out, "{before}\\u{{20}}\u{d7}{}", from.len() - after.len());
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A text of somebody else's within a sentence of ours. One of several words is quoted, since it could go on as ours do; marks
/// of its own could end the quotation, and are written out.
#[must_use]
pub fn quoted(text: &str) -> String {
    if !text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    format!("\u{201c}{}\u{201d}", shown(text, |c| matches!(c, '\u{201c}' | '\u{201d}')))
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

/// At most `most` characters of `text`: its beginning and its end, with a mark that says how many are between.
#[must_use]
pub fn ends(text: &str, most: usize) -> String {
    let all = text.chars().count();
    if all <= most {
        return text.to_owned();
    }
    let (start, end) = (most - most / 3, most / 3);
    let head: String = text.chars().take(start).collect();
    let tail: String = text.chars().skip(all - end).collect();
    format!("{head} … ({} characters more) … {tail}", all - start - end)
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

/// Characters that do not show as themselves, by their Unicode properties: controls, formats (which turn the order of
/// others), separators but the space, private and unassigned ones, those that a font may leave out, and blank symbols.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    // What most text is made of, without looking anything up.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    GeneralCategoryGroup::Other.contains(category)
        || GeneralCategoryGroup::Separator.contains(category)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || BLANK.contains(&c)
}

/// Symbols and marks whose glyph is empty, which no property tells: the Braille cell without dots, the null notehead, the
/// Khitan filler, and the stand-in for an object.
const BLANK: [char; 4] = ['\u{2800}', '\u{1d159}', '\u{16fe4}', '\u{fffc}'];

/// Letters and digits of the scripts that are written from right to left.
fn is_right_to_left(c: char) -> bool {
    let class = CodePointMapData::<BidiClass>::new().get(c);
    !c.is_ascii()
        && [BidiClass::RightToLeft, BidiClass::ArabicLetter, BidiClass::ArabicNumber].contains(&class)
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
    fn whatever_a_reader_does_not_see_is_written_out() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let category = CodePointMapData::<GeneralCategory>::new();
        let mut hidden = 0;
        for c in '\0'..=char::MAX {
            let category = category.get(c);
            let is_space = category == GeneralCategory::SpaceSeparator && c != ' ';
            let unseen = matches!(
                category,
                GeneralCategory::Control
                    | GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
                    | GeneralCategory::PrivateUse
                    | GeneralCategory::Unassigned
            );
            let unseen = unseen || is_space || ignorable.contains(c);
            if unseen {
                hidden += 1;
                let expected = format!("a\\u{{{:x}}}b", u32::from(c));
                let text = format!("a{c}b");
                assert_eq!([line(&text), path(&text)], [expected.clone(), expected.clone()]);
                assert_eq!(lines(&text), if matches!(c, '\n' | '\t') { text } else { expected });
            }
        }
        // Not nothing: private use alone are 137,468.
        assert!(hidden > 137_468, "{hidden}");
    }

    #[test]
    fn characters_that_were_seen_through_once_are_written_out_by_the_property() {
        let named = ('\u{1d173}'..='\u{1d17a}').chain('\u{1bca0}'..='\u{1bca3}');
        for c in
            named.chain(['\u{ad}', '\u{34f}', '\u{115f}', '\u{3164}', '\u{ffa0}', '\u{fe0f}', '\u{e0001}'])
        {
            assert!(
                CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) && is_deceptive(c),
                "{c:?}"
            );
        }
        assert!(BLANK.into_iter().all(is_deceptive));
    }

    #[test]
    fn what_people_write_shows_as_itself() {
        let text = "Grüße, Привет, 漢字, かな, 한글, ไทย, हिन्दी, Ελλάδα, €½№, 😀, e\u{301}, a b";
        assert_eq!(path(text), text);
        assert_eq!(line("\u{5d0}\u{627}"), "\u{5d0}\u{627}");
    }

    #[test]
    fn spaces_in_a_row_are_counted() {
        assert_eq!(spaces("a b  c   "), "a b\\u{20}×2c\\u{20}×3");
        assert_eq!(path("/a/b    READ /c"), "/a/b\\u{20}×4READ /c");
        assert_eq!(line("a  b"), "a  b");
    }

    #[test]
    fn a_quotation_ends_where_we_end_it() {
        assert_eq!(quoted("main"), "main");
        assert_eq!(quoted("main to x"), "\u{201c}main to x\u{201d}");
        assert_eq!(quoted("x\u{201d} to \u{201c}y"), "\u{201c}x\\u{201d} to \\u{201c}y\u{201d}");
    }

    #[test]
    fn no_letter_turns_the_order_of_a_path() {
        assert_eq!(path("/docs/\u{5d0}/\u{5d1}"), "/docs/\\u{5d0}/\\u{5d1}");
        assert_eq!(path("/docs/\u{627}/1"), "/docs/\\u{627}/1");
        assert_eq!(path("/docs/\u{5d0}"), "/docs/\u{5d0}");
        assert_eq!(whole_path("/docs/\u{5d0}/\u{5d1}  \u{202e}"), "/docs/\u{5d0}/\u{5d1}\\u{20}×2\\u{202e}");
        assert_eq!(path("/é/漢\u{202e}"), "/é/漢\\u{202e}");
    }

    #[test]
    fn long_text_says_how_long_it_is() {
        assert_eq!(head("äöü", 3), "äöü");
        assert_eq!(head("äöüß", 2), "äö … (2 characters more)");
        assert_eq!(ends("äöüß", 4), "äöüß");
        assert_eq!(ends("abcdefgh", 3), "ab … (5 characters more) … h");
    }
}
