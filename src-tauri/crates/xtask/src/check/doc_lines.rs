//! Checks that doc comments start with a subject or verb: "Returns the grants", not "What ...".
//!
//! - Files with `clap` arguments are exempt, because their doc comments are help texts.

use crate::{parts, process};
use anyhow::{Context, ensure};
use std::process::Command;

/// Words that no doc comment may start with.
const REFUSED: [&str; 4] = ["What", "Whether", "Where", "How"];

/// Checks every Rust file.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = parts::root();
    let mut list = Command::new("git");
    list.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]);
    let files = process::answer(&mut list).context("failed to list the files with `git`")?;
    let mut found = Vec::new();
    for file in files.lines() {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        if !text.contains("clap::") {
            let refused = first_words(&text).into_iter().filter(|(_, word)| REFUSED.contains(word));
            found.extend(refused.map(|(number, word)| format!("{file}:{number}: `{word}`")));
        }
    }
    ensure!(found.is_empty(), "first lines that do not start with a subject or verb:\n{}", found.join("\n"));
    Ok(())
}

/// Returns the first word of each doc comment, with its line number.
fn first_words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim_start)) {
        let content = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        if let Some(content) = content.filter(|_| !inside) {
            words.extend(content.split_whitespace().next().map(|word| (number, word)));
        }
        inside = content.is_some();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_first_line_of_a_block_counts() {
        let text = "//! Head.\n//!\n//! How more.\nfn a() {}\n\n    /// What it does\n    /// Where it goes\n    b();\n/// The c.\n";
        assert_eq!(first_words(text), [(1, "Head."), (3, "How"), (6, "What"), (9, "The")]);
    }
}
