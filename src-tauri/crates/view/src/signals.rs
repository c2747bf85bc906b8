//! Detects threads that are about to be terminated by a signal.

use std::fs;

/// Signals that cancel a waiting request: HUP, INT, QUIT, KILL and TERM. The kernel interrupts requests on every caught
/// signal, but cancelling on other signals, such as timer signals, would break programs.
const TERMINATING: u64 = 1 | (1 << 1) | (1 << 2) | (1 << 8) | (1 << 14);

/// Returns `true` if one of these signals is pending for the thread, or the thread has exited.
#[must_use]
pub fn is_terminating(thread: u32) -> bool {
    match fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => has_terminating_signal(&status),
        Err(_) => true,
    }
}

fn has_terminating_signal(status: &str) -> bool {
    let signal_set = |field: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(field))?;
        u64::from_str_radix(value.trim(), 16).ok()
    };
    let pending = signal_set("SigPnd:").unwrap_or(0) | signal_set("ShdPnd:").unwrap_or(0);
    pending & !signal_set("SigBlk:").unwrap_or(0) & TERMINATING != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(own: u64, shared: u64, blocked: u64) -> bool {
        has_terminating_signal(&format!(
            "Name:\tcat\nSigPnd:\t{own:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t{blocked:016x}\n"
        ))
    }

    #[test]
    fn only_signals_that_terminate_end_a_wait() {
        const TERM: u64 = 1 << 14;
        const ALARM: u64 = 1 << 13;
        assert!(status(TERM, 0, 0) && status(0, TERM, 0) && status(0, 1 << 8, 0));
        assert!(!status(ALARM, ALARM, 0) && !status(0, 0, 0));
        assert!(!status(TERM, 0, TERM));
        assert!(!is_terminating(std::process::id()) && is_terminating(u32::MAX));
    }
}
