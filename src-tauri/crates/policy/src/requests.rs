//! Client requests that are not tool calls but are judged like them.
//!
//! - INVARIANT: no tool has the name of such a request, because rules, grants and the audit log
//!   refer to both by name.
//! - A resource with a `file:` URI is judged as a path. Other URIs, prompt arguments and completion
//!   values are text.

mod address;

pub use address::{AddressError, ResourceAddress, file_address};

use serde_json::{Map, Value};

/// A request that is judged like a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JudgedRequest {
    /// `resources/read`.
    ReadResource,
    /// `resources/subscribe`.
    SubscribeResource,
    /// `prompts/get`.
    GetPrompt,
    /// `completion/complete`.
    Complete,
}

/// Name of the argument that contains a URI that is judged as text.
pub const URI: &str = "uri";

/// Name of the argument that contains the path of a `file:` URI.
pub const PATH: &str = "path";

impl JudgedRequest {
    /// All judged requests.
    pub const ALL: [Self; 4] = [Self::ReadResource, Self::SubscribeResource, Self::GetPrompt, Self::Complete];

    /// Returns the judged request with this method, or `None`.
    #[must_use]
    pub fn parse(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|request| request.name() == method)
    }

    /// Returns the method, which also names the request in rules and in the audit log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadResource => "resources/read",
            Self::SubscribeResource => "resources/subscribe",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }

    /// Returns `true` if the request names a resource by URI.
    #[must_use]
    pub(crate) fn names_resource(self) -> bool {
        matches!(self, Self::ReadResource | Self::SubscribeResource)
    }

    /// Returns the arguments to judge. Replaces a file's `uri` with its `path`.
    ///
    /// # Errors
    /// Returns [`AddressError`] if parsers could interpret the `uri` differently.
    pub fn arguments(self, given: &Map<String, Value>) -> Result<Map<String, Value>, AddressError> {
        let mut arguments = given.clone();
        let uri = arguments.get(URI).and_then(Value::as_str).filter(|_| self.names_resource());
        if let Some(uri) = uri
            && let ResourceAddress::File(path) = ResourceAddress::parse(uri)?
        {
            arguments.remove(URI);
            arguments.insert(PATH.to_owned(), Value::String(path));
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_uri_of_a_file_becomes_its_path() {
        let given = json!({ "uri": "file:///a/b" });
        let read = |request: JudgedRequest| request.arguments(given.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(read(JudgedRequest::ReadResource)), json!({ "path": "/a/b" }));
        assert_eq!(Value::Object(read(JudgedRequest::GetPrompt)), given);
    }

    #[test]
    fn other_methods_are_not_judged_requests() {
        assert_eq!(JudgedRequest::parse("tools/list"), None);
        let all = JudgedRequest::ALL;
        assert_eq!(all.map(|request| JudgedRequest::parse(request.name())), all.map(Some));
    }
}
