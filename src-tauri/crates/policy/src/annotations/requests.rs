//! Annotations of the requests that are judged like tool calls.

use crate::{Annotations, JudgedRequest, ToolAnnotation};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Annotation of each judged request.
static MEANINGS: LazyLock<BTreeMap<JudgedRequest, ToolAnnotation>> = LazyLock::new(|| {
    let file = Annotations::from_json(include_str!("../requests/requests.json"), "requests.json");
    // A test ensures that the file is valid. Requests without an annotation are denied.
    let file = file.unwrap_or_default();
    let meaning =
        |request: &JudgedRequest| Some((*request, file.known("", request.name())?.annotation.clone()));
    JudgedRequest::ALL.iter().filter_map(meaning).collect()
});

/// Returns the annotation of a judged request.
pub(crate) fn meaning(request: JudgedRequest) -> Option<&'static ToolAnnotation> {
    MEANINGS.get(&request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_a_meaning() {
        assert!(Annotations::from_json(include_str!("../requests/requests.json"), "requests.json").is_ok());
        assert_eq!(MEANINGS.len(), JudgedRequest::ALL.len());
    }
}
