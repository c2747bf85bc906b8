//! A change of a file as a value: its text before and after.

use similar::TextDiff;

/// The number of lines that are shown around each change.
const AROUND: usize = 3;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Its text now; none where there is no file.
    pub before: Option<String>,
    /// Its text then; none where the file goes.
    pub after: Option<String>,
}

impl Edit {
    pub(crate) fn new(before: Option<&str>, after: String) -> Self {
        Self { before: before.map(ToOwned::to_owned), after: Some(after) }
    }

    /// Returns `true` if nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// The change, in the form of `diff -u` without its heading.
    #[must_use]
    pub fn diff(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        TextDiff::from_lines(text(&self.before), text(&self.after))
            .unified_diff()
            .context_radius(AROUND)
            .to_string()
    }
}
