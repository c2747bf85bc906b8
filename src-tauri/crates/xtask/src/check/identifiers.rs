//! Checks that definitions have names that an engineer can guess.
//!
//! - `identifiers.txt` lists names that say nothing about what they name, each with a ceiling: the number of
//!   definitions that still have it. The ceiling must be lowered when the number decreases.
//! - Definitions are types, functions, modules, constants and variables outside tests.

use super::tree::{Tree, Word};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;

/// Keywords followed by the defined name.
const DEFINING: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "let"];

/// Returns an error if a listed name has more definitions than its ceiling, or a ceiling is too high.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let problems = problems(trees, &ceilings(include_str!("identifiers.txt"))?);
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Parses the list of names. Returns the ceilings.
fn ceilings(list: &str) -> anyhow::Result<BTreeMap<&str, usize>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, ceiling) = line.split_once(' ').unwrap_or((line, "0"));
        let ceiling = ceiling.parse().with_context(|| format!("`identifiers.txt`: invalid line `{line}`"))?;
        Ok((name, ceiling))
    });
    parsed.collect()
}

fn problems(trees: &[Tree], ceilings: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<String>> = ceilings.keys().map(|name| (*name, Vec::new())).collect();
    for tree in trees {
        for (file, words) in tree.files() {
            for (name, line) in defined(words) {
                if let Some(places) = found.get_mut(name) {
                    places.push(format!("  {}:{line}", file.display()));
                }
            }
        }
        for path in tree.module_paths() {
            if let Some(places) = path.last().and_then(|name| found.get_mut(name.as_str())) {
                places.push(format!("  module `{}::{}`", tree.name, path.join("::")));
            }
        }
    }
    let describe = |(name, places): (&str, Vec<String>)| {
        let (count, ceiling) = (places.len(), ceilings.get(name).copied().unwrap_or_default());
        (count > ceiling)
            .then(|| {
                format!("`{name}` is defined {count} times, more than {ceiling}:\n{}", places.join("\n"))
            })
            .or_else(|| {
                (count < ceiling)
                    .then(|| format!("lower the ceiling of `{name}` in `identifiers.txt` to {count}"))
            })
    };
    found.into_iter().filter_map(describe).collect()
}

/// Returns the defined names in a file's tokens, with their lines. Of a pattern, only a single name counts.
fn defined(words: &[Word]) -> impl Iterator<Item = (&str, usize)> {
    words.iter().enumerate().filter_map(|(at, word)| {
        DEFINING.contains(&word.ident()?).then_some(())?;
        let mut names = words.iter().skip(at + 1).map_while(Word::ident);
        let name = names.find(|name| *name != "mut")?;
        Some((name, word.line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::tests::small;

    #[test]
    fn definitions_are_counted_and_uses_are_not() {
        let files = [
            (
                "lib.rs",
                "mod told; fn place() { let mut said = told::f(); let (a, place) = said; look(place) }",
            ),
            ("told.rs", "pub fn f() {} #[cfg(test)] mod tests { fn look() {} }"),
        ];
        let trees = [small(&files)];
        let check = |list: &str| problems(&trees, &ceilings(list).unwrap()).join("\n");
        assert_eq!(check("told 1\nplace 1\nsaid 1\nlook"), "");
        assert_eq!(check("said 2"), "lower the ceiling of `said` in `identifiers.txt` to 1");
        let several = check("told\nplace");
        assert!(several.starts_with("`place` is defined 1 times, more than 0:\n  "), "{several}");
        assert!(
            several.ends_with("`told` is defined 1 times, more than 0:\n  module `small::told`"),
            "{several}"
        );
        assert!(ceilings("told many").is_err());
    }
}
