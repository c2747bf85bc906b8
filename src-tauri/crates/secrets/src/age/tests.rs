//! Tests a file from a different implementation of `age`, and modified files.

use super::*;
use proptest::prelude::*;

/// File created by `pyrage` 1.4, which wraps the Rust implementation of `age`.
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
fn a_file_from_another_implementation_can_be_decrypted() {
    let file = base64::engine::general_purpose::STANDARD.decode(ANOTHERS).unwrap();
    let content = decrypt(&passphrase("correct horse battery"), &file).unwrap();
    assert_eq!(*content, b"{\"api\":\"of another program\"}");
    let wrong = decrypt(&passphrase("correct horse batterz"), &file);
    assert_eq!(wrong.map(drop), Err(AgeError::Passphrase));
}

#[test]
fn content_of_lengths_around_the_chunk_size_round_trips() {
    let passphrase = passphrase("p");
    for length in [0, 1, CHUNK_LEN - 1, CHUNK_LEN, CHUNK_LEN + 1, 3 * CHUNK_LEN] {
        let content: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let file = encrypt_with_log_n(&passphrase, &content, 4).unwrap();
        assert_eq!(decrypt(&passphrase, &file).map(|got| *got == content), Ok(true), "{length}");
        let cut = decrypt(&passphrase, &file[..file.len() - 1]);
        assert_eq!(cut.map(drop), Err(AgeError::Changed), "{length}");
    }
}

#[test]
fn removed_or_reordered_chunks_are_detected() {
    let passphrase = passphrase("p");
    let file = encrypt_with_log_n(&passphrase, &vec![7; 3 * CHUNK_LEN], 4).unwrap();
    let start = file.len() - 3 * (CHUNK_LEN + TAG_LEN);
    let chunk = |n: usize| &file[start + n * (CHUNK_LEN + TAG_LEN)..start + (n + 1) * (CHUNK_LEN + TAG_LEN)];
    let of = |order: &[usize]| {
        let chunks = order.iter().flat_map(|n| chunk(*n).to_vec());
        file[..start].iter().copied().chain(chunks).collect::<Vec<u8>>()
    };
    assert!(decrypt(&passphrase, &of(&[0, 1, 2])).is_ok(), "the twin");
    for order in [&[0, 1][..], &[1, 0, 2], &[0, 2], &[0, 1, 1, 2], &[0, 1, 2, 2], &[]] {
        assert_eq!(decrypt(&passphrase, &of(order)).map(drop), Err(AgeError::Changed), "{order:?}");
    }
}

/// Splits a file into the four lines of its header and the rest.
fn parts(file: &[u8]) -> ([String; 4], Vec<u8>) {
    let parts: Vec<&[u8]> = file.splitn(5, |byte| *byte == b'\n').collect();
    let line = |n: usize| String::from_utf8(parts[n].to_vec()).unwrap();
    ([line(0), line(1), line(2), line(3)], parts[4].to_vec())
}

fn refused(file: &[u8]) -> AgeError {
    decrypt(&passphrase("p"), file).unwrap_err()
}

#[test]
fn a_non_canonical_header_is_refused_before_any_work() {
    let ([version, stanza, body, end], rest) = parts(&encrypt_with_log_n(&passphrase("p"), b"x", 4).unwrap());
    let file = |lines: &[&str]| [lines.join("\n").as_bytes(), b"\n", &rest].concat();
    assert!(decrypt(&passphrase("p"), &file(&[&version, &stanza, &body, &end])).is_ok(), "the twin");
    let salt = stanza.split(' ').nth(2).unwrap();
    let with = |stanza: &str| file(&[&version, stanza, &body, &end]);
    let scrypt = |salt: &str, log_n: &str| with(&format!("-> scrypt {salt} {log_n}"));
    let of = |length: usize| base64_encode(&vec![7; length]);
    // The last of the salt's 22 characters has four unused bits.
    let (most, last) = salt.split_at(21);
    let other_way = format!("{most}{}", char::from(last.as_bytes()[0] + 1));
    let cases = [
        ("another version", file(&["age-encryption.org/v2", &stanza, &body, &end])),
        ("in armour", file(&["-----BEGIN AGE ENCRYPTED FILE-----", &stanza, &body, &end])),
        ("lines of another system", file(&[&format!("{version}\r"), &stanza, &body, &end])),
        ("lines of another system", with(&format!("{stanza}\r"))),
        ("a second way in", file(&[&version, &stanza, &body, &stanza, &body, &end])),
        ("another way in as well", file(&[&version, "-> X25519 x", &body, &stanza, &body, &end])),
        ("no way in", file(&[&version, &end])),
        ("another way in", with(&stanza.replace("scrypt", "SCRYPT"))),
        ("another argument", with(&format!("{stanza} x"))),
        ("two spaces", with(&stanza.replace("scrypt ", "scrypt  "))),
        ("no salt", with("-> scrypt 4")),
        ("a short salt", scrypt(&of(15), "4")),
        ("a long salt", scrypt(&of(17), "4")),
        ("a padded salt", scrypt(&format!("{salt}=="), "4")),
        ("the same salt in another way", scrypt(&other_way, "4")),
        ("no work", with(&format!("-> scrypt {salt} "))),
        ("no work", scrypt(salt, "0")),
        ("work in another way", scrypt(salt, "04")),
        ("work in another way", scrypt(salt, "+4")),
        ("work in another way", scrypt(salt, "0x4")),
        ("work below nothing", scrypt(salt, "-4")),
        ("work beyond all numbers", scrypt(salt, "256")),
        ("a long key", file(&[&version, &stanza, &of(33), &end])),
        ("a short key", file(&[&version, &stanza, &of(31), &end])),
        ("a key over two lines", file(&[&version, &stanza, &body[..20], &body[20..], &end])),
        ("no proof", file(&[&version, &stanza, &body, "---"])),
        ("a short proof", file(&[&version, &stanza, &body, &format!("--- {}", of(31))])),
        ("a padded proof", file(&[&version, &stanza, &body, &format!("{end}=")])),
        ("an end in another way", file(&[&version, &stanza, &body, &end.replace("--- ", "---  ")])),
        (
            "nothing after its end",
            [&version, &stanza, &body, &end].map(String::as_str).join("\n").into_bytes(),
        ),
    ];
    for (why, file) in cases {
        assert_eq!(refused(&file), AgeError::Format, "{why}");
    }
    for log_n in [21, 22, 40, 64, 255] {
        assert_eq!(refused(&scrypt(salt, &log_n.to_string())), AgeError::Work(log_n));
    }
    let proof = format!("--- {}", of(32));
    assert_eq!(refused(&file(&[&version, &stanza, &body, &proof])), AgeError::Changed, "another proof");
    assert_eq!(refused(&scrypt(&of(16), "4")), AgeError::Passphrase, "another salt");
    assert_eq!(refused(&scrypt(salt, "5")), AgeError::Passphrase, "more work");
    assert_eq!(refused(&file(&[&version, &stanza, &of(32), &end])), AgeError::Passphrase, "another key");
}

#[test]
fn non_canonical_chunks_and_trailing_data_are_refused() {
    let made = encrypt_with_log_n(&passphrase("p"), b"x", 4).unwrap();
    let start = made.len() - (1 + TAG_LEN);
    let Header { salt, log_n, mut wrapped_key, rest, .. } = Header::read(&made).unwrap();
    let wrapping = key(&wrapping_key(&passphrase("p"), &salt, log_n).unwrap()).unwrap();
    let file_key = wrapping.open_in_place(zero_nonce(), Aad::empty(), wrapped_key.as_mut_slice()).unwrap();
    let content_key = key(&derive_key(file_key, &rest[..16], b"payload").unwrap()).unwrap();
    // Creates a file with the same header and these chunks, each with its bytes and the flag for the last
    // chunk.
    let with = |chunks: &[(&[u8], bool)]| {
        let mut file = made[..start].to_vec();
        for (number, (bytes, is_last)) in chunks.iter().enumerate() {
            let mut chunk = bytes.to_vec();
            let nonce = chunk_nonce(number, *is_last);
            content_key.seal_in_place_append_tag(nonce, Aad::empty(), &mut chunk).unwrap();
            file.extend(chunk);
        }
        file
    };
    let whole = vec![7; CHUNK_LEN];
    for (chunks, length) in [(&[(&b"x"[..], true)][..], 1), (&[(&whole, false), (b"y", true)], CHUNK_LEN + 1)]
    {
        let content = decrypt(&passphrase("p"), &with(chunks)).unwrap();
        assert_eq!(content.len(), length, "the twin");
    }
    for (why, file) in [
        ("no piece", with(&[])),
        ("none is the last", with(&[(b"x", false)])),
        ("none is the last", with(&[(&whole, false)])),
        ("two are the last", with(&[(&whole, true), (b"y", true)])),
        ("the last is empty", with(&[(&whole, false), (b"", true)])),
        ("one in between is short", with(&[(&whole[1..], false), (b"y", true)])),
        ("a piece is too long", with(&[(&[&whole[..], b"y"].concat(), true)])),
        ("a byte comes after it", [with(&[(b"x", true)]), vec![0]].concat()),
        ("a file comes after it", [made.clone(), made.clone()].concat()),
        ("its nonce is cut", made[..start - 1].to_vec()),
        ("nothing but its nonce", made[..start].to_vec()),
    ] {
        assert_eq!(refused(&file), AgeError::Changed, "{why}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_byte_anywhere_is_refused(at in any::<prop::sample::Index>(), with in 1u8..) {
        let passphrase = passphrase("p");
        let mut file = encrypt_with_log_n(&passphrase, b"a secret", 4).unwrap();
        let at = at.index(file.len());
        file[at] ^= with;
        prop_assert!(decrypt(&passphrase, &file).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decrypt(&passphrase("p"), &bytes).is_err());
    }
}
