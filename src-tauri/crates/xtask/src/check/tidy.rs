//! Checks that no other tool makes: headers, lengths, words that must not stay, and names of places that are nobody's
//! business.

use crate::{parts, process, terminal};
use anyhow::{Context, bail};
use std::process::Command;

/// Lines after which a file is worth a second look, and after which it is refused.
const LONG: usize = 400;
const TOO_LONG: usize = 600;

/// Words that say that something is not done. Put together here, so that this file may have them.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!("),
    concat!("unim", "plemented!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("#[ig", "nore"),
];

/// Looks at every file that is or could be committed.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = parts::root();
    let mut list = Command::new("git");
    list.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let files = process::answer(&mut list).context("`git` does not list the files")?;
    let places = [Some(root.display().to_string()), std::env::var("HOME").ok().filter(|home| home.len() > 6)];
    let mut problems = Vec::new();
    for file in files.lines() {
        // What is no text, or was just removed, has nothing to say.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        problems.extend(look(file, &text).into_iter().map(|problem| format!("{file}: {problem}")));
        for place in places.iter().flatten().filter(|place| text.contains(place.as_str())) {
            problems.push(format!("{file}: `{place}` is a place on this machine only"));
        }
        if file.ends_with(".rs") && (LONG + 1..=TOO_LONG).contains(&text.lines().count()) {
            terminal::say(&format!("worth a second look: {file} has {} lines", text.lines().count()))?;
        }
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// The problems of one file.
fn look(file: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if file.ends_with(".rs") {
        if !text.starts_with("//!") {
            problems.push("it does not begin with `//!` and what it is for".to_owned());
        }
        if text.lines().count() > TOO_LONG {
            problems.push(format!("it has more than {TOO_LONG} lines"));
        }
    }
    if [".rs", ".js", ".toml", ".html", ".css"].iter().any(|ending| file.ends_with(ending)) {
        let words = UNFINISHED.iter().filter(|word| has_word(text, word));
        problems.extend(words.map(|word| format!("`{word}` must not stay")));
    }
    if file.ends_with("package-lock.json") && text.contains("\"resolved\"") {
        problems.push("it names the registry it came from; use `omit-lockfile-registry-resolved`".to_owned());
    }
    if file.ends_with("Cargo.lock") {
        let from_git = text.lines().find(|line| line.starts_with("source = \"git+"));
        problems.extend(from_git.map(|line| format!("`{line}` is no release")));
    }
    problems
}

/// Returns `true` if the word stands there on its own, not inside a longer one.
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
    fn what_is_in_order_passes() {
        assert_eq!(look("a.rs", "//! A.\nfn main() {}\n"), Vec::<String>::new());
        assert_eq!(look("a.rs", concat!("//! XX", "XX is no word\n")), Vec::<String>::new());
        assert_eq!(look("notes.md", "no header"), Vec::<String>::new());
        assert_eq!(look("tests/package-lock.json", "{}"), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_is_named() {
        assert_eq!(look("a.rs", "fn main() {}"), ["it does not begin with `//!` and what it is for"]);
        let unfinished = format!("//! A.\n// {}\n", UNFINISHED[2]);
        assert_eq!(look("a.rs", &unfinished), [format!("`{}` must not stay", UNFINISHED[2])]);
        assert_eq!(look("a.rs", &format!("//! A.\n{}", "\n".repeat(600))), ["it has more than 600 lines"]);
        assert_eq!(look("package-lock.json", "{ \"resolved\": 1 }").len(), 1);
        assert_eq!(look("Cargo.lock", "source = \"git+https://example.com\"").len(), 1);
    }
}
