//! Checks that the documentation matches the checkout.
//!
//! - Every link leads to an existing file and heading. Tests and metrics named on pages exist.
//! - Commands on pages exist. `cargo xtask` commands are parsed here, and `ironcurtain` commands by tests of the CLI.
//! - Every file or folder of the checkout that a page names in backticks exists.
//! - Only `docs/reference/benchmarks.md` contains measurements.
//! - Each picture is small and appears on a page. The book contains every page of `docs`.

use crate::desktop::{MAX_BYTES, PICTURES};
use crate::{arguments, parts, process};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The only page with measurements, updated by `cargo xtask bench --write`.
const FIGURES: &str = "docs/reference/benchmarks.md";

/// File that defines the metrics of `ironcurtain metrics`.
const METRICS: &str = "src-tauri/crates/services/src/metrics.rs";

/// The only page that may name removed files and commands.
const HISTORY: &str = "CHANGELOG.md";

/// Table of contents of the book.
const BOOK: &str = "docs/SUMMARY.md";

/// Page for new users, and its maximum number of lines.
const SHORT: (&str, usize) = ("README.md", 150);

/// Checks every page.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = parts::root();
    let list = |pattern: &str| {
        let mut list = Command::new("git");
        list.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard", pattern]);
        process::answer(&mut list).context("failed to list the files with `git`")
    };
    let mut names = BTreeSet::new();
    for file in list("*.rs")?.lines() {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        names.extend(text.lines().filter_map(function).map(str::to_owned));
    }
    let metrics = std::fs::read_to_string(root.join(METRICS)).context("failed to read the metrics")?;
    names.extend(metrics.split('"').map(str::to_owned));
    let all = list("*")?;
    let mut problems = Vec::new();
    let mut pages = String::new();
    for page in list("*.md")?.lines() {
        let Ok(text) = std::fs::read_to_string(root.join(page)) else { continue };
        let mut found = links(&root, page, &text);
        found.extend(commands(&text));
        if page != HISTORY {
            found.extend(tests(&text, &names));
            found.extend(files(&text, &all));
        }
        if page != FIGURES {
            found.extend(figures(&text));
        }
        pages.push_str(&text);
        if page == SHORT.0 && text.lines().count() > SHORT.1 {
            found.push(format!("it has more than {} lines", SHORT.1));
        }
        problems.extend(found.into_iter().map(|problem| format!("{page}: {problem}")));
    }
    let book = std::fs::read_to_string(root.join(BOOK)).with_context(|| format!("failed to read {BOOK}"))?;
    problems.extend(left_out(&all, &pages, &book));
    let pictures =
        std::fs::read_dir(root.join(PICTURES))?.filter_map(|picture| picture.ok()?.metadata().ok());
    if pictures.map(|picture| picture.len()).sum::<u64>() > MAX_BYTES {
        problems.push(format!("{PICTURES} has more than {MAX_BYTES} bytes"));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Returns the pictures that appear on no page, and the pages of `docs` that are missing from the book.
fn left_out(all: &str, pages: &str, book: &str) -> Vec<String> {
    let pictures = all.lines().filter(|file| file.starts_with(PICTURES)).filter(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        !pages.contains(&format!("pictures/{name})"))
    });
    let unread = all.lines().filter(|file| {
        file.strip_prefix("docs/").is_some_and(|page| {
            page.ends_with(".md") && *file != BOOK && !book.contains(&format!("({page})"))
        })
    });
    let unseen = pictures.map(|file| format!("no page shows `{file}`"));
    unseen.chain(unread.map(|file| format!("`{file}` is not in {BOOK}"))).collect()
}

/// Returns the name of the function that this line declares.
fn function(line: &str) -> Option<&str> {
    let words =
        line.trim_start().strip_prefix("fn ").or_else(|| line.trim_start().strip_prefix("async fn "))?;
    words.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next()
}

/// Returns the links on a page that lead to missing files or headings.
fn links(root: &Path, page: &str, text: &str) -> Vec<String> {
    let folder = root.join(page);
    let folder = folder.parent().unwrap_or(root);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let ours = targets.filter(|target| !target.contains("://"));
    ours.filter_map(|target| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { root.join(page) } else { folder.join(file) };
        if !file.exists() {
            return Some(format!("broken link `{target}`"));
        }
        let content = std::fs::read_to_string(&file).unwrap_or_default();
        let found = anchor.is_empty() || content.lines().filter_map(heading).any(|heading| heading == anchor);
        (!found).then(|| format!("broken link `{target}`: no such heading"))
    })
    .collect()
}

/// Returns the anchor that the site creates for a heading.
fn heading(line: &str) -> Option<String> {
    let title = line.starts_with('#').then(|| line.trim_start_matches('#').trim())?;
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

/// Returns the names in backticks that look like tests or metrics but do not exist in the code. Counters have the
/// suffix `_total`.
fn tests(text: &str, names: &BTreeSet<String>) -> Vec<String> {
    let is_test = |word: &&str| {
        word.matches('_').count() > 2
            && word.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let named = text.split('`').skip(1).step_by(2).filter(is_test);
    let is_there = |name: &&str| names.contains(name.strip_suffix("_total").unwrap_or(name));
    named.filter(|name| !is_there(name)).map(|name| format!("`{name}` does not exist")).collect()
}

/// Top-level folders whose paths are checked.
const FOLDERS: [&str; 5] = ["docs/", "tests/", "ui/", "icons/", "src-tauri/"];

/// Returns the paths in backticks that do not exist. A path can omit `src`, as in `crate/module.rs`.
fn files(text: &str, all: &str) -> Vec<String> {
    let named = text.split('`').skip(1).step_by(2).filter(|word| {
        let plain =
            word.contains('/') && !word.contains(|c: char| c.is_ascii_uppercase() || " *:$~|".contains(c));
        let ours =
            word.ends_with(".rs") || word.contains("/src/") || FOLDERS.iter().any(|f| word.starts_with(f));
        plain && ours && !word.starts_with('/')
    });
    let is_there = |word: &str| {
        let word = word.trim_end_matches('/');
        let (first, rest) = word.split_once('/').unwrap_or((word, ""));
        [word.to_owned(), format!("{first}/src/{rest}")].iter().any(|word| {
            let (inside, folder) = (format!("/{word}"), format!("/{word}/"));
            all.lines()
                .any(|file| format!("/{file}").ends_with(&inside) || format!("/{file}").contains(&folder))
        })
    };
    named.filter(|word| !is_there(word)).map(|word| format!("`{word}` does not exist")).collect()
}

/// Returns the `cargo xtask` commands that the parser rejects.
fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ "));
    let quoted = text.split('`').skip(1).step_by(2);
    let tasks = lines.chain(quoted).filter_map(|command| command.strip_prefix("cargo xtask "));
    let words = |task: &str| {
        task.split_whitespace().take_while(|word| *word != "#").map(str::to_owned).collect::<Vec<_>>()
    };
    // `[OPTION]` and `a|b` describe syntax, so they are skipped.
    let refused = tasks.filter(|task| !task.contains(['|', '[']) && arguments::read(words(task)).is_err());
    refused.map(|task| format!("unknown task `cargo xtask {task}`")).collect()
}

/// Returns the words that look like measurements.
fn figures(text: &str) -> Vec<String> {
    let units = ["us", "µs"];
    let pairs = text.split_whitespace().zip(text.split_whitespace().skip(1));
    let measured = pairs.filter(|(number, unit)| {
        let unit = unit.trim_end_matches(|c: char| !c.is_alphanumeric());
        units.contains(&unit) && number.chars().next().is_some_and(|c| c.is_ascii_digit())
    });
    measured
        .map(|(number, unit)| format!("`{number} {unit}` is a measurement; it belongs in {FIGURES}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn links_must_lead_to_files_and_headings() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.md"), "# A title, of sorts\n").unwrap();
        let of = |text: &str| links(folder.path(), "a.md", text);
        assert_eq!(of("[b](b.md), [title](b.md#a-title-of-sorts), [away](https://example.com/x)"), NONE);
        assert_eq!(of("[c](c.md)"), ["broken link `c.md`"]);
        assert_eq!(of("[b](b.md#another)"), ["broken link `b.md#another`: no such heading"]);
    }

    #[test]
    fn named_tests_must_exist() {
        let names = BTreeSet::from([function("    fn once_is_really_once() {").unwrap().to_owned()]);
        assert_eq!(tests("`once_is_really_once`, `some_name` and `cargo`", &names), NONE);
        assert_eq!(tests("`twice_is_really_once`", &names), ["`twice_is_really_once` does not exist"]);
    }

    #[test]
    fn named_metrics_must_exist() {
        let names = BTreeSet::from(["server_restarts_of_all".to_owned()]);
        assert_eq!(tests("`server_restarts_of_all_total`", &names), NONE);
        assert_eq!(
            tests("`server_starts_of_all_total`", &names),
            ["`server_starts_of_all_total` does not exist"]
        );
    }

    #[test]
    fn named_files_must_exist() {
        let all = "crates/consent/src/broker.rs\ntests/system/main.rs\n";
        let there = "`consent/src/broker.rs`, `broker.rs`, `consent/broker.rs`, `tests/system/`";
        assert_eq!(files(&format!("{there}, `sessions/ID/x.json`, `/etc/hosts`, `a/b`"), all), NONE);
        assert_eq!(files("`consent/build.rs`", all), ["`consent/build.rs` does not exist"]);
        assert_eq!(files("`tests/gone`", all), ["`tests/gone` does not exist"]);
    }

    #[test]
    fn named_tasks_must_exist() {
        assert_eq!(commands("$ cargo xtask test --fast   # all\n`cargo xtask run`, `cargo build`"), NONE);
        assert_eq!(commands("$ cargo xtask tset\n"), ["unknown task `cargo xtask tset`"]);
    }

    #[test]
    fn pictures_must_be_shown_and_pages_listed() {
        let all = "docs/SUMMARY.md\ndocs/guide/a.md\ndocs/pictures/x.png\nREADME.md\n";
        assert_eq!(left_out(all, "![x](../pictures/x.png)", "- [A](guide/a.md)"), NONE);
        let problems = ["no page shows `docs/pictures/x.png`", "`docs/guide/a.md` is not in docs/SUMMARY.md"];
        assert_eq!(left_out(all, "", ""), problems);
    }

    #[test]
    fn measurements_belong_on_their_page() {
        assert_eq!(figures("within 100 ms, which is a promise"), NONE);
        assert_eq!(
            figures("takes 2.2 us."),
            ["`2.2 us.` is a measurement; it belongs in docs/reference/benchmarks.md"]
        );
    }
}
