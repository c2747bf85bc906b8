//! Names that are not text, as text.
//!
//! - Paths are text everywhere here. A byte that is none is a character that no name of a person's has, at the end of the private
//!   ones; such a character itself is written byte by byte in the same way.
//! - INVARIANT: [`raw`] gives the very bytes that [`text`] was made of, so that every name can be looked at and moved.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// The character for a byte is so far above it.
const FIRST: u32 = 0x10_FF00;
/// The first byte of the characters in question, and of few others.
const LEAD: u8 = 0xF4;

/// A name or path as text.
pub(crate) fn text(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) if !name.as_bytes().contains(&LEAD) => return name.to_owned(),
        Ok(_) | Err(_) => {}
    }
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            match byte(char) {
                None => text.push(char),
                Some(_) => text.extend(char.encode_utf8(&mut [0; 4]).bytes().filter_map(char_of)),
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    text
}

/// The name or path that a text stands for.
pub(crate) fn raw(text: &str) -> Cow<'_, OsStr> {
    if !text.as_bytes().contains(&LEAD) {
        return Cow::Borrowed(text.as_ref());
    }
    let mut raw = Vec::with_capacity(text.len());
    for char in text.chars() {
        match byte(char) {
            Some(byte) => raw.push(byte),
            None => raw.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(OsString::from_vec(raw))
}

/// The path that a finding names, of which a byte that is no text is a character there.
pub fn real_path(shown: &str) -> PathBuf {
    raw(shown).into_owned().into()
}

/// A path as text.
pub(super) fn path_text(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}

fn char_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

/// The byte that a character stands for. One below 0x80 is text in any case.
fn byte(char: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(char).checked_sub(FIRST)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_as_it_was_and_no_two_are_the_same_text() {
        let names: [&[u8]; 9] = [
            b"",
            b"plain",
            "\u{e9}\u{10ff00}".as_bytes(),
            b"a\xff/.git",
            b"\xf4\x8f\xbf",
            "\u{10ffff}".as_bytes(),
            "\u{10ff80}x".as_bytes(),
            b"\xff",
            b"\xed\xa0\x80",
        ];
        let texts: std::collections::BTreeSet<String> = names.iter().map(|name| text(name)).collect();
        assert_eq!(texts.len(), names.len());
        for name in names {
            assert_eq!(raw(&text(name)).as_bytes(), name, "{name:x?}");
        }
        assert_eq!(text(b"a\xff/.git"), "a\u{10ffff}/.git");
    }
}
