//! Formats autostart files that a session left behind.

use crate::text_lines::TextLines;
use ironcurtain_protocol::{AutostartFileState, AutostartFileView};

/// Maximum number of diff lines to show for one file.
const MAX_LINES: usize = 40;

/// Appends the file's path, the action that runs it, its state and its diff.
pub fn append_lines(out: &mut TextLines, file: &AutostartFileView) {
    out.line(&file.shown);
    let change = if file.is_new { "new" } else { "changed" };
    out.line(format_args!("  {change}; it runs {}", file.when));
    match (file.state, &file.moved_to) {
        (AutostartFileState::Undecided, _) => {}
        (AutostartFileState::Kept, _) => out.line("  kept by you"),
        (AutostartFileState::Quarantined, Some(to)) => out.line(format_args!("  moved to {to}")),
        (AutostartFileState::Quarantined, None) => {
            out.line("  was moved to quarantine, but no longer exists")
        }
        (AutostartFileState::Returned, _) => out.line("  put back from quarantine by you"),
        (AutostartFileState::Exchanged, Some(to)) => {
            out.line(format_args!("  put back by you; the file it replaced is in {to}"));
        }
        (AutostartFileState::Exchanged, None) => out.line("  put back by you"),
        (AutostartFileState::Deleted, _) => out.line("  deleted from quarantine by you"),
        (AutostartFileState::PutBack, _) => {
            out.line(format_args!("  restored by IronCurtain: {}", file.keys.join(", ")))
        }
    }
    let lines: Vec<&str> = file.diff.as_deref().unwrap_or_default().lines().collect();
    lines.iter().take(MAX_LINES).for_each(|line| out.line(format_args!("  | {line}")));
    if lines.len() > MAX_LINES {
        out.line(format_args!("  | ... {} more lines", lines.len() - MAX_LINES));
    }
}
