//! Files of another `age`, and files that somebody changed.

use super::*;
use proptest::prelude::*;

/// A file of another program: `pyrage` 1.4, which is the `age` of Rust.
const ANOTHERS: &str = concat!(
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBxeXc4SFdDam1zV1QxcjBmSEVUdXdRIDE5CnZvNUlTS2hrSm",
    "gvaDlHRmNENXk4QkJyaUpPZ3dvYXVuZ2FjQ0xBa0M1QTQKLS0tIEtlWVFXZ0FJWGNSY3E2RjNNUjFjQlJ3MkY5ZU1Y",
    "RFR3cFR0Rnl0L1hvMHcKt+LZ4RS2kikluh8sG2aSzbzCmB51xaYwkAVcIFHDks/AGIqT70cuqG34FCvg90mncFLO64",
    "HndX7R2eZP",
);

fn passphrase(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

#[test]
fn a_file_of_another_age_opens_here() {
    let file = base64::engine::general_purpose::STANDARD.decode(ANOTHERS).unwrap();
    let content = decrypt(&passphrase("correct horse battery"), &file).unwrap();
    assert_eq!(*content, b"{\"api\":\"of another program\"}");
    let wrong = decrypt(&passphrase("correct horse batterz"), &file);
    assert_eq!(wrong.map(drop), Err(AgeError::Passphrase));
}

#[test]
fn content_of_every_length_around_a_piece_comes_back() {
    let passphrase = passphrase("p");
    for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
        let content: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let file = sealed(&passphrase, &content, 4).unwrap();
        assert_eq!(decrypt(&passphrase, &file).map(|got| *got == content), Ok(true), "{length}");
        let cut = decrypt(&passphrase, &file[..file.len() - 1]);
        assert_eq!(cut.map(drop), Err(AgeError::Changed), "{length}");
    }
}

#[test]
fn pieces_that_are_taken_away_or_exchanged_are_seen() {
    let passphrase = passphrase("p");
    let file = sealed(&passphrase, &vec![7; 3 * PIECE], 4).unwrap();
    let start = file.len() - 3 * (PIECE + TAG);
    let piece = |n: usize| &file[start + n * (PIECE + TAG)..start + (n + 1) * (PIECE + TAG)];
    let of = |order: &[usize]| {
        let pieces = order.iter().flat_map(|n| piece(*n).to_vec());
        file[..start].iter().copied().chain(pieces).collect::<Vec<u8>>()
    };
    assert!(decrypt(&passphrase, &of(&[0, 1, 2])).is_ok(), "the twin");
    for order in [&[0, 1][..], &[1, 0, 2], &[0, 2], &[0, 1, 1, 2], &[0, 1, 2, 2], &[]] {
        assert_eq!(decrypt(&passphrase, &of(order)).map(drop), Err(AgeError::Changed), "{order:?}");
    }
}

#[test]
fn a_file_that_asks_for_too_much_work_is_refused_before_any() {
    let made = sealed(&passphrase("p"), b"x", 4).unwrap();
    let end = made.iter().position(|byte| *byte == b'\n').unwrap();
    let stanza = made[end..].iter().skip(1).position(|byte| *byte == b'\n').unwrap() + end;
    for (work, wanted) in [("40", AgeError::Work(40)), ("04", AgeError::Format), ("+4", AgeError::Format)] {
        let file = [&made[..stanza], work.as_bytes(), &made[stanza + 1..]].concat();
        assert_eq!(decrypt(&passphrase("p"), &file).map(drop), Err(wanted), "{work}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_byte_anywhere_is_refused(at in any::<prop::sample::Index>(), with in 1u8..) {
        let passphrase = passphrase("p");
        let mut file = sealed(&passphrase, b"a secret", 4).unwrap();
        let at = at.index(file.len());
        file[at] ^= with;
        prop_assert!(decrypt(&passphrase, &file).is_err());
    }

    #[test]
    fn any_bytes_are_refused_in_order(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decrypt(&passphrase("p"), &bytes).is_err());
    }
}
