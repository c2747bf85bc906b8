//! Splits a file into tokens, without comments and test code.

use anyhow::anyhow;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Token of a source file. Brackets are tokens too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) kind: TokenKind,
    pub(crate) line: usize,
}

/// Kind of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Ident(String),
    Punct(char),
    Open(char),
    Close(char),
    /// A string, number or character.
    Literal,
}

/// Module declared in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) name: String,
    /// Tokens of an inline module, or `None` for a module in its own file.
    pub(super) words: Option<Vec<Word>>,
}

/// Keywords followed by the name of the item that they define.
const DEFINING: [&str; 9] =
    ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];

const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

impl Word {
    pub(crate) fn ident(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Ident(name) => Some(name),
            TokenKind::Punct(_) | TokenKind::Open(_) | TokenKind::Close(_) | TokenKind::Literal => None,
        }
    }

    pub(crate) fn is(&self, kind: &TokenKind) -> bool {
        self.kind == *kind
    }
}

/// Returns the tokens of a file that are compiled outside tests.
pub(super) fn outside_tests(text: &str) -> anyhow::Result<Vec<Word>> {
    let stream: TokenStream =
        text.parse().map_err(|problem| anyhow!("failed to parse as Rust: {problem}"))?;
    let mut words = Vec::new();
    flatten(stream, &mut words);
    Ok(words)
}

/// Removes module declarations from the tokens. Returns the other tokens and the declared modules.
pub(super) fn without_modules(words: Vec<Word>) -> (Vec<Word>, Vec<Declared>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let name = words.get(at + 1).and_then(Word::ident);
        let (Some("mod"), Some(name)) = (word.ident(), name) else {
            kept.push(word.clone());
            at += 1;
            continue;
        };
        let body = at + 2;
        let end = closing(&words, body);
        let inside = end.and_then(|end| words.get(body + 1..end)).map(<[Word]>::to_vec);
        at = end.unwrap_or(body) + 1;
        modules.push(Declared { name: name.to_owned(), words: inside });
    }
    (kept, modules)
}

/// Returns the paths of two or more segments outside `use`, with their lines.
pub(super) fn paths(words: &[Word]) -> Vec<(Vec<String>, usize)> {
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.ident() {
            Some("use") => at += words.iter().skip(at).take_while(|w| !w.is(&TokenKind::Punct(';'))).count(),
            // `pub(in some::path)` limits visibility and imports nothing.
            Some("pub") => at = closing(words, at + 1).unwrap_or(at) + 1,
            Some(_) => {
                let path = path_at(words, at);
                at += path.len() * 3 - 2;
                if path.len() > 1 {
                    paths.push((path, word.line));
                }
            }
            None => at += 1,
        }
    }
    paths
}

/// Returns the path at this index: identifiers separated by `::`.
pub(super) fn path_at(words: &[Word], mut at: usize) -> Vec<String> {
    let mut path = Vec::new();
    while let Some(name) = words.get(at).and_then(Word::ident) {
        path.push(name.to_owned());
        if !is_joint(words, at + 1) {
            break;
        }
        at += 3;
    }
    path
}

/// Returns `true` if `::` is at this index.
pub(super) fn is_joint(words: &[Word], at: usize) -> bool {
    let colon = |at: usize| words.get(at).is_some_and(|word| word.is(&TokenKind::Punct(':')));
    colon(at) && colon(at + 1)
}

/// Returns `true` if the name occurs as an identifier outside `use`.
pub(super) fn has_ident(words: &[Word], name: &str) -> bool {
    let mut used = false;
    words.iter().any(|word| {
        used = word.ident() == Some("use") || used && !word.is(&TokenKind::Punct(';'));
        !used && word.ident() == Some(name)
    })
}

/// Returns `true` if the tokens define an item with this name.
pub(super) fn defines(words: &[Word], name: &str) -> bool {
    let named = |word: &Word| word.ident() == Some(name);
    words.windows(2).any(|pair| match pair {
        [before, word] => named(word) && before.ident().is_some_and(|before| DEFINING.contains(&before)),
        _ => false,
    })
}

/// Returns the names of the top-level types that are plain `pub`.
pub(super) fn public_types(words: &[Word]) -> Vec<&str> {
    let (mut types, mut depth) = (Vec::new(), 0_usize);
    for (at, word) in words.iter().enumerate() {
        match &word.kind {
            TokenKind::Open(_) => depth += 1,
            TokenKind::Close(_) => depth = depth.saturating_sub(1),
            TokenKind::Ident(first) if first == "pub" && depth == 0 => {
                let kind = words.get(at + 1).and_then(Word::ident);
                let name = words.get(at + 2).and_then(Word::ident);
                types.extend(name.filter(|_| kind.is_some_and(|kind| TYPES.contains(&kind))));
            }
            TokenKind::Ident(_) | TokenKind::Punct(_) | TokenKind::Literal => {}
        }
    }
    types
}

/// Returns the index of the bracket that closes the bracket at `at`.
pub(super) fn closing(words: &[Word], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, word) in words.iter().enumerate().skip(at) {
        match word.kind {
            TokenKind::Open(_) => depth += 1,
            TokenKind::Close(_) => depth = depth.checked_sub(1)?,
            TokenKind::Ident(_) | TokenKind::Punct(_) | TokenKind::Literal => {}
        }
        if depth == 0 {
            return (index > at).then_some(index);
        }
    }
    None
}

fn flatten(stream: TokenStream, words: &mut Vec<Word>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |kind| words.push(Word { kind, line });
        match tree {
            TokenTree::Ident(ident) => push(TokenKind::Ident(ident.to_string())),
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                // An outer or inner attribute, such as a doc comment. If it limits an item to tests, that item is
                // removed too.
                trees.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                let attribute = trees.next_if(|next| matches!(next, TokenTree::Group(_)));
                if attribute.is_some_and(|attribute| is_for_tests(&attribute)) {
                    skip_item(&mut trees);
                }
            }
            TokenTree::Punct(punct) => push(TokenKind::Punct(punct.as_char())),
            TokenTree::Literal(_) => push(TokenKind::Literal),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ('(', ')'),
                    Delimiter::Bracket => ('[', ']'),
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::None => (' ', ' '),
                };
                push(TokenKind::Open(open));
                let end = group.span_close().start().line;
                flatten(group.stream(), words);
                words.push(Word { kind: TokenKind::Close(close), line: end });
            }
        }
    }
}

/// Returns `true` for `[cfg(test)]` and `[cfg(all(test, ...))]`.
fn is_for_tests(attribute: &TokenTree) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

fn skip_item(trees: &mut impl Iterator<Item = TokenTree>) {
    let mut import = false;
    for tree in trees {
        match tree {
            TokenTree::Ident(word) => import |= word == "use",
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !import => return,
            TokenTree::Punct(_) | TokenTree::Group(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idents(text: &str) -> Vec<String> {
        outside_tests(text).unwrap().iter().filter_map(Word::ident).map(str::to_owned).collect()
    }

    #[test]
    fn skips_comments_and_tests() {
        assert_eq!(idents("//! [`crate::a`]\n/// b\nfn c() { \"crate::d\"; /* e */ }"), ["fn", "c"]);
        assert_eq!(idents("#[cfg(test)] mod tests { use a; } fn b() {}"), ["fn", "b"]);
        assert_eq!(idents("#[cfg(test)] use a::{b, c}; struct D;"), ["struct", "D"]);
        assert_eq!(
            idents("#[cfg(all(test, unix))] #[must_use] fn a() {} #[cfg(unix)] fn b() {}"),
            ["fn", "b"]
        );
        assert_eq!(idents("#[cfg(not(test))] fn a() {}"), ["fn", "a"]);
    }

    #[test]
    fn finds_paths_outside_use() {
        let words = outside_tests("use a::b;\npub(in c::d) fn e() { f!(g::h, &i::j::k::<l::M>()) }").unwrap();
        let found: Vec<_> = paths(&words).into_iter().map(|(path, line)| (path.join("::"), line)).collect();
        let expected = [("g::h", 2), ("i::j::k", 2), ("l::M", 2)].map(|(path, line)| (path.to_owned(), line));
        assert_eq!(found, expected);
    }

    #[test]
    fn separates_modules_from_other_items() {
        let words = outside_tests("mod a; struct B; pub mod c { fn d() {} } fn e() {}").unwrap();
        let (kept, modules) = without_modules(words);
        assert!(defines(&kept, "B") && defines(&kept, "e") && !defines(&kept, "d"));
        let [a, c] = modules.as_slice() else { panic!("two modules: {modules:?}") };
        assert_eq!((a.name.as_str(), &a.words), ("a", &None));
        assert!(c.name == "c" && defines(c.words.as_ref().unwrap(), "d"));
    }
}
