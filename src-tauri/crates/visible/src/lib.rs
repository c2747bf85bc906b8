//! Escapes file names and text from agents for safe display.
//!
//! - No character is dropped. Invisible characters are replaced with their code points.
//! - The result is plain text, suitable for any interface.
//!
//! ```
//! assert_eq!(ironcurtain_visible::line("a\u{202e}b"), "a\\u{202e}b");
//! ```

use icu_properties::props::{BidiClass, DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};
use std::fmt::Write as _;

/// Escapes text for display on one line. Characters that do not display as themselves become `\u{...}`.
#[must_use]
pub fn line(text: &str) -> String {
    escape(text, is_deceptive)
}

/// Escapes a path for display on one line, including runs of [`spaces`]. Keeps right-to-left letters, for interfaces
/// that isolate them from the surrounding text.
#[must_use]
pub fn isolated_path(text: &str) -> String {
    spaces(&line(text))
}

/// Escapes a path for display on one line, including runs of [`spaces`]. Also escapes right-to-left letters before the
/// last component, because they would reorder the text that follows.
#[must_use]
pub fn path(text: &str) -> String {
    let is_reordering = text.rsplit_once('/').is_some_and(|(above, _)| above.chars().any(is_right_to_left));
    spaces(&escape(text, |c| is_deceptive(c) || (is_reordering && is_right_to_left(c))))
}

/// Replaces each run of spaces with `\u{20}` and its length. A run could otherwise push the text that follows out of
/// view or make it look like another line.
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

/// Quotes text that contains whitespace so that it cannot be mistaken for part of the surrounding sentence. Quotation
/// marks in the text are escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    if !text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    format!("\u{201c}{}\u{201d}", escape(text, |c| matches!(c, '\u{201c}' | '\u{201d}')))
}

/// Escapes text for display on several lines. Keeps line feeds and tabs.
#[must_use]
pub fn lines(text: &str) -> String {
    escape(text, |c| is_deceptive(c) && !matches!(c, '\n' | '\t'))
}

/// Returns the first `max` characters of a text, followed by the number of omitted characters, if any.
#[must_use]
pub fn head(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((at, _)) => {
            let (kept, rest) = text.split_at(at);
            format!("{kept} … ({} characters more)", rest.chars().count())
        }
    }
}

/// Returns at most `max` characters from the start and end of a text, with the number of omitted characters, if any,
/// in between.
#[must_use]
pub fn head_and_tail(text: &str, max: usize) -> String {
    let all = text.chars().count();
    if all <= max {
        return text.to_owned();
    }
    let (start, end) = (max - max / 3, max / 3);
    let head: String = text.chars().take(start).collect();
    let tail: String = text.chars().skip(all - end).collect();
    format!("{head} … ({} characters more) … {tail}", all - start - end)
}

fn escape(text: &str, must_escape: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if must_escape(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns `true` if a character does not display as itself, according to its Unicode properties. These are control
/// and format characters (which reorder text), separators other than the space, private-use and unassigned code
/// points, default-ignorable code points, and symbols with an empty glyph.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    // Most text is ASCII.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    GeneralCategoryGroup::Other.contains(category)
        || GeneralCategoryGroup::Separator.contains(category)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || BLANK_GLYPHS.contains(&c)
}

/// Characters with an empty glyph that no Unicode property identifies: the blank Braille pattern, the null
/// notehead, the Khitan small script filler, and the object replacement character.
const BLANK_GLYPHS: [char; 4] = ['\u{2800}', '\u{1d159}', '\u{16fe4}', '\u{fffc}'];

/// Returns `true` if a character is a letter or digit of a right-to-left script.
fn is_right_to_left(c: char) -> bool {
    let class = CodePointMapData::<BidiClass>::new().get(c);
    !c.is_ascii()
        && [BidiClass::RightToLeft, BidiClass::ArabicLetter, BidiClass::ArabicNumber].contains(&class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(line("/a/b\u{202e}txt.exe\n\u{7}é漢"), "/a/b\\u{202e}txt.exe\\u{a}\\u{7}é漢");
        assert_eq!(lines("a\n\tb\r\u{200b}"), "a\n\tb\\u{d}\\u{200b}");
    }

    #[test]
    fn every_invisible_code_point_is_escaped() {
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
        // The private-use areas alone contain 137,468 code points.
        assert!(hidden > 137_468, "{hidden}");
    }

    #[test]
    fn previously_missed_characters_are_escaped() {
        let named = ('\u{1d173}'..='\u{1d17a}').chain('\u{1bca0}'..='\u{1bca3}');
        for c in
            named.chain(['\u{ad}', '\u{34f}', '\u{115f}', '\u{3164}', '\u{ffa0}', '\u{fe0f}', '\u{e0001}'])
        {
            assert!(
                CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) && is_deceptive(c),
                "{c:?}"
            );
        }
        assert!(BLANK_GLYPHS.into_iter().all(is_deceptive));
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let text = "Grüße, Привет, 漢字, かな, 한글, ไทย, हिन्दी, Ελλάδα, €½№, 😀, e\u{301}, a b";
        assert_eq!(path(text), text);
        assert_eq!(line("\u{5d0}\u{627}"), "\u{5d0}\u{627}");
    }

    #[test]
    fn runs_of_spaces_are_counted() {
        assert_eq!(spaces("a b  c   "), "a b\\u{20}×2c\\u{20}×3");
        assert_eq!(path("/a/b    READ /c"), "/a/b\\u{20}×4READ /c");
        assert_eq!(line("a  b"), "a  b");
    }

    #[test]
    fn quotation_marks_inside_a_quotation_are_escaped() {
        assert_eq!(quoted("main"), "main");
        assert_eq!(quoted("main to x"), "\u{201c}main to x\u{201d}");
        assert_eq!(quoted("x\u{201d} to \u{201c}y"), "\u{201c}x\\u{201d} to \\u{201c}y\u{201d}");
    }

    #[test]
    fn right_to_left_letters_do_not_reorder_a_path() {
        assert_eq!(path("/docs/\u{5d0}/\u{5d1}"), "/docs/\\u{5d0}/\\u{5d1}");
        assert_eq!(path("/docs/\u{627}/1"), "/docs/\\u{627}/1");
        assert_eq!(path("/docs/\u{5d0}"), "/docs/\u{5d0}");
        assert_eq!(
            isolated_path("/docs/\u{5d0}/\u{5d1}  \u{202e}"),
            "/docs/\u{5d0}/\u{5d1}\\u{20}×2\\u{202e}"
        );
        assert_eq!(path("/é/漢\u{202e}"), "/é/漢\\u{202e}");
    }

    #[test]
    fn omitted_characters_are_counted() {
        assert_eq!(head("äöü", 3), "äöü");
        assert_eq!(head("äöüß", 2), "äö … (2 characters more)");
        assert_eq!(head_and_tail("äöüß", 4), "äöüß");
        assert_eq!(head_and_tail("abcdefgh", 3), "ab … (5 characters more) … h");
    }
}
