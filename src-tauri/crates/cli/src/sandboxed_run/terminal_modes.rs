//! Tracks the terminal modes that a program sets through its output.

use std::collections::BTreeSet;
use vte::{Params, Parser, Perform};

/// DEC private modes that would disturb IronCurtain's text or the user's shell: cursor keys, reverse video, origin and
/// margins, mouse and focus reports, alternate screens, bracketed paste and synchronized output.
const RESTORED_MODES: [u16; 19] =
    [1, 5, 6, 9, 47, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026];

/// DEC private modes that switch to the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

/// Cancels an escape sequence or string that the program has not completed, because it would hide the text after it.
const CANCEL: &str = "\x18\x1b\\";

/// Resets the state that could hide or replace IronCurtain's text, even if the program set it in a way that is not
/// tracked: character set, insert mode, reverse video, origin mode, line wrapping, margins, cursor and attributes.
const RESET_SEQUENCE: &str =
    "\x0f\x1b(B\x1b[4l\x1b[20l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?69l\x1b[?25h\x1b[0m\x1b[r";

/// Resets the palette, and the colours of text, background and cursor (`OSC 104`, `110` to `112`).
const RESET_COLOURS: &str = "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\";

/// First parameter of the control strings that change colours.
const COLOUR_COMMANDS: [&[u8]; 5] = [b"4", b"5", b"10", b"11", b"12"];

/// Terminal modes set by a program, parsed from its output.
#[derive(Default)]
pub struct TerminalModes {
    parser: Parser,
    state: ModeState,
}

#[derive(Default)]
struct ModeState {
    modes: BTreeSet<u16>,
    hides_cursor: bool,
    /// `true` if long lines are cut off at the margin instead of wrapped.
    cuts_lines: bool,
    /// `true` if the program has changed the terminal's colours.
    has_coloured: bool,
    /// `true` if Kitty's keyboard protocol is on.
    encodes_keys: bool,
    /// Level of xterm's `modifyOtherKeys`.
    other_keys: u16,
    /// `true` if the latest output did not end with a line feed.
    is_inside_line: bool,
}

impl TerminalModes {
    pub fn read(&mut self, output: &[u8]) {
        self.parser.advance(&mut self.state, output);
        if let Some(last) = output.last() {
            self.state.is_inside_line = *last != b'\n';
        }
    }

    pub fn is_alternate(&self) -> bool {
        ALTERNATE.iter().any(|mode| self.state.modes.contains(mode))
    }

    pub fn is_inside_line(&self) -> bool {
        self.state.is_inside_line
    }

    /// Returns the escape sequence that resets all modes after the program was killed.
    pub fn reset(&self) -> String {
        let mut text = self.reset_modes(|_| true);
        if !text.is_empty() {
            text.push_str("\x1b[0m");
        }
        text
    }

    /// Returns the escape sequence that switches to an empty screen and resets the terminal modes set by the program.
    pub fn begin_own_screen(&self) -> String {
        let alternate = if self.is_alternate() { "" } else { "\x1b[?1049h" };
        let reset = self.reset_modes(|mode| !ALTERNATE.contains(&mode));
        let colours = if self.state.has_coloured { RESET_COLOURS } else { "" };
        format!("{CANCEL}{alternate}{reset}{colours}{RESET_SEQUENCE}\x1b[2J\x1b[H")
    }

    /// Returns the escape sequence that restores the program's screen and modes, except for the content of an
    /// alternate screen.
    pub fn end_own_screen(&self) -> String {
        let alternate = if self.is_alternate() { "" } else { "\x1b[?1049l" };
        let modes = self.state.modes.iter().filter(|mode| !ALTERNATE.contains(mode));
        let modes: String = modes.map(|mode| format!("\x1b[?{mode}h")).collect();
        let cursor = if self.state.hides_cursor { "\x1b[?25l" } else { "" };
        let lines = if self.state.cuts_lines { "\x1b[?7l" } else { "" };
        let kitty = if self.state.encodes_keys { "\x1b[<u" } else { "" };
        let xterm = match self.state.other_keys {
            0 => String::new(),
            level => format!("\x1b[>4;{level}m"),
        };
        // Kitty keeps separate keyboard modes for the alternate screen, so the mode is restored before leaving it.
        format!("\x1b[2J\x1b[H{kitty}{alternate}{modes}{cursor}{lines}{xterm}")
    }

    fn reset_modes(&self, is_selected: impl Fn(u16) -> bool) -> String {
        let modes = self.state.modes.iter().filter(|mode| is_selected(**mode));
        let mut text: String = modes.map(|mode| format!("\x1b[?{mode}l")).collect();
        if self.state.hides_cursor {
            text.push_str("\x1b[?25h");
        }
        if self.state.cuts_lines {
            text.push_str("\x1b[?7h");
        }
        if self.state.encodes_keys {
            text.push_str("\x1b[>0u");
        }
        if self.state.other_keys != 0 {
            text.push_str("\x1b[>4m");
        }
        text
    }
}

impl Perform for ModeState {
    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        match (intermediates, action) {
            ([b'?'], 'h' | 'l') => {
                for mode in params.iter().filter_map(|param| param.first().copied()) {
                    match (mode, action) {
                        (25, action) => self.hides_cursor = action == 'l',
                        (7, action) => self.cuts_lines = action == 'l',
                        (mode, 'h') if RESTORED_MODES.contains(&mode) => _ = self.modes.insert(mode),
                        (mode, _) => _ = self.modes.remove(&mode),
                    }
                }
            }
            ([b'>'], 'm') => {
                let mut numbers = params.iter().filter_map(|param| param.first().copied());
                if numbers.next() == Some(4) {
                    self.other_keys = numbers.next().unwrap_or_default();
                }
            }
            ([b'>' | b'='], 'u') => self.encodes_keys = true,
            ([b'<'], 'u') => self.encodes_keys = false,
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        self.has_coloured |= params.first().is_some_and(|first| COLOUR_COMMANDS.contains(first));
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        // RIS, a full reset.
        if intermediates.is_empty() && byte == b'c' {
            *self = Self { is_inside_line: self.is_inside_line, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_followed_across_pieces() {
        let mut modes = TerminalModes::default();
        modes.read(b"text\x1b[?10");
        assert!(!modes.is_alternate() && modes.is_inside_line());
        modes.read(b"49;2004h\x1b[?25l\n");
        assert!(modes.is_alternate() && !modes.is_inside_line());
        assert_eq!(modes.reset(), "\x1b[?1049l\x1b[?2004l\x1b[?25h\x1b[0m");
        let own = format!("{CANCEL}\x1b[?2004l\x1b[?25h{RESET_SEQUENCE}\x1b[2J\x1b[H");
        assert_eq!(modes.begin_own_screen(), own);
        assert_eq!(modes.end_own_screen(), "\x1b[2J\x1b[H\x1b[?2004h\x1b[?25l");
        modes.read(b"\x1b[?1049l\x1b[?2004l\x1b[?25h");
        assert!(!modes.is_alternate());
        assert_eq!(modes.reset(), "");
        assert_eq!(modes.end_own_screen(), "\x1b[2J\x1b[H\x1b[?1049l");
    }

    #[test]
    fn a_question_is_readable_whatever_the_program_has_set() {
        let mut modes = TerminalModes::default();
        // An unfinished window title would swallow the question.
        modes.read(b"\x1b[?7l\x1b[?6h\x1b]4;1;#000000\x1b\\\x1b]0;title");
        let own = format!("{CANCEL}\x1b[?1049h\x1b[?6l\x1b[?7h{RESET_COLOURS}{RESET_SEQUENCE}\x1b[2J\x1b[H");
        assert_eq!(modes.begin_own_screen(), own);
        assert_eq!(modes.end_own_screen(), "\x1b[2J\x1b[H\x1b[?1049l\x1b[?6h\x1b[?7l");
        // Other control strings leave the user's colours as they are.
        let mut others = TerminalModes::default();
        others.read(b"\x1b]0;4;title\x07\x1b]52;c;YQ==\x07");
        assert!(!others.begin_own_screen().contains(RESET_COLOURS));
    }

    #[test]
    fn text_that_looks_like_a_mode_is_not_one() {
        let mut modes = TerminalModes::default();
        // A sequence inside a window title and a mode without `?` have no effect.
        modes.read(b"\x1b]0;[?1049h\x07\x1b[1049h");
        assert!(!modes.is_alternate());
        modes.read(b"\x1b[?1049h\x1bc");
        assert!(!modes.is_alternate());
    }
}
