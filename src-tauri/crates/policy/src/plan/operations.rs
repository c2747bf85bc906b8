//! Plans a sandboxed program's operations, which are judged like tool calls.

use super::CallPlan;
use crate::{Annotations, Denial};
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};

/// Annotation of each operation.
static ANNOTATIONS: LazyLock<Annotations> = LazyLock::new(|| {
    let file = Annotations::from_json(include_str!("operations.json"), "operations.json");
    // A test ensures that the file is valid. Operations without an annotation are denied.
    file.unwrap_or_default()
});

impl<'a> CallPlan<'a> {
    /// Plans the operation with this name like a call to a tool on the given server.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid for the operation.
    pub(super) fn for_operation(
        (name, descends): (&str, bool),
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<Self, Denial> {
        let annotations: &'static Annotations = &ANNOTATIONS;
        let unknown_operation = || Denial::unknown_tool(format!("unknown operation `{name}`"));
        let operation = annotations.annotated_tool("", name).ok_or_else(unknown_operation)?;
        let values = operation.annotation.accepted.check(arguments)?;
        let mut tool = operation.as_ref().clone();
        tool.server = server.into();
        tool.annotation.descends = descends;
        Self::build(Arc::new(tool), &operation.annotation, arguments, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_annotations_are_valid() {
        assert!(Annotations::from_json(include_str!("operations.json"), "operations.json").is_ok());
    }
}
