//! `edit_file`: replaces passages of a file and returns the diff.
//!
//! - Either all edits are applied or none are.
//! - Line endings are compared and shown as LF, and written as CR LF if every line of the file ends in CR LF.

use std::borrow::Cow;

use super::Call;
use super::arguments::Arguments;
use super::diff::unified_diff;
use crate::error::ToolError;
use crate::files::{self, TEXT_LIMIT};

pub(super) fn file(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let edits = arguments.pairs("edits", ["oldText", "newText"])?;
    let dry_run = arguments.flag("dryRun")?;
    let resolved = call.resolve(path)?;
    let bytes = files::read(&resolved, TEXT_LIMIT, "edit it with another program")?;
    let name = resolved.path().display().to_string();
    // Writing U+FFFD instead of invalid UTF-8 would destroy the original bytes.
    let original = String::from_utf8(bytes).map_err(|_| ToolError::NotText(name.clone()))?;
    let before = line_feeds(&original);
    let mut after = before.clone().into_owned();
    for [old, new] in edits {
        call.check()?;
        after = apply(&after, old, new)?;
    }
    let diff = unified_diff(&before, &after, &name);
    if !dry_run {
        let content = if ends_in_crlf(&original) { after.replace('\n', "\r\n") } else { after };
        files::write(&resolved, content.as_bytes())?;
    }
    Ok(fenced(&diff))
}

fn line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

fn ends_in_crlf(text: &str) -> bool {
    let line_feeds = text.matches('\n').count();
    line_feeds > 0 && text.matches("\r\n").count() == line_feeds
}

/// Replaces the first exact match of `old`. If there is none, replaces the first lines that differ from `old` only in
/// indentation.
fn apply(content: &str, old: &str, new: &str) -> Result<String, ToolError> {
    let (wanted, replacement) = (line_feeds(old), line_feeds(new));
    if content.contains(wanted.as_ref()) {
        return Ok(content.replacen(wanted.as_ref(), &replacement, 1));
    }
    let wanted: Vec<&str> = wanted.split('\n').collect();
    let lines: Vec<&str> = content.split('\n').collect();
    let matches =
        |window: &[&str]| window.iter().zip(&wanted).all(|(line, wanted)| line.trim() == wanted.trim());
    let Some(start) = lines.windows(wanted.len()).position(matches) else {
        return Err(ToolError::NoMatch(old.to_owned()));
    };
    let indent = lines.get(start).map_or("", |line| indentation(line));
    let replacement = replacement.split('\n').enumerate().map(|(index, line)| {
        let old_line = wanted.get(index).copied().unwrap_or_default();
        Cow::Owned(indented(line, index, old_line, indent))
    });
    let before = lines.iter().take(start).map(|line| Cow::Borrowed(*line));
    let after = lines.iter().skip(start.saturating_add(wanted.len())).map(|line| Cow::Borrowed(*line));
    Ok(before.chain(replacement).chain(after).collect::<Vec<Cow<'_, str>>>().join("\n"))
}

/// Indents a replacement line like the line that it replaces.
fn indented(line: &str, index: usize, old_line: &str, indent: &str) -> String {
    let text = line.trim_start();
    if index == 0 {
        return format!("{indent}{text}");
    }
    let (old_indent, new_indent) = (indentation(old_line), indentation(line));
    if old_indent.is_empty() || new_indent.is_empty() {
        return line.to_owned();
    }
    let deeper = new_indent.chars().count().saturating_sub(old_indent.chars().count());
    format!("{indent}{}{text}", " ".repeat(deeper))
}

fn indentation(line: &str) -> &str {
    let text = line.trim_start();
    line.get(..line.len().saturating_sub(text.len())).unwrap_or_default()
}

/// Formats a diff as a code block whose fence is longer than any run of backticks in the diff.
fn fenced(diff: &str) -> String {
    let mut fence = "```".to_owned();
    while diff.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}diff\n{diff}{fence}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_passage_is_replaced_once() {
        assert_eq!(apply("a\nb\na\n", "a\n", "$&\n").expect("fits"), "$&\nb\na\n");
        assert_eq!(apply("a\nb\n", "a\r\nb", "c").expect("fits"), "c\n");
        let missing = apply("a\n", "x", "y").expect_err("no match");
        assert_eq!(missing.to_string(), "Could not find exact match for edit:\nx");
    }

    #[test]
    fn matches_ignore_indentation_and_keep_it() {
        let content = "fn f() {\n    if x {\n        y();\n    }\n}\n";
        let edited = apply(content, "if x {\n  y();\n}", "if z {\n    w();\n}").expect("fits");
        assert_eq!(edited, "fn f() {\n    if z {\n      w();\n}\n}\n");
    }

    #[test]
    fn uniform_line_endings_are_kept() {
        assert!(ends_in_crlf("a\r\nb\r\n"));
        assert!(!ends_in_crlf("a\r\nb\n") && !ends_in_crlf("a\n") && !ends_in_crlf("a"));
    }

    #[test]
    fn fences_are_longer_than_runs_in_the_diff() {
        assert_eq!(fenced("+```\n"), "````diff\n+```\n````\n\n");
    }
}
