//! Prints to the terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Prints a line. Returns an error if standard output is closed.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Prints the heading of a long step.
pub(crate) fn heading(title: &str) -> anyhow::Result<()> {
    say(&format!("\n== {title}"))
}

/// Prints the final error message.
pub(crate) fn complain(problem: &str) {
    // Ignores the error: standard error is closed, so nothing can be printed.
    let _ = writeln!(io::stderr(), "\nxtask: {problem}");
}

/// Returns `true` if there is a user at the terminal who can be asked for a password.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Formats a duration for display.
pub(crate) fn spoken(took: Duration) -> String {
    let seconds = took.as_secs();
    if seconds < 60 {
        return format!("{:.1} s", took.as_secs_f64());
    }
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        assert_eq!(spoken(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(spoken(Duration::from_secs(312)), "5 min 12 s");
    }
}
