//! Expands braces in patterns: `{one,other}` and `{1..3}`.
//!
//! - The number and total size of the results are limited. Further results are dropped.

/// Maximum number of patterns to which one pattern expands.
const COUNT_LIMIT: usize = 2000;

/// Maximum total length of the resulting patterns in characters.
const SIZE_LIMIT: usize = 256 * 1024;

/// Maximum nesting depth of braces. Deeper braces are literal.
const DEPTH_LIMIT: usize = 32;

/// Expands a pattern into patterns without braces.
pub(super) fn expand(pattern: &str) -> Vec<String> {
    let characters: Vec<char> = pattern.chars().collect();
    expand_slice(&characters, 0)
}

fn expand_slice(pattern: &[char], depth: usize) -> Vec<String> {
    let mut results = vec![String::new()];
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        let set = if *first == '{' && depth < DEPTH_LIMIT { set(after, depth) } else { None };
        if let Some((choices, after)) = set {
            results = product(&results, &choices);
            rest = after;
            continue;
        }
        // A character after a backslash is literal and does not open a set.
        let taken = if *first == '\\' { 2 } else { 1 };
        let text: String = rest.iter().take(taken).collect();
        results.iter_mut().for_each(|result| result.push_str(&text));
        rest = rest.get(taken..).unwrap_or_default();
    }
    results
}

/// Parses a set after its opening brace. Returns its alternatives and the text after the closing brace.
fn set(inside: &[char], depth: usize) -> Option<(Vec<String>, &[char])> {
    let (parts, after) = split(inside)?;
    let deeper = depth.saturating_add(1);
    let choices = match parts.as_slice() {
        [single] => sequence(single).or_else(|| literal(single, deeper))?,
        parts => bounded(parts.iter().flat_map(|part| expand_slice(part, deeper))),
    };
    Some((choices, after))
}

/// Splits at commas outside nested braces. Also returns the text after the matching closing brace.
fn split(inside: &[char]) -> Option<(Vec<&[char]>, &[char])> {
    let (mut parts, mut start, mut open, mut escaped) = (Vec::new(), 0_usize, 0_usize, false);
    for (index, character) in inside.iter().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match character {
            '\\' => escaped = true,
            '{' => open = open.saturating_add(1),
            '}' if open == 0 => {
                parts.push(inside.get(start..index)?);
                return Some((parts, inside.get(index.saturating_add(1)..)?));
            }
            '}' => open = open.saturating_sub(1),
            ',' if open == 0 => {
                parts.push(inside.get(start..index)?);
                start = index.saturating_add(1);
            }
            _ => {}
        }
    }
    None
}

/// Handles braces around a single item. Expands sets inside the item, and keeps the outer braces as literal characters.
fn literal(single: &[char], depth: usize) -> Option<Vec<String>> {
    let inner = expand_slice(single, depth);
    (inner.len() > 1).then(|| inner.into_iter().map(|text| format!("{{{text}}}")).collect())
}

/// Expands a sequence such as `1..3`, `c..a` or `01..10..2`, or returns `None` if the text is not a sequence.
fn sequence(single: &[char]) -> Option<Vec<String>> {
    let text: String = single.iter().collect();
    let mut ends = text.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let step = usize::try_from(step).ok()?;
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let padded = [first, last].iter().any(|end| {
            let digits = end.trim_start_matches('-');
            digits.len() > 1 && digits.starts_with('0')
        });
        let width = if padded { first.len().max(last.len()) } else { 0 };
        return Some(numbers(from, to, step).map(|number| format!("{number:0width$}")).collect());
    }
    let (from, to) = (letter(first)?, letter(last)?);
    let letters = numbers(i64::from(from), i64::from(to), step);
    Some(
        letters.filter_map(|code| u8::try_from(code).ok()).map(|code| char::from(code).to_string()).collect(),
    )
}

fn letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    }
}

fn numbers(from: i64, to: i64, step: usize) -> impl Iterator<Item = i64> {
    let (low, high) = (from.min(to), from.max(to));
    let rising = (low..=high).step_by(step).take(COUNT_LIMIT).map(move |number| (from <= to, number));
    rising.map(move |(forward, number)| {
        // Steps count from the start of the sequence, even when it counts down.
        if forward { number } else { from.saturating_sub(number.saturating_sub(low)) }
    })
}

fn product(starts: &[String], ends: &[String]) -> Vec<String> {
    let all = starts.iter().flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")));
    bounded(all)
}

fn bounded(patterns: impl Iterator<Item = String>) -> Vec<String> {
    let mut size = 0_usize;
    let fits = |pattern: &String| {
        size = size.saturating_add(pattern.len());
        size <= SIZE_LIMIT
    };
    patterns.take(COUNT_LIMIT).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_expanded_as_in_a_shell() {
        for (pattern, expanded) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("{,a}", &["", "a"]),
            ("{a}", &["{a}"]),
            ("{a{b,c}}", &["{ab}", "{ac}"]),
            ("{a,b", &["{a,b"]),
            ("\\{a,b}", &["\\{a,b}"]),
            ("{1..3}", &["1", "2", "3"]),
            ("{08..10}", &["08", "09", "10"]),
            ("{3..1}", &["3", "2", "1"]),
            ("{a..e..2}", &["a", "c", "e"]),
            ("{}", &["{}"]),
        ] {
            assert_eq!(expand(pattern), expanded, "{pattern}");
        }
        assert_eq!(expand(&"{a,b}".repeat(64)).len(), COUNT_LIMIT);
    }
}
