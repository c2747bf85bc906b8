//! Any output of a program gives the same terminal modes however it is split, and IronCurtain's own screen is undone again.

#![no_main]

#[path = "../../crates/cli/src/sandboxed_run/terminal_modes.rs"]
mod terminal_modes;

use libfuzzer_sys::fuzz_target;
use terminal_modes::TerminalModes;

/// CAN, which ends an escape sequence.
const CANCEL: &[u8] = b"\x18";

fuzz_target!(|pieces: Vec<&[u8]>| {
    let (mut whole, mut split) = (TerminalModes::default(), TerminalModes::default());
    whole.read(&pieces.concat());
    pieces.iter().for_each(|piece| split.read(piece));
    assert_eq!(shown(&whole), shown(&split));
    let (is_alternate, before) = (whole.is_alternate(), whole.end_own_screen());
    let (begin, end) = (whole.begin_own_screen(), whole.end_own_screen());
    whole.read(&[CANCEL, begin.as_bytes()].concat());
    assert!(whole.is_alternate());
    whole.read(end.as_bytes());
    assert_eq!(whole.is_alternate(), is_alternate);
    assert_eq!(whole.end_own_screen().replace("\x1b[<u", ""), before.replace("\x1b[<u", ""));
    let reset = whole.reset();
    whole.read(reset.as_bytes());
    assert!(!whole.is_alternate());
});

fn shown(modes: &TerminalModes) -> (String, String, String, bool) {
    (modes.reset(), modes.begin_own_screen(), modes.end_own_screen(), modes.is_inside_line())
}
