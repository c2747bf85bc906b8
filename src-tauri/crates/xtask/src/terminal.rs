//! Output for the person at the terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// One line of ours. The error is that nobody can read it.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The start of something that takes a while.
pub(crate) fn heading(title: &str) -> anyhow::Result<()> {
    say(&format!("\n== {title}"))
}

/// The last word when something went wrong.
pub(crate) fn complain(problem: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr(), "\nxtask: {problem}");
}

/// Returns `true` if somebody can be asked for a password.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A duration as people say it.
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
    fn durations_are_said_as_people_do() {
        assert_eq!(spoken(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(spoken(Duration::from_secs(312)), "5 min 12 s");
    }
}
