//! Checks that each limit in the documentation matches the code.
//!
//! - `bounds.txt` lists the line of code that defines each limit. A size or time without an entry is an error, so the
//!   documentation contains no unchecked figures. Measurements belong on `docs/reference/benchmarks.md`.

use crate::parts;
use anyhow::{Context, bail};
use std::path::Path;

const BOUNDS: &str = include_str!("bounds.txt");

/// Pages on which every size and time needs an entry in `bounds.txt`.
const WHOLE: [&str; 6] = [
    "README.md",
    "docs/explanation/design-decisions.md",
    "docs/explanation/security.md",
    "docs/reference/files.md",
    "docs/reference/limits.md",
    "docs/reference/policy.md",
];

/// Units of sizes and times.
const UNITS: [&str; 12] =
    ["ms", "s", "second", "seconds", "minute", "minutes", "hours", "KiB", "MiB", "GiB", "MB", "GB"];

/// An entry of `bounds.txt`.
struct Bound<'a> {
    page: &'a str,
    words: &'a str,
    file: &'a str,
    code: &'a str,
}

/// Compares the pages with the code.
pub(crate) fn check() -> anyhow::Result<()> {
    let (root, bounds) = (parts::root(), list(BOUNDS)?);
    let page = |name: &str| {
        let text =
            std::fs::read_to_string(root.join(name)).with_context(|| format!("failed to read `{name}`"))?;
        anyhow::Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let mut problems = Vec::new();
    for bound in &bounds {
        problems.extend(bound_problems(bound, &page(bound.page)?, &root.join("src-tauri/crates")));
    }
    for name in WHOLE {
        let of_page = bounds.iter().filter(|bound| bound.page == name);
        let unknown = unknown(&page(name)?, of_page);
        problems.extend(unknown.into_iter().map(|figure| {
            format!("{name}: `{figure}` is not in `check/bounds.txt`; add its line of code there")
        }));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn list(text: &str) -> anyhow::Result<Vec<Bound<'_>>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let bound = |line| {
        let parts = str::split(line, " | ").collect::<Vec<_>>();
        let [page, words, file, code] = parts.as_slice() else {
            bail!("`bounds.txt`: expected four parts, found `{line}`")
        };
        Ok(Bound { page, words, file, code })
    };
    lines.map(bound).collect()
}

fn bound_problems(bound: &Bound<'_>, page: &str, crates: &Path) -> Vec<String> {
    let Bound { words, file, code, .. } = bound;
    let mut problems = Vec::new();
    if !page.contains(words) {
        problems.push(format!("{}: the page no longer says `{words}`, for `{code}` in {file}", bound.page));
    }
    if !std::fs::read_to_string(crates.join(file)).unwrap_or_default().contains(code) {
        problems.push(format!("{file}: the code no longer has `{code}`, for `{words}` in {}", bound.page));
    }
    problems
}

/// Returns the sizes and times of a page that have no entry.
fn unknown<'a>(page: &str, bounds: impl Iterator<Item = &'a Bound<'a>>) -> Vec<String> {
    let rest = bounds.fold(page.to_owned(), |rest, bound| rest.replace(bound.words, ""));
    let words = rest.split(' ').map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words: Vec<&str> = words.collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let pairs = words.iter().zip(words.iter().skip(1));
    let figures = pairs.filter(|(number, unit)| is_number(number) && UNITS.contains(unit));
    figures.map(|(number, unit)| format!("{number} {unit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_code_must_have_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rs"), "const MOST: usize = 12;\n").unwrap();
        let of = |line: &str| bound_problems(&list(line).unwrap()[0], "the first 12 lines", folder.path());
        assert_eq!(of("p.md | first 12 lines | a.rs | const MOST: usize = 12;"), [""; 0]);
        assert_eq!(
            of("p.md | first 12 lines | a.rs | const MOST: usize = 13;"),
            ["a.rs: the code no longer has `const MOST: usize = 13;`, for `first 12 lines` in p.md"]
        );
        assert_eq!(
            of("p.md | first 13 lines | a.rs | const MOST: usize = 12;"),
            ["p.md: the page no longer says `first 13 lines`, for `const MOST: usize = 12;` in a.rs"]
        );
    }

    #[test]
    fn reports_unlisted_sizes_and_times() {
        let bounds = list("p.md | within 5 seconds | a.rs | x").unwrap();
        assert_eq!(unknown("done within 5 seconds, of 16 MiB.", bounds.iter()), ["16 MiB"]);
        assert_eq!(unknown("done within 5 seconds, by 16 servers", bounds.iter()), [""; 0]);
    }
}
