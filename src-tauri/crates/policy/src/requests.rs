//! Requests of a client that are no tool calls and are judged like one.
//!
//! - INVARIANT: the name of such a request is never the name of a tool: rules, grants and the record know it by that name.
//! - A resource with a `file:` address is a path like any other. Every other address, a prompt's arguments and the values
//!   of a completion are text.

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

/// The argument with an address that is text.
pub const URI: &str = "uri";

/// The argument with the path of a `file:` address.
pub const PATH: &str = "path";

impl JudgedRequest {
    /// Every such request.
    pub const ALL: [Self; 4] = [Self::ReadResource, Self::SubscribeResource, Self::GetPrompt, Self::Complete];

    /// Returns the request with this method.
    #[must_use]
    pub fn parse(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|request| request.name() == method)
    }

    /// Returns its method, which is its name in rules and on record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadResource => "resources/read",
            Self::SubscribeResource => "resources/subscribe",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }

    /// Returns `true` if it names a resource by its address.
    #[must_use]
    pub fn names_resource(self) -> bool {
        matches!(self, Self::ReadResource | Self::SubscribeResource)
    }

    /// Returns the arguments as they are judged: the `uri` of a file becomes its `path`.
    ///
    /// # Errors
    /// [`AddressError`], if readers of addresses could disagree about a `uri`.
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
    fn no_other_method_is_one() {
        assert_eq!(JudgedRequest::parse("tools/list"), None);
        let all = JudgedRequest::ALL;
        assert_eq!(all.map(|request| JudgedRequest::parse(request.name())), all.map(Some));
    }
}
