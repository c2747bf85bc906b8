//! Checks that functions return error types, which callers can distinguish, rather than strings.

use super::tree::{TokenKind, Tree, Word};
use crate::parts;
use anyhow::ensure;

/// Returns an error if a `Result` has `String` as its error type.
pub(crate) fn check(trees: &[Tree]) -> anyhow::Result<()> {
    let root = parts::root();
    let mut found = Vec::new();
    for (file, words) in trees.iter().flat_map(Tree::files) {
        let file = file.strip_prefix(&root).unwrap_or(file).display();
        found.extend(find_errors(words).into_iter().map(|line| format!("{file}:{line}")));
    }
    ensure!(
        found.is_empty(),
        "these `Result`s have `String` errors; use error types instead:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// Returns the line numbers at which a `Result` with a `String` error starts.
fn find_errors(words: &[Word]) -> Vec<usize> {
    let begins = words.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [name, open] if name.ident() == Some("Result") && open.is(&TokenKind::Punct('<')) => {
            Some((at, name.line))
        }
        _ => None,
    });
    begins
        .filter(|(at, _)| has_text_for_error(words.get(at + 2..).unwrap_or_default()))
        .map(|(_, line)| line)
        .collect()
}

/// Returns `true` if the second of the type arguments that start here is `String`.
fn has_text_for_error(words: &[Word]) -> bool {
    let (mut depth, mut commas, mut error) = (1_usize, 0, Vec::new());
    let mut is_arrow = false;
    for word in words {
        match word.kind {
            TokenKind::Punct('<') | TokenKind::Open(_) => depth += 1,
            TokenKind::Punct('>') if is_arrow => {}
            TokenKind::Punct('>') | TokenKind::Close(_) => depth -= 1,
            TokenKind::Punct(',') if depth == 1 => commas += 1,
            TokenKind::Punct(_) | TokenKind::Ident(_) | TokenKind::Literal => {}
        }
        if depth == 0 {
            break;
        }
        is_arrow = word.is(&TokenKind::Punct('-'));
        if commas == 1 {
            error.extend(word.ident());
        }
    }
    matches!(*error, ["String"] | [.., "string", "String"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tree::tests::small;

    fn lines(text: &str) -> Vec<usize> {
        small(&[("lib.rs", text)]).files().flat_map(|(_, words)| find_errors(words)).collect()
    }

    #[test]
    fn finds_string_errors() {
        assert_eq!(lines("fn a() -> Result<(), String> {}"), [1]);
        assert_eq!(lines("\ntype A = std::result::Result<Vec<(u8, u8)>, std::string::String>;"), [2]);
        assert_eq!(lines("struct A {\n a: Result<fn(u8) -> Option<u8>, String>,\n}"), [2]);
        assert_eq!(lines("fn a() -> Option<Result<Result<u8, String>, E>> {}"), [1]);
        assert_eq!(lines("fn a() -> Result<\n    u8,\n    String,\n> {}"), [1]);
    }

    #[test]
    fn ignores_other_strings_and_tests() {
        assert_eq!(lines("fn a() -> io::Result<String> {}"), [0; 0]);
        assert_eq!(lines("fn a() -> Result<BTreeMap<String, String>, E> {}"), [0; 0]);
        assert_eq!(lines("fn a() -> Result<String, Box<String>> {}"), [0; 0]);
        assert_eq!(lines("#[cfg(test)]\nmod tests { fn a() -> Result<(), String> {} }"), [0; 0]);
    }
}
