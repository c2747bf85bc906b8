//! Any bytes as a request of the kernel to a view are parsed or refused, and each name is one in a folder.

#![no_main]

use ironcurtain_view::fuzzing::names_in;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The kernel gives the right length, so the other fields are reached only with it.
    let mut whole = bytes.to_vec();
    if let Some(length) = whole.first_chunk_mut() {
        *length = u32::try_from(bytes.len()).unwrap().to_ne_bytes();
    }
    for name in names_in(bytes).into_iter().chain(names_in(&whole)) {
        let name = name.as_encoded_bytes();
        assert!(!matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0));
    }
});
