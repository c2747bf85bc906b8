//! Annotations of the requests that are judged like tool calls.

use crate::{Annotations, JudgedRequest, ToolAnnotation};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Annotation of each judged request.
static ANNOTATIONS: LazyLock<BTreeMap<JudgedRequest, ToolAnnotation>> = LazyLock::new(|| {
    let file = Annotations::from_json(include_str!("../requests/requests.json"), "requests.json");
    // A test ensures that the file is valid. Requests without an annotation are denied.
    let file = file.unwrap_or_default();
    let annotation = |request: &JudgedRequest| {
        Some((*request, file.annotated_tool("", request.name())?.annotation.clone()))
    };
    JudgedRequest::ALL.iter().filter_map(annotation).collect()
});

/// Returns the annotation of a judged request.
pub(crate) fn request_annotation(request: JudgedRequest) -> Option<&'static ToolAnnotation> {
    ANNOTATIONS.get(&request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_a_meaning() {
        assert!(Annotations::from_json(include_str!("../requests/requests.json"), "requests.json").is_ok());
        assert_eq!(ANNOTATIONS.len(), JudgedRequest::ALL.len());
    }
}
