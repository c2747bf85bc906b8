//! Checks that definitions have names that an engineer can guess.
//!
//! - `identifiers.txt` lists names that do not say what they name.
//! - Definitions are types, functions, modules, constants and variables outside tests.

use super::tree::{Tree, Word};
use anyhow::ensure;

/// Keywords followed by the defined name.
const DEFINING: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "let"];

/// Returns an error if a definition has a listed name.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let problems = problems(trees, include_str!("identifiers.txt"));
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn problems(trees: &[Tree], list: &str) -> Vec<String> {
    let refused: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let mut problems = Vec::new();
    for tree in trees {
        for (file, words) in tree.files() {
            let found = defined(words).filter(|(name, _)| refused.contains(name));
            problems.extend(found.map(|(name, line)| format!("{}:{line}: rename `{name}`", file.display())));
        }
        let modules =
            tree.module_paths().filter(|path| path.last().is_some_and(|n| refused.contains(&n.as_str())));
        problems
            .extend(modules.map(|path| format!("rename the module `{}::{}`", tree.name, path.join("::"))));
    }
    problems
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
    fn definitions_are_reported_and_uses_are_not() {
        let files = [
            ("lib.rs", "mod told;\nfn place() { let mut said = told::f(); let (a, there) = said; look(a) }"),
            ("told.rs", "pub fn f() {} #[cfg(test)] mod tests { fn look() {} }"),
        ];
        let found = problems(&[small(&files)], "# Names\ntold\nplace\nsaid\nthere\nlook");
        let ends = ["lib.rs:2: rename `place`", "lib.rs:2: rename `said`", "rename the module `small::told`"];
        assert_eq!(found.len(), ends.len(), "{found:?}");
        assert!(found.iter().zip(ends).all(|(problem, end)| problem.ends_with(end)), "{found:?}");
    }
}
