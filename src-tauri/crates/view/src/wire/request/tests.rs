//! Tests parsing requests from bytes.

use super::*;

/// Returns the bytes of a request, as the kernel sends them.
fn bytes(opcode: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(40 + body.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(7_u64.to_ne_bytes());
    bytes.extend(9_u64.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(1234_u32.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn parsed(opcode: u32, body: &[u8]) -> Result<String, Malformed> {
    let bytes = bytes(opcode, body);
    let request = Request::parse(&bytes).map_err(|(_, malformed)| malformed)?;
    assert_eq!((request.header.unique, request.header.node, request.header.process), (7, 9, 1234));
    Ok(format!("{:?}", request.operation))
}

#[test]
fn names_end_with_a_zero_byte_and_name_one_entry() {
    assert_eq!(parsed(1, b"a.txt\0").unwrap(), "Lookup(\"a.txt\")");
    for bad in [&b"a.txt"[..], b"\0", b"", b"a/b\0", b".\0", b"..\0"] {
        assert_eq!(parsed(1, bad), Err(Malformed), "{bad:?}");
    }
    let two = [&7_u64.to_ne_bytes()[..], b"a\0b\0"].concat();
    assert_eq!(
        parsed(12, &two).unwrap(),
        "Rename { name: \"a\", parent: 7, new_name: \"b\", flags: RenameFlags(0x0) }"
    );
}

#[test]
fn lengths_that_do_not_match_are_refused() {
    let mut short = bytes(1, b"a\0");
    short.pop();
    assert!(matches!(Request::parse(&short), Err((None, Malformed))));
    assert!(matches!(Request::parse(&[]), Err((None, Malformed))));
    // A write request that announces more data than it contains.
    let write = |size: u32, data: &[u8]| {
        let fields = [[0; 16].as_slice(), &size.to_ne_bytes(), &[0; 20], data].concat();
        parsed(16, &fields)
    };
    assert!(write(3, b"abc").unwrap().contains("data: [97, 98, 99]"));
    assert_eq!(write(4, b"abc"), Err(Malformed));
    assert_eq!(write(u32::MAX, b"abc"), Err(Malformed));
    // A forget request that announces more nodes than it contains.
    let forget = |count: u32, nodes: &[u64]| {
        let nodes = nodes.iter().flat_map(|number| number.to_ne_bytes());
        parsed(42, &count.to_ne_bytes().into_iter().chain([0; 4]).chain(nodes).collect::<Vec<u8>>())
    };
    assert_eq!(forget(1, &[5, 6]).unwrap(), "Forget([(5, 6)])");
    assert_eq!(forget(2, &[5, 6]), Err(Malformed));
    assert_eq!(forget(u32::MAX, &[5, 6]), Err(Malformed));
}

#[test]
fn every_operation_refuses_a_truncated_body() {
    for opcode in [
        1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 25, 26, 28, 29, 31, 32, 33, 36, 42, 43, 44, 45,
        46,
    ] {
        assert_eq!(parsed(opcode, &[1, 2, 3]), Err(Malformed), "{opcode}");
    }
}

#[test]
fn attribute_changes_have_only_the_fields_that_are_marked() {
    let mut body = vec![0_u8; 88];
    body[0..4].copy_from_slice(&((1_u32 << 3) | (1 << 6) | (1 << 5) | (1 << 8)).to_ne_bytes());
    body[8..16].copy_from_slice(&3_u64.to_ne_bytes());
    body[16..24].copy_from_slice(&100_u64.to_ne_bytes());
    let expected = AttributeChange {
        handle: Some(3),
        size: Some(100),
        modified: Some(NewTime::Now),
        ..AttributeChange::default()
    };
    assert_eq!(parsed(4, &body).unwrap(), format!("{:?}", Operation::SetAttributes(expected)));
}

#[test]
fn locks_name_a_range_and_a_kind() {
    let lock = |start: u64, end: u64, kind: u32| {
        let numbers = [3_u64, 4, start, end].into_iter().flat_map(|number| number.to_ne_bytes());
        let rest = [kind, 0, 1, 0].into_iter().flat_map(u32::to_ne_bytes);
        parsed(33, &numbers.chain(rest).collect::<Vec<u8>>())
    };
    let range =
        LockRange { handle: 3, owner: 4, start: 5, end: 6, kind: LockKind::Exclusive, is_whole: true };
    assert_eq!(lock(5, 6, 1).unwrap(), format!("{:?}", Operation::SetLock { lock: range, waits: true }));
    assert_eq!(lock(6, 5, 1), Err(Malformed));
    assert_eq!(lock(5, 6, 3), Err(Malformed));
}
