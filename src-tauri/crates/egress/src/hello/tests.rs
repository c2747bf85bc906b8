//! Tests with ClientHello messages from real clients, and with mutations of them.

use super::*;
use proptest::prelude::*;

const NAME: &str = "files.example.test";
const CURL: &[u8] = include_bytes!("captured/curl.bin");
const CLIENTS: [(&str, &[u8]); 4] = [
    ("curl", CURL),
    ("openssl with TLS 1.2", include_bytes!("captured/openssl-tls12.bin")),
    ("python", include_bytes!("captured/python.bin")),
    ("node", include_bytes!("captured/node.bin")),
];
const NAMELESS: &[u8] = include_bytes!("captured/openssl-no-name.bin");

fn named() -> Result<Option<ClientHello>, ClientHelloError> {
    Ok(Some(ClientHello { name: Some(NAME.into()) }))
}

/// Splits a handshake message into records of `size` bytes.
fn cut(hello: &[u8], size: usize) -> Vec<u8> {
    let record =
        |part: &[u8]| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat();
    hello[5..].chunks(size).flat_map(record).collect()
}

/// Builds a minimal ClientHello with the given extensions.
fn with_extensions(extensions: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let rest = [&[0, 2, 0x13, 1, 1, 0], &length(extensions)[..], extensions].concat();
    let body = [&[3, 3], &[7; 32][..], &[0], &rest].concat();
    let body = [&[1, 0], &length(&body)[..], &body].concat();
    [&[22, 3, 1], &length(&body)[..], &body].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&kind.to_be_bytes()[..], &length, content].concat()
}

fn name(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[kind], &u16::try_from(name.len()).unwrap().to_be_bytes()[..], name].concat()
}

fn names(entries: &[Vec<u8>]) -> Vec<u8> {
    let list = entries.concat();
    extension(0, &[&u16::try_from(list.len()).unwrap().to_be_bytes()[..], &list].concat())
}

#[test]
fn real_clients_are_parsed_however_they_are_split() {
    for (client, hello) in CLIENTS {
        assert_eq!(inspect(hello), named(), "{client}");
        for size in [1, 3, 4, 5, 100, 16384] {
            assert_eq!(inspect(&cut(hello, size)), named(), "{client} in records of {size}");
        }
        for end in 0..hello.len() {
            assert_eq!(inspect(&hello[..end]), Ok(None), "{client} up to {end}");
        }
        assert_eq!(
            inspect(&[hello, b"\x17\x03\x03\x00\x01x"].concat()),
            named(),
            "{client} and what follows"
        );
    }
    assert_eq!(inspect(NAMELESS), Ok(Some(ClientHello { name: None })));
}

#[test]
fn anything_but_a_client_hello_is_refused_at_its_first_byte() {
    for bytes in [
        b"GET / HTTP/1.1\r\n".as_slice(),
        b"SSH-2.0-x\r\n",
        b"\x80\x2e\x01\x00\x02",
        b"\x00",
        b"\x16\x04",
        b"\x15\x03\x03",
    ] {
        assert_eq!(inspect(bytes), Err(ClientHelloError::NotTls), "{bytes:?}");
    }
    // A ServerHello in a handshake record, an empty record and an oversized record.
    assert_eq!(inspect(b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00"), Err(ClientHelloError::NotTls));
    assert_eq!(inspect(b"\x16\x03\x01\x00\x00"), Err(ClientHelloError::Malformed));
    assert_eq!(inspect(b"\x16\x03\x01\x40\x01"), Err(ClientHelloError::Malformed));
    // The header announces 16 MB, but only one record has arrived.
    assert_eq!(inspect(b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\x03"), Err(ClientHelloError::TooLong));
}

#[test]
fn exactly_one_name_is_accepted() {
    let one = names(&[name(0, b"a.test")]);
    let greeted = |extensions: &[u8]| inspect(&with_extensions(extensions));
    assert_eq!(greeted(&one), Ok(Some(ClientHello { name: Some("a.test".into()) })));
    assert_eq!(greeted(&extension(43, b"\x02\x03\x04")), Ok(Some(ClientHello { name: None })));
    let other = names(&[name(0, b"b.test")]);
    for (what, extensions) in [
        ("two lists", [one.clone(), other].concat()),
        ("two names", names(&[name(0, b"a.test"), name(0, b"b.test")])),
        ("another kind", names(&[name(1, b"a.test")])),
        ("an empty name", names(&[name(0, b"")])),
        ("an empty list", names(&[])),
        ("a NUL", names(&[name(0, b"a.test\0.b.test")])),
        ("not ASCII", names(&[name(0, "\u{e4}.test".as_bytes())])),
        ("more than the list", extension(0, b"\x00\x09\x00\x00\x06a.testx")),
        ("less than the list", extension(0, b"\x00\x0a\x00\x00\x06a.test")),
        ("a cut extension", one[..one.len() - 1].to_vec()),
    ] {
        assert_eq!(greeted(&extensions), Err(ClientHelloError::Malformed), "{what}");
    }
    let long = with_extensions(&extension(21, &vec![0; 40_000]));
    assert_eq!(inspect(&cut(&long, 16384)), Ok(Some(ClientHello { name: None })), "padding may be long");
}

#[test]
fn trailing_bytes_are_malformed() {
    let hello = with_extensions(&names(&[name(0, b"a.test")]));
    let mut longer = cut(&[&hello[..], b"more"].concat(), 16384);
    assert_eq!(inspect(&longer), Err(ClientHelloError::Malformed), "something after it in its record");
    longer[8] += 4;
    assert_eq!(inspect(&longer), Err(ClientHelloError::Malformed), "something after its extensions");
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = inspect(&bytes);
        let _ = inspect(&[&b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03"[..], &bytes].concat());
    }

    /// Checks that a mutated message yields no result, an error, or a name contained in its bytes.
    #[test]
    fn a_mutated_hello_never_yields_a_name_it_does_not_contain(
        at in prop::collection::vec((0..CURL.len(), any::<u8>()), 1..6),
        end in 0..=CURL.len(),
    ) {
        let mut bytes = CURL.to_vec();
        for (at, byte) in at {
            bytes[at] = byte;
        }
        bytes.truncate(end);
        if let Ok(Some(ClientHello { name: Some(name) })) = inspect(&bytes) {
            prop_assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()));
        }
    }

    #[test]
    fn cutting_changes_nothing(size in 1..600_usize) {
        prop_assert_eq!(inspect(&cut(CURL, size)), named());
    }
}
