//! Planned change to a file: the text before and after.

use similar::TextDiff;

/// Number of unchanged lines shown before and after each change.
const CONTEXT_LINES: usize = 3;

/// Planned change to a file. It has not been written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Current text; `None` if the file does not exist.
    pub before: Option<String>,
    /// New text; `None` to delete the file.
    pub after: Option<String>,
}

impl Edit {
    pub(crate) fn new(before: Option<&str>, after: String) -> Self {
        Self { before: before.map(ToOwned::to_owned), after: Some(after) }
    }

    /// Returns `true` if both texts are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Returns the change in the format of `diff -u`, without the header.
    #[must_use]
    pub fn diff(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        TextDiff::from_lines(text(&self.before), text(&self.after))
            .unified_diff()
            .context_radius(CONTEXT_LINES)
            .to_string()
    }
}
