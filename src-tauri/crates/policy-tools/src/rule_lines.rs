//! Line numbers of the rules in a policy file.
//!
//! - The text is parsed only once for any number of lookups.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// Index of the rules in a policy file.
#[derive(Debug)]
pub struct RuleLines<'a> {
    text: &'a str,
    rules: HashMap<String, &'a RawValue>,
    /// Byte offset at which each line starts.
    line_starts: Vec<usize>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    rules: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RuleName {
    name: String,
}

impl<'a> RuleLines<'a> {
    /// Indexes a policy file. The index is empty if the text is not a policy.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let rules = serde_json::from_str::<File<'a>>(text).map(|file| file.rules).unwrap_or_default();
        let name_and_rule =
            |rule: &'a RawValue| Some((serde_json::from_str::<RuleName>(rule.get()).ok()?.name, rule));
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            rules: rules.into_iter().filter_map(name_and_rule).collect(),
            line_starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// Returns the line number of a rule's field, given as a dotted path. If the field does not exist, returns the line
    /// number of its innermost existing parent.
    #[must_use]
    pub fn line(&self, rule: &str, field: &str) -> Option<usize> {
        let rule: &RawValue = self.rules.get(rule)?;
        let offset = find(rule, field).get().as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        Some(self.line_starts.partition_point(|start| *start <= offset))
    }
}

/// Returns the value of a field, given as a dotted path. If it does not exist, returns the innermost existing parent.
fn find<'a>(value: &'a RawValue, field: &str) -> &'a RawValue {
    let (name, rest) = field.split_once('.').unwrap_or((field, ""));
    let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(value.get()).ok();
    match fields.and_then(|mut fields| fields.remove(name)) {
        Some(found) if rest.is_empty() => found,
        Some(found) => find(found, rest),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_on_the_line_where_its_value_begins() {
        let text =
            "{ \"rules\": [ { \"name\": \"a\" },\n{\n\"name\": \"b\",\n\"if\": {\n\n\"tool\":\n[] } } ] }";
        let lines = RuleLines::parse(text);
        let line = |rule: &str, field: &str| lines.line(rule, field);
        assert_eq!([line("a", "name"), line("a", "if.tool"), line("c", "name")], [Some(1), Some(1), None]);
        assert_eq!([line("b", "name"), line("b", "if"), line("b", "if.tool")], [Some(3), Some(4), Some(7)]);
        assert_eq!([line("b", "if.paths.within"), line("b", "then")], [Some(4), Some(2)]);
        assert_eq!(RuleLines::parse("{").line("a", "name"), None);
    }
}
