//! Places in a JSON document, and the lines they are on.
//!
//! - A place costs nothing until it is asked for: it is walked to again when something is wrong there.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// A place in a value. Written dotted: `if.lists[0].roles`.
#[derive(Clone, Copy)]
pub(crate) enum JsonLocation<'a> {
    /// The value itself.
    Whole,
    /// A field of what is at a place.
    Field(&'a JsonLocation<'a>, &'a str),
    /// An item of the list that is at a place.
    Item(&'a JsonLocation<'a>, usize),
}

impl JsonLocation<'_> {
    /// Goes down these fields and looks there.
    pub(crate) fn follow<R>(self, way: &[&str], look: impl FnOnce(JsonLocation<'_>) -> R) -> R {
        match way.split_first() {
            None => look(self),
            Some((name, rest)) => JsonLocation::Field(&self, name).follow(rest, look),
        }
    }

    /// The value that stands there, or the innermost one around it when there is none.
    pub(crate) fn find(self, root: &RawValue) -> &RawValue {
        match self {
            Self::Whole => root,
            Self::Field(above, name) => {
                let above = above.find(root);
                let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(above.get()).ok();
                fields.and_then(|mut fields| fields.remove(name)).unwrap_or(above)
            }
            Self::Item(above, index) => {
                let above = above.find(root);
                let items: Option<Vec<&RawValue>> = serde_json::from_str(above.get()).ok();
                items.and_then(|items| items.get(index).copied()).unwrap_or(above)
            }
        }
    }
}

impl fmt::Display for JsonLocation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Field(Self::Whole, name) => formatter.write_str(name),
            Self::Field(above, name) => write!(formatter, "{above}.{name}"),
            Self::Item(above, index) => write!(formatter, "{above}[{index}]"),
        }
    }
}

/// A file that is being read.
#[derive(Clone, Copy)]
pub(crate) struct SourceFile<'a> {
    /// Its name.
    pub(crate) file: &'a str,
    /// Its content.
    pub(crate) text: &'a str,
}

impl SourceFile<'_> {
    /// The line of a place below another one.
    pub(crate) fn line(&self, base: JsonLocation<'_>, below: JsonLocation<'_>) -> Option<usize> {
        let root: &RawValue = serde_json::from_str(self.text).ok()?;
        let found = below.find(base.find(root)).get();
        let offset = found.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let before = self.text.get(..offset)?;
        Some(1 + before.matches('\n').count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_on_the_line_where_its_value_begins() {
        let text = "{\n \"a\": [\n  {\"b\": 1},\n  {\n\"b\\u0063\":\n\n 2}\n ]\n}";
        let source = SourceFile { file: "f", text };
        let (a, whole) = (JsonLocation::Field(&JsonLocation::Whole, "a"), JsonLocation::Whole);
        let second = JsonLocation::Item(&a, 1);
        assert_eq!(source.line(whole, whole), Some(1));
        assert_eq!(source.line(whole, a), Some(2));
        assert_eq!(source.line(whole, JsonLocation::Item(&a, 0)), Some(3));
        assert_eq!(source.line(second, whole), Some(4));
        assert_eq!(source.line(second, JsonLocation::Field(&whole, "bc")), Some(7));
        // What is not there is where it would be.
        assert_eq!(source.line(second, JsonLocation::Field(&whole, "x")), Some(4));
        assert_eq!(source.line(whole, JsonLocation::Item(&a, 9)), Some(2));
        assert_eq!(source.line(whole, JsonLocation::Item(&whole, 0)), Some(1));
        assert_eq!(SourceFile { file: "f", text: "{" }.line(whole, whole), None);
        assert_eq!(JsonLocation::Field(&second, "b").to_string(), "a[1].b");
    }
}
