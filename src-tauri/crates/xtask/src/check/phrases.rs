//! Checks that comments and texts are plain English by counting awkward phrases.
//!
//! - `phrases.txt` lists the phrases. Text in backticks is ignored.
//! - Each folder has a limit per 1000 lines. Folders that still exceed it have a higher ceiling in
//!   `phrase_ceilings.txt`, which must be lowered when the count decreases.

use crate::{parts, process};
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::process::Command;

/// Maximum number of hits per 1000 comment lines.
const COMMENTS: usize = 15;

/// Maximum number of hits per 1000 lines of documentation and window text.
const TEXTS: usize = 30;

/// Line count assumed for smaller folders, so that a single hit in a small folder is accepted.
const MIN_LINES: usize = 200;

/// Maximum difference between a ceiling and the actual rate.
const SLACK: usize = 5;

/// Numbers of lines and hits in a folder.
#[derive(Debug, Default)]
struct Tally {
    lines: usize,
    hits: Vec<String>,
}

impl Tally {
    /// Returns the number of hits per 1000 lines.
    fn rate(&self) -> usize {
        (self.hits.len() * 1000).div_ceil(self.lines.max(MIN_LINES))
    }
}

/// Checks every folder.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = parts::root();
    let mut list = Command::new("git");
    list.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let files = process::answer(&mut list).context("failed to list the files with `git`")?;
    let phrases = phrases(include_str!("phrases.txt"));
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for file in files.lines() {
        let Some(folder) = folder(file) else { continue };
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        count(file, &text, &phrases, tallies.entry(folder).or_default());
    }
    let problems = problems(&tallies, &ceilings(include_str!("phrase_ceilings.txt"))?);
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Parses the list of phrases and adds a space on each side.
fn phrases(list: &str) -> Vec<String> {
    list.lines().filter(|line| !line.starts_with('#')).map(|line| format!(" {line} ")).collect()
}

/// Parses the list of ceilings. Returns them keyed by folder.
fn ceilings(list: &str) -> anyhow::Result<BTreeMap<&str, usize>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| match line.split_once(' ') {
        Some((folder, ceiling)) => Ok((folder, ceiling.parse()?)),
        None => bail!("`phrase_ceilings.txt`: expected a folder and a number, found `{line}`"),
    });
    parsed.collect()
}

/// Returns the folder that a file counts towards, or `None` if the file contains no text written for this project.
fn folder(file: &str) -> Option<String> {
    let (path, extension) = file.rsplit_once('.')?;
    if !["rs", "js", "html", "md"].contains(&extension) || path.contains("/vendor/") {
        return None;
    }
    let mut names = path.split('/');
    Some(match (names.next()?, names.next(), names.next()) {
        ("src-tauri", Some("crates"), Some(name)) => format!("src-tauri/crates/{name}"),
        ("src-tauri", Some(name), Some(_)) => format!("src-tauri/{name}"),
        (top, Some(_), _) => top.to_owned(),
        (_, None, _) => "docs".to_owned(),
    })
}

/// Returns `true` if all lines in the folder are text for users.
fn is_text(folder: &str) -> bool {
    ["docs", "ui"].contains(&folder)
}

/// Returns the limit that applies to a folder without a ceiling.
fn limit(folder: &str) -> usize {
    if is_text(folder) { TEXTS } else { COMMENTS }
}

/// Adds the lines and hits of a file to a tally.
fn count(file: &str, text: &str, phrases: &[String], tally: &mut Tally) {
    let every_line = folder(file).is_some_and(|folder| is_text(&folder));
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || !(every_line || line.starts_with("//") || line.starts_with('*')) {
            continue;
        }
        tally.lines += 1;
        let words = words(line);
        if let Some(phrase) = phrases.iter().find(|phrase| words.contains(phrase.as_str())) {
            tally.hits.push(format!("  {file}:{number}: `{}`", phrase.trim()));
        }
    }
}

/// Returns the lower-case words of a line outside backticks, separated and surrounded by spaces.
fn words(line: &str) -> String {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" code ").to_lowercase();
    let words =
        plain.split(|char: char| !char.is_alphanumeric() && char != '\'').filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

/// Returns a problem for each folder above its limit or ceiling, and for each ceiling that is too high.
fn problems(tallies: &BTreeMap<String, Tally>, ceilings: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut problems = Vec::new();
    for (folder, tally) in tallies {
        let (rate, limit) = (tally.rate(), limit(folder));
        let ceiling = ceilings.get(folder.as_str()).copied();
        let most = ceiling.unwrap_or(limit);
        if rate > most {
            let hits = tally.hits.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
            problems.push(format!(
                "`{folder}` has {rate} awkward phrases per 1000 lines, more than {most}:\n{hits}"
            ));
        } else if ceiling.is_some() && rate <= limit {
            problems
                .push(format!("`{folder}` is below the limit; remove its line from `phrase_ceilings.txt`"));
        } else if most > rate + SLACK && ceiling.is_some() {
            problems.push(format!("lower the ceiling of `{folder}` in `phrase_ceilings.txt` to {rate}"));
        }
    }
    let unknown = ceilings.keys().filter(|folder| !tallies.contains_key(**folder));
    problems.extend(
        unknown.map(|folder| format!("`phrase_ceilings.txt` lists `{folder}`, which does not exist")),
    );
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(file: &str, text: &str) -> Tally {
        let mut tally = Tally::default();
        count(file, text, &phrases("# Comment.\nwhoever\nof what"), &mut tally);
        tally
    }

    #[test]
    fn counts_phrases_in_comments_outside_backticks() {
        let text = "/// Whoever asks.\n// A list of\n// whatever `of what` is.\nlet x = \"of what\";\n/// Of what?\n";
        let tally = tally("src-tauri/crates/a/src/b.rs", text);
        assert_eq!(tally.lines, 4);
        assert_eq!(
            tally.hits,
            ["  src-tauri/crates/a/src/b.rs:1: `whoever`", "  src-tauri/crates/a/src/b.rs:5: `of what`"]
        );
    }

    #[test]
    fn counts_every_line_of_documentation() {
        let tally = tally("docs/a.md", "Whoever.\n\nSomebody.\n");
        assert_eq!((tally.lines, tally.hits.len()), (2, 1));
    }

    #[test]
    fn files_belong_to_crates_and_top_level_folders() {
        let of = |file| folder(file).unwrap_or_default();
        assert_eq!(of("src-tauri/crates/a/src/b.rs"), "src-tauri/crates/a");
        assert_eq!(of("src-tauri/src/main.rs"), "src-tauri/src");
        assert_eq!(of("tests/system/a.rs"), "tests");
        assert_eq!(of("README.md"), "docs");
        assert_eq!(of("ui/style.css"), "");
    }

    #[test]
    fn ceilings_apply_and_must_be_lowered() {
        let hits = |count| Tally { lines: 1000, hits: vec![String::new(); count] };
        let of = |count, list| {
            problems(&BTreeMap::from([("a".to_owned(), hits(count))]), &ceilings(list).unwrap())
        };
        assert_eq!(of(15, ""), [""; 0]);
        assert_eq!(of(40, "a 42"), [""; 0]);
        assert!(of(16, "").concat().contains("`a` has 16 awkward phrases per 1000 lines, more than 15"));
        assert!(of(43, "a 42").concat().contains("more than 42"));
        assert_eq!(of(30, "a 42"), ["lower the ceiling of `a` in `phrase_ceilings.txt` to 30"]);
        assert_eq!(of(15, "a 42"), ["`a` is below the limit; remove its line from `phrase_ceilings.txt`"]);
        assert_eq!(of(0, "b 42"), ["`phrase_ceilings.txt` lists `b`, which does not exist"]);
    }
}
