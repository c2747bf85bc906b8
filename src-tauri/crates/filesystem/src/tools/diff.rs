//! Unified diffs in the format of the reference server.

mod changes;

use std::iter::repeat_n;

use self::changes::{Change, DiffKind, changes};

/// Number of unchanged lines shown around a change.
const CONTEXT: usize = 4;

const NO_FINAL_NEWLINE: &str = "\\ No newline at end of file\n";

/// Returns the unified diff of two texts with LF line endings.
pub(super) fn unified_diff(before: &str, after: &str, name: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let rule = "=".repeat(67);
    let mut diff = format!("Index: {name}\n{rule}\n--- {name}\toriginal\n+++ {name}\tmodified\n");
    let changes = changes(&old, &new);
    let lines = signed_lines(&changes, &old, &new);
    for hunk in hunks(&lines) {
        write_hunk(
            &mut diff,
            lines.get(..hunk.start).unwrap_or_default(),
            lines.get(hunk).unwrap_or_default(),
        );
    }
    diff
}

/// Returns the lines of both texts with their kind of change, in diff order.
fn signed_lines<'a>(changes: &[Change], old: &[&'a str], new: &[&'a str]) -> Vec<(DiffKind, &'a str)> {
    let (mut old, mut new) = (old.iter(), new.iter());
    let signs = changes.iter().flat_map(|change| repeat_n(change.kind, change.count));
    let line = |kind| match kind {
        DiffKind::Same => {
            new.next();
            old.next()
        }
        DiffKind::Removed => old.next(),
        DiffKind::Added => new.next(),
    };
    let mut line = line;
    signs.filter_map(|kind| line(kind).map(|line| (kind, *line))).collect()
}

/// Returns the ranges of lines to show: changes with their context. Ranges that touch are merged.
fn hunks(lines: &[(DiffKind, &str)]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, _) in lines.iter().enumerate().filter(|(_, (kind, _))| *kind != DiffKind::Same) {
        let start = index.saturating_sub(CONTEXT);
        let end = index.saturating_add(CONTEXT).saturating_add(1).min(lines.len());
        match hunks.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

fn write_hunk(diff: &mut String, before: &[(DiffKind, &str)], lines: &[(DiffKind, &str)]) {
    let count = |lines: &[(DiffKind, &str)], other| lines.iter().filter(|(kind, _)| *kind != other).count();
    let range = |other| {
        let (skipped, length) = (count(before, other), count(lines, other));
        // An empty range starts at the number of the line before it.
        let start = skipped.saturating_add(usize::from(length > 0));
        format!("{start},{length}")
    };
    let header = format!("@@ -{} +{} @@\n", range(DiffKind::Added), range(DiffKind::Removed));
    diff.push_str(&header);
    for (kind, line) in lines {
        diff.push(kind.sign());
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push('\n');
            diff.push_str(NO_FINAL_NEWLINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_carry_four_lines_of_context() {
        let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let after = before.replace("10\n", "ten\n");
        let hunk = "@@ -6,9 +6,9 @@\n 6\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n 14\n";
        assert_eq!(unified_diff(&before, &after, "f"), header() + hunk);
    }

    #[test]
    fn adjacent_hunks_are_merged() {
        let before: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let near = before.replace("10\n", "ten\n").replace("19\n", "nineteen\n");
        assert_eq!(unified_diff(&before, &near, "f").matches("@@ -").count(), 1);
        let far = before.replace("10\n", "ten\n").replace("20\n", "twenty\n");
        assert_eq!(unified_diff(&before, &far, "f").matches("@@ -").count(), 2);
    }

    #[test]
    fn a_missing_final_newline_is_marked() {
        let expected = "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(unified_diff("a", "a\n", "f"), header() + expected);
        assert_eq!(unified_diff("", "a\n", "f"), header() + "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified_diff("a", "a", "f"), header());
    }

    fn header() -> String {
        format!("Index: f\n{}\n--- f\toriginal\n+++ f\tmodified\n", "=".repeat(67))
    }
}
