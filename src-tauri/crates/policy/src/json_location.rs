//! Locations in a JSON document, and their line numbers.
//!
//! - Creating a location is cheap. Its line number is computed only when an error is reported.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Location in a JSON value, displayed as a dotted path such as `if.lists[0].roles`.
#[derive(Clone, Copy)]
pub(crate) enum JsonLocation<'a> {
    /// The whole document.
    Whole,
    /// The field with this name, in the object at a location.
    Field(&'a JsonLocation<'a>, &'a str),
    /// The item with this index, in the list at a location.
    Item(&'a JsonLocation<'a>, usize),
}

impl JsonLocation<'_> {
    /// Calls `use_location` with the location of the field at the path `path`, relative to this location.
    pub(crate) fn with_path<R>(self, path: &[&str], use_location: impl FnOnce(JsonLocation<'_>) -> R) -> R {
        match path.split_first() {
            None => use_location(self),
            Some((name, rest)) => JsonLocation::Field(&self, name).with_path(rest, use_location),
        }
    }

    /// Returns the value at the location, or the innermost enclosing value if it does not exist.
    pub(crate) fn find(self, root: &RawValue) -> &RawValue {
        match self {
            Self::Whole => root,
            Self::Field(parent, name) => {
                let parent = parent.find(root);
                let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(parent.get()).ok();
                fields.and_then(|mut fields| fields.remove(name)).unwrap_or(parent)
            }
            Self::Item(parent, index) => {
                let parent = parent.find(root);
                let items: Option<Vec<&RawValue>> = serde_json::from_str(parent.get()).ok();
                items.and_then(|items| items.get(index).copied()).unwrap_or(parent)
            }
        }
    }
}

impl fmt::Display for JsonLocation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Field(Self::Whole, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

/// A file that is being parsed.
#[derive(Clone, Copy)]
pub(crate) struct SourceFile<'a> {
    /// File name for error messages.
    pub(crate) file: &'a str,
    /// Contents of the file.
    pub(crate) text: &'a str,
}

impl SourceFile<'_> {
    /// Returns the line number of the location `relative`, which is relative to `base`. Returns `None` if the text is
    /// not JSON.
    pub(crate) fn line(&self, base: JsonLocation<'_>, relative: JsonLocation<'_>) -> Option<usize> {
        let root: &RawValue = serde_json::from_str(self.text).ok()?;
        let found = relative.find(base.find(root)).get();
        let offset = found.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let before = self.text.get(..offset)?;
        Some(1 + before.matches('\n').count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_on_the_first_line_of_its_value() {
        let text = "{\n \"a\": [\n  {\"b\": 1},\n  {\n\"b\\u0063\":\n\n 2}\n ]\n}";
        let source = SourceFile { file: "f", text };
        let (a, whole) = (JsonLocation::Field(&JsonLocation::Whole, "a"), JsonLocation::Whole);
        let second = JsonLocation::Item(&a, 1);
        assert_eq!(source.line(whole, whole), Some(1));
        assert_eq!(source.line(whole, a), Some(2));
        assert_eq!(source.line(whole, JsonLocation::Item(&a, 0)), Some(3));
        assert_eq!(source.line(second, whole), Some(4));
        assert_eq!(source.line(second, JsonLocation::Field(&whole, "bc")), Some(7));
        // A missing value has the location of its parent.
        assert_eq!(source.line(second, JsonLocation::Field(&whole, "x")), Some(4));
        assert_eq!(source.line(whole, JsonLocation::Item(&a, 9)), Some(2));
        assert_eq!(source.line(whole, JsonLocation::Item(&whole, 0)), Some(1));
        assert_eq!(SourceFile { file: "f", text: "{" }.line(whole, whole), None);
        assert_eq!(JsonLocation::Field(&second, "b").to_string(), "a[1].b");
    }
}
