//! Compares names in dictionary order, which for ASCII is the order of the Unicode root collation.
//!
//! - Other characters are compared without accents, then by code point.

use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization as _;

/// Punctuation in collation order, before digits and letters.
const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Compares two names ignoring case. If they are otherwise equal, lower case comes first.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    weights(left).cmp(weights(right)).then_with(|| case(left).cmp(case(right))).then_with(|| left.cmp(right))
}

fn weights(name: &str) -> impl Iterator<Item = (u8, usize, char)> + '_ {
    let letters = name.nfd().filter(|letter| !unicode_normalization::char::is_combining_mark(*letter));
    letters.flat_map(char::to_lowercase).map(|letter| match PUNCTUATION.find(letter) {
        Some(position) => (1, position, ' '),
        None if letter.is_whitespace() => (0, 0, letter),
        None if letter.is_ascii_digit() => (2, 0, letter),
        None => (3, 0, letter),
    })
}

fn case(name: &str) -> impl Iterator<Item = bool> + '_ {
    name.chars().map(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_in_dictionary_order() {
        let mut names = ["b", "B", "a2", "A", "a", "_x", "-x", ".git", "10", "2", "é", "f", "a b"];
        names.sort_by(|left, right| compare(left, right));
        assert_eq!(names, ["_x", "-x", ".git", "10", "2", "a", "A", "a b", "a2", "b", "B", "é", "f"]);
    }
}
