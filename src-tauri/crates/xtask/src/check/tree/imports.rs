//! Parses a module's imports, which are the names that `use` introduces.

use super::words::{self, TokenKind, Word};

/// Name introduced by `use`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// Name in the importing module, or `*` for a glob.
    pub(super) name: String,
    /// Path of the imported item.
    pub(super) path: Vec<String>,
    /// `true` if the import is a re-export.
    pub(super) public: bool,
    pub(super) line: usize,
}

/// Returns the imports in these tokens.
pub(super) fn read(words: &[Word]) -> Vec<Import> {
    let mut imports = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.ident() == Some("use") {
            let public = is_public(words.get(..at).unwrap_or_default());
            read_tree(words, at + 1, &[], &mut imports);
            for import in imports.iter_mut().filter(|import| import.line == 0) {
                (import.public, import.line) = (public, word.line);
            }
        }
    }
    imports
}

/// Returns `true` if the tokens before an item end with `pub` or `pub(...)`.
fn is_public(before: &[Word]) -> bool {
    match before {
        [.., word] if word.ident() == Some("pub") => true,
        [.., word] if word.is(&TokenKind::Close(')')) => {
            let open = before.iter().rposition(|word| word.is(&TokenKind::Open('(')));
            let word = open.and_then(|open| before.get(open.checked_sub(1)?));
            word.and_then(Word::ident) == Some("pub")
        }
        _ => false,
    }
}

/// Parses one branch of a `use` tree. Returns the index of the token after it.
fn read_tree(words: &[Word], at: usize, above: &[String], imports: &mut Vec<Import>) -> usize {
    let at = if words::is_joint(words, at) { at + 2 } else { at };
    let kind = words.get(at).map(|word| &word.kind);
    if kind == Some(&TokenKind::Open('{')) {
        let mut at = at + 1;
        while words.get(at).is_some_and(|word| !word.is(&TokenKind::Close('}'))) {
            at = read_tree(words, at, above, imports);
            at += usize::from(words.get(at).is_some_and(|word| word.is(&TokenKind::Punct(','))));
        }
        return at + 1;
    }
    if kind == Some(&TokenKind::Punct('*')) {
        imports.push(import("*", above.to_vec()));
        return at + 1;
    }
    let segments = words::path_at(words, at);
    if segments.is_empty() {
        // Invalid after `use`. Parsing continues with the next token as a separate branch.
        return at + 1;
    }
    let end = at + segments.len() * 3 - 2;
    let mut path = [above, &segments].concat();
    if words::is_joint(words, end) {
        return read_tree(words, end, &path, imports);
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let renamed = words.get(end).and_then(Word::ident) == Some("as");
    let alias = words.get(end + 1).and_then(Word::ident).filter(|_| renamed);
    let name = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    imports.push(import(&name, path));
    if renamed { end + 2 } else { end }
}

fn import(name: &str, path: Vec<String>) -> Import {
    Import { name: name.to_owned(), path, public: false, line: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let shown = |import: Import| {
            let public = if import.public { "pub " } else { "" };
            format!("{public}{} = {}", import.name, import.path.join("::"))
        };
        read(&words::outside_tests(text).unwrap()).into_iter().map(shown).collect()
    }

    #[test]
    fn parses_every_form_of_use() {
        assert_eq!(imports("use crate::a::B;"), ["B = crate::a::B"]);
        assert_eq!(
            imports("pub(crate) use a::{self, b::{C as D, *}, e};"),
            ["pub a = a", "pub D = a::b::C", "pub * = a::b", "pub e = a::e"]
        );
        assert_eq!(
            imports("use super::*; pub use ::x::y; fn f() { use z::W; }"),
            ["* = super", "pub y = x::y", "W = z::W"]
        );
    }
}
