//! A file that a session left and that runs later, for people.

use crate::sheet::Sheet;
use ironcurtain_protocol::{LeftFileView, LeftState};

/// The longest difference that is shown of one file, in lines.
const MOST_LINES: usize = 40;

/// Its path, when it runs, its fate and the difference in it.
pub fn lines(sheet: &mut Sheet, file: &LeftFileView) {
    sheet.line(&file.shown);
    let change = if file.is_new { "new" } else { "changed" };
    sheet.line(format_args!("  {change}; it runs {}", file.when));
    match (file.state, &file.moved_to) {
        (LeftState::Left, _) => {}
        (LeftState::Kept, _) => sheet.line("  kept, as you said"),
        (LeftState::Quarantined, Some(to)) => sheet.line(format_args!("  moved to {to}")),
        (LeftState::Quarantined, None) => sheet.line("  moved to quarantine, and no longer there"),
        (LeftState::Returned, _) => sheet.line("  put back from quarantine, as you said"),
        (LeftState::Exchanged, Some(to)) => {
            sheet.line(format_args!("  put back, as you said; what stood there is in {to}"));
        }
        (LeftState::Exchanged, None) => sheet.line("  put back, as you said"),
        (LeftState::Deleted, _) => sheet.line("  deleted from quarantine, as you said"),
        (LeftState::PutBack, _) => sheet.line(format_args!("  put back: {}", file.keys.join(", "))),
    }
    let lines: Vec<&str> = file.diff.as_deref().unwrap_or_default().lines().collect();
    lines.iter().take(MOST_LINES).for_each(|line| sheet.line(format_args!("  | {line}")));
    if lines.len() > MOST_LINES {
        sheet.line(format_args!("  | ... {} more lines", lines.len() - MOST_LINES));
    }
}
