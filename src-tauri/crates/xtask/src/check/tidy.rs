//! Checks file headers, file lengths, unfinished work and machine-specific paths, which no other tool checks.

use crate::{parts, process, terminal};
use anyhow::{Context, bail};
use std::process::Command;

/// Number of lines from which a file is reported (`LONG`), and from which it is an error.
const LONG: usize = 400;
const TOO_LONG: usize = 600;

/// Words that mark unfinished work, assembled so that this file passes the check.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!("),
    concat!("unim", "plemented!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("#[ig", "nore"),
];

/// Checks every file that is committed or not ignored by git.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = parts::root();
    let mut list = Command::new("git");
    list.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let files = process::answer(&mut list).context("failed to list the files with `git`")?;
    let private_paths =
        [Some(root.display().to_string()), std::env::var("HOME").ok().filter(|home| home.len() > 6)];
    let mut problems = Vec::new();
    for file in files.lines() {
        // Binary and removed files are skipped.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        problems.extend(file_problems(file, &text).into_iter().map(|problem| format!("{file}: {problem}")));
        for path in private_paths.iter().flatten().filter(|path| text.contains(path.as_str())) {
            problems.push(format!("{file}: `{path}` is a path of this machine"));
        }
        if file.ends_with(".rs") && (LONG + 1..=TOO_LONG).contains(&text.lines().count()) {
            terminal::say(&format!("long file: {file} has {} lines", text.lines().count()))?;
        }
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Returns the problems of a file.
fn file_problems(file: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if file.ends_with(".rs") {
        if !text.starts_with("//!") {
            problems.push("missing `//!` line with the purpose of the file".to_owned());
        }
        if text.lines().count() > TOO_LONG {
            problems.push(format!("more than {TOO_LONG} lines"));
        }
    }
    if [".rs", ".js", ".toml", ".html", ".css"].iter().any(|ending| file.ends_with(ending)) {
        let words = UNFINISHED.iter().filter(|word| has_word(text, word));
        problems.extend(words.map(|word| format!("forbidden word `{word}`")));
    }
    if file.ends_with("package-lock.json") && text.contains("\"resolved\"") {
        problems.push("names its registry; use `omit-lockfile-registry-resolved`".to_owned());
    }
    if file.ends_with("Cargo.lock") {
        let from_git = text.lines().find(|line| line.starts_with("source = \"git+"));
        problems.extend(from_git.map(|line| format!("`{line}` is not a release")));
    }
    problems
}

/// Returns `true` if the text contains this whole word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|t| t.chars().next());
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        !(joins(before) || word.ends_with(char::is_alphanumeric) && joins(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_files_pass() {
        assert_eq!(file_problems("a.rs", "//! A.\nfn main() {}\n"), Vec::<String>::new());
        assert_eq!(file_problems("a.rs", concat!("//! XX", "XX is no word\n")), Vec::<String>::new());
        assert_eq!(file_problems("notes.md", "no header"), Vec::<String>::new());
        assert_eq!(file_problems("tests/package-lock.json", "{}"), Vec::<String>::new());
    }

    #[test]
    fn problems_are_reported() {
        assert_eq!(
            file_problems("a.rs", "fn main() {}"),
            ["missing `//!` line with the purpose of the file"]
        );
        let unfinished = format!("//! A.\n// {}\n", UNFINISHED[2]);
        assert_eq!(file_problems("a.rs", &unfinished), [format!("forbidden word `{}`", UNFINISHED[2])]);
        assert_eq!(file_problems("a.rs", &format!("//! A.\n{}", "\n".repeat(600))), ["more than 600 lines"]);
        assert_eq!(file_problems("package-lock.json", "{ \"resolved\": 1 }").len(), 1);
        assert_eq!(file_problems("Cargo.lock", "source = \"git+https://example.com\"").len(), 1);
    }
}
