//! Divides long words so that the toolkit lays them out in linear time.
//!
//! - Whenever Pango breaks a word at the end of a line, it shapes all that follows in the same run of text again. The
//!   time grows with the square of the word's length: a word of 10,000 letters takes 330 ms for each measurement, and 15
//!   ms if it is divided (Pango 1.50, 900 pixels wide).
//! - A run ends where attributes change. Each second part of a long word gets an attribute that has no visible effect.

use gtk::pango;
use gtk::prelude::*;
use icu_properties::CodePointMapData;
use icu_properties::props::GraphemeClusterBreak;
use std::ops::Range;

/// Length of a part in characters, about two lines of text. Shorter words are not divided.
const PART_CHARS: usize = 128;

/// Adds the attributes that divide the long words of `text`.
pub(super) fn divide(text: &str, attributes: &pango::AttrList) {
    for part in every_second_part(text) {
        // Font fallback is enabled by default.
        let mut attribute = pango::AttrInt::new_fallback(true);
        attribute.set_start_index(u32::try_from(part.start).unwrap_or(u32::MAX));
        attribute.set_end_index(u32::try_from(part.end).unwrap_or(u32::MAX));
        attributes.insert(attribute);
    }
}

/// Fills an empty buffer with `text`, with its long words divided.
pub(super) fn fill(buffer: &gtk::TextBuffer, text: &str) {
    buffer.set_text(text);
    let tag = gtk::TextTag::builder().fallback(true).build();
    let Some(table) = buffer.tag_table() else { return };
    table.add(&tag);
    let (mut chars, mut bytes) = (0, 0);
    let mut offset = |to: usize| {
        let passed = text.get(bytes..to).unwrap_or_default().chars().count();
        (chars, bytes) = (chars + passed, to);
        buffer.iter_at_offset(i32::try_from(chars).unwrap_or(i32::MAX))
    };
    for part in every_second_part(text) {
        let (start, end) = (offset(part.start), offset(part.end));
        buffer.apply_tag(&tag, &start, &end);
    }
}

/// Returns each second part of all long words, as byte offsets. A part ends only between two characters that are drawn
/// separately.
fn every_second_part(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut length, mut is_second, mut before) = (0, 0, false, ' ');
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let ends_word = c.is_whitespace();
        if ends_word || (length >= PART_CHARS && is_separate(before) && is_separate(c)) {
            if is_second {
                parts.push(start..at);
            }
            is_second = !ends_word && !is_second;
            (start, length) = (at, 0);
        }
        if ends_word {
            start += c.len_utf8();
        } else {
            length += 1;
        }
        before = c;
    }
    parts
}

/// Returns `true` if the character is never drawn together with another such character.
fn is_separate(c: char) -> bool {
    c.is_ascii() || CodePointMapData::<GraphemeClusterBreak>::new().get(c) == GraphemeClusterBreak::Other
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    const NONE: [Range<usize>; 0] = [];

    #[test]
    fn short_words_are_not_divided() {
        assert_eq!(every_second_part(""), NONE);
        assert_eq!(every_second_part(&"a".repeat(PART_CHARS)), NONE);
        assert_eq!(every_second_part(&format!("{} ", "a".repeat(PART_CHARS)).repeat(50)), NONE);
    }

    #[test]
    fn every_second_part_of_a_long_word_is_returned() {
        let text = format!("see {} now", "a".repeat(4 * PART_CHARS));
        let part = |n: usize| 4 + n * PART_CHARS..4 + (n + 1) * PART_CHARS;
        assert_eq!(every_second_part(&text), [part(1), part(3)]);
    }

    #[test]
    fn composed_characters_are_not_divided() {
        // An `e` and a combining acute accent.
        let text = "e\u{301}".repeat(PART_CHARS);
        assert_eq!(every_second_part(&text), NONE);
        let text = format!("{}{}bc", "a".repeat(PART_CHARS - 1), "e\u{301}".repeat(3));
        let last = text.len() - 1..text.len();
        assert_eq!(every_second_part(&text), slice::from_ref(&last));
    }
}
