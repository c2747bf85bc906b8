//! Pattern for a single name: `*`, `?`, `[classes]`, `@(group|list)` and `+(repeats)`.
//!
//! - Matching tracks all reachable positions in the name instead of backtracking. Nested groups still multiply the
//!   work, so the number of steps per match is limited. A pattern that exceeds the limit does not match.

use std::cell::Cell;

/// Maximum nesting depth of groups. Deeper groups are literal.
const DEPTH_LIMIT: usize = 8;

/// Maximum number of steps per match.
const STEP_LIMIT: usize = 20_000;

/// Membership test of a character class such as `[:digit:]`.
type Set = fn(char) -> bool;

/// Parsed pattern for a single name.
pub(super) struct Segment(Vec<Token>);

enum Token {
    Character(char),
    AnyOne,
    AnyMany,
    Class { negated: bool, ranges: Vec<(char, char)>, sets: Vec<Set> },
    Group { kind: char, alternatives: Vec<Vec<Token>> },
}

impl Segment {
    pub(super) fn new(pattern: &str) -> Self {
        let characters: Vec<char> = pattern.chars().collect();
        Self(tokens(&characters, 0))
    }

    pub(super) fn matches(&self, name: &[char]) -> bool {
        let mut positions = vec![false; name.len().saturating_add(1)];
        if let Some(start) = positions.first_mut() {
            *start = true;
        }
        let matcher = Matcher { name, steps: Cell::new(STEP_LIMIT) };
        let matched = matcher.reachable(&self.0, positions).last().copied().unwrap_or_default();
        matched && matcher.steps.get() > 0
    }
}

fn tokens(mut pattern: &[char], depth: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((first, rest)) = pattern.split_first() {
        let group = if depth < DEPTH_LIMIT { group(*first, rest, depth) } else { None };
        let class = if *first == '[' { class(rest) } else { None };
        let (token, rest) = match (group, class) {
            (Some(found), _) | (None, Some(found)) => found,
            (None, None) => match (first, rest.split_first()) {
                ('*', _) => (Token::AnyMany, rest),
                ('?', _) => (Token::AnyOne, rest),
                ('\\', Some((escaped, rest))) => (Token::Character(*escaped), rest),
                _ => (Token::Character(*first), rest),
            },
        };
        tokens.push(token);
        pattern = rest;
    }
    tokens
}

/// Parses a group `kind(one|other)` after its first character, or returns `None` if it is not a group.
fn group(kind: char, rest: &[char], depth: usize) -> Option<(Token, &[char])> {
    if !"?*+@!".contains(kind) {
        return None;
    }
    let inner = rest.strip_prefix(&['('])?;
    let (mut open, mut start, mut escaped) = (0_usize, 0_usize, false);
    let mut alternatives = Vec::new();
    for (index, character) in inner.iter().enumerate() {
        let ends = !escaped && open == 0 && matches!(character, '|' | ')');
        if ends {
            alternatives.push(tokens(inner.get(start..index)?, depth.saturating_add(1)));
            start = index.saturating_add(1);
            if *character == ')' {
                return Some((Token::Group { kind, alternatives }, inner.get(start..)?));
            }
        }
        match character {
            '(' if !escaped => open = open.saturating_add(1),
            ')' if !escaped => open = open.saturating_sub(1),
            _ => {}
        }
        escaped = !escaped && *character == '\\';
    }
    None
}

/// Parses a class `[...]` after its opening bracket, or returns `None` if it is unterminated.
fn class(inner: &[char]) -> Option<(Token, &[char])> {
    let negated = matches!(inner.first(), Some('!' | '^'));
    let mut rest = if negated { inner.get(1..)? } else { inner };
    let (mut ranges, mut sets, mut first) = (Vec::new(), Vec::new(), true);
    loop {
        if let Some(after) = rest.strip_prefix(&[']'])
            && !first
        {
            return Some((Token::Class { negated, ranges, sets }, after));
        }
        first = false;
        if let Some((set, after)) = named_set(rest) {
            sets.push(set);
            rest = after;
            continue;
        }
        let (low, after) = class_character(rest)?;
        rest = after;
        let high = match after.strip_prefix(&['-']) {
            Some(after) if !after.starts_with(&[']']) => {
                let (high, after) = class_character(after)?;
                rest = after;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

fn class_character(rest: &[char]) -> Option<(char, &[char])> {
    match rest {
        ['\\', character, rest @ ..] | [character, rest @ ..] => Some((*character, rest)),
        [] => None,
    }
}

fn named_set(rest: &[char]) -> Option<(Set, &[char])> {
    let named: [(&str, Set); 14] = [
        ("[:alnum:]", char::is_alphanumeric),
        ("[:alpha:]", char::is_alphabetic),
        ("[:ascii:]", |c| c.is_ascii()),
        ("[:blank:]", |c| c == '\t' || (c.is_whitespace() && !c.is_control())),
        ("[:cntrl:]", char::is_control),
        ("[:digit:]", char::is_numeric),
        ("[:graph:]", |c| !c.is_whitespace() && !c.is_control()),
        ("[:lower:]", char::is_lowercase),
        ("[:print:]", |c| !c.is_control()),
        ("[:punct:]", |c| c.is_ascii_punctuation()),
        ("[:space:]", char::is_whitespace),
        ("[:upper:]", char::is_uppercase),
        ("[:word:]", |c| c.is_alphanumeric() || c == '_'),
        ("[:xdigit:]", |c| c.is_ascii_hexdigit()),
    ];
    named.into_iter().find_map(|(name, set)| {
        let length = name.len();
        let matches = rest.get(..length)?.iter().copied().eq(name.chars());
        matches.then(|| rest.get(length..).map(|rest| (set, rest)))?
    })
}

/// State while matching one name.
struct Matcher<'a> {
    name: &'a [char],
    steps: Cell<usize>,
}

impl Matcher<'_> {
    /// Returns the positions that the tokens can reach from the given positions in the name.
    fn reachable(&self, tokens: &[Token], mut positions: Vec<bool>) -> Vec<bool> {
        for token in tokens {
            match self.steps.get().checked_sub(1) {
                Some(left) => self.steps.set(left),
                None => return vec![false; positions.len()],
            }
            positions = match token {
                Token::Character(wanted) => self.advance(&positions, |character| character == *wanted),
                Token::AnyOne => self.advance(&positions, |_| true),
                Token::Class { negated, ranges, sets } => self.advance(&positions, |character| {
                    let listed = ranges.iter().any(|(low, high)| (*low..=*high).contains(&character));
                    (listed || sets.iter().any(|set| set(character))) != *negated
                }),
                Token::AnyMany => all_after(&positions),
                Token::Group { kind, alternatives } => self.group(*kind, alternatives, positions),
            };
        }
        positions
    }

    fn group(&self, kind: char, alternatives: &[Vec<Token>], positions: Vec<bool>) -> Vec<bool> {
        match kind {
            '@' => self.match_once(alternatives, &positions),
            '?' => union(&positions, &self.match_once(alternatives, &positions)),
            '!' => self.match_except(alternatives, &positions),
            _ => {
                let mut reached =
                    if kind == '*' { positions } else { self.match_once(alternatives, &positions) };
                loop {
                    let further = union(&reached, &self.match_once(alternatives, &reached));
                    if further == reached {
                        return reached;
                    }
                    reached = further;
                }
            }
        }
    }

    fn match_once(&self, alternatives: &[Vec<Token>], positions: &[bool]) -> Vec<bool> {
        let ends = alternatives.iter().map(|tokens| self.reachable(tokens, positions.to_vec()));
        ends.fold(vec![false; positions.len()], |all, ends| union(&all, &ends))
    }

    /// Returns all positions at or after each given position, except those that an alternative reaches from it.
    fn match_except(&self, alternatives: &[Vec<Token>], positions: &[bool]) -> Vec<bool> {
        let mut all = vec![false; positions.len()];
        for (index, _) in positions.iter().enumerate().filter(|(_, position)| **position) {
            let mut from = vec![false; positions.len()];
            if let Some(from) = from.get_mut(index) {
                *from = true;
            }
            let excluded = self.match_once(alternatives, &from);
            let ends = all_after(&from).into_iter().zip(excluded);
            let ends: Vec<bool> = ends.map(|(reached, excluded)| reached && !excluded).collect();
            all = union(&all, &ends);
        }
        all
    }

    fn advance(&self, positions: &[bool], accepts: impl Fn(char) -> bool) -> Vec<bool> {
        let advanced =
            positions.iter().zip(self.name).map(|(position, character)| *position && accepts(*character));
        std::iter::once(false).chain(advanced).collect()
    }
}

fn all_after(positions: &[bool]) -> Vec<bool> {
    let mut reached = false;
    let after = positions.iter().map(|position| {
        reached |= *position;
        reached
    });
    after.collect()
}

fn union(left: &[bool], right: &[bool]) -> Vec<bool> {
    left.iter().zip(right).map(|(left, right)| *left || *right).collect()
}
