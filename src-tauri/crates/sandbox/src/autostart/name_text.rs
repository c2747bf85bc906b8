//! Lossless text encoding of file names that are not UTF-8.
//!
//! - Paths are strings throughout this crate. An invalid byte is encoded as a character from the end of the private
//!   use area, which real names do not contain. If a name does contain such a character, each of its bytes is encoded
//!   like an invalid byte.
//! - INVARIANT: [`to_os_str`] returns exactly the bytes passed to [`from_os_bytes`], so a file can be opened and moved
//!   regardless of its name.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// Code point that encodes byte 0. Byte `n` is encoded as `BASE + n`.
const BASE: u32 = 0x10_FF00;
/// First UTF-8 byte of every encoding character. Few other characters start with this byte.
const LEAD_BYTE: u8 = 0xF4;

/// Encodes a name or path.
pub(crate) fn from_os_bytes(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) if !name.as_bytes().contains(&LEAD_BYTE) => return name.to_owned(),
        Ok(_) | Err(_) => {}
    }
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            match decode_char(char) {
                None => text.push(char),
                Some(_) => text.extend(char.encode_utf8(&mut [0; 4]).bytes().filter_map(encode_byte)),
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(encode_byte));
    }
    text
}

/// Decodes a name or path.
pub(crate) fn to_os_str(text: &str) -> Cow<'_, OsStr> {
    if !text.as_bytes().contains(&LEAD_BYTE) {
        return Cow::Borrowed(text.as_ref());
    }
    let mut raw = Vec::with_capacity(text.len());
    for char in text.chars() {
        match decode_char(char) {
            Some(byte) => raw.push(byte),
            None => raw.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(OsString::from_vec(raw))
}

/// Converts a path from a finding to the path on disk.
pub fn real_path(path: &str) -> PathBuf {
    to_os_str(path).into_owned().into()
}

/// Encodes a path, like [`from_os_bytes`].
pub(super) fn from_os_path(path: &Path) -> String {
    from_os_bytes(path.as_os_str().as_bytes())
}

fn encode_byte(byte: u8) -> Option<char> {
    char::from_u32(BASE + u32::from(byte))
}

/// Returns the byte that a character encodes, or `None` if it encodes no byte. Bytes below 0x80 are never encoded.
fn decode_char(char: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(char).checked_sub(BASE)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips_and_is_unique() {
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
        let texts: std::collections::BTreeSet<String> =
            names.iter().map(|name| from_os_bytes(name)).collect();
        assert_eq!(texts.len(), names.len());
        for name in names {
            assert_eq!(to_os_str(&from_os_bytes(name)).as_bytes(), name, "{name:x?}");
        }
        assert_eq!(from_os_bytes(b"a\xff/.git"), "a\u{10ffff}/.git");
    }
}
