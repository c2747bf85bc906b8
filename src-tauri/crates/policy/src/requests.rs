//! Requests of a client that are no tool calls and are judged like one.
//!
//! - INVARIANT: the name of such a request is never the name of a tool: rules, grants and the record know it by that name.
//! - A resource with a `file:` address is a path like any other. Every other address, a prompt's arguments and the values
//!   of a completion are text.

mod address;

pub use address::{AddressError, ResourceAddress, file_address};

use crate::annotations::AnnotatedTool;
use crate::plan::CallPlan;
use crate::{Annotations, Denial, Role, ToolAnnotation};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

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

/// The meaning of the arguments of each request.
static MEANINGS: LazyLock<BTreeMap<JudgedRequest, ToolAnnotation>> = LazyLock::new(|| {
    let file = Annotations::from_json(include_str!("requests/requests.json"), "requests.json");
    // A test holds the file against the reader; without its meaning a request is refused.
    let file = file.unwrap_or_default();
    let meaning =
        |request: &JudgedRequest| Some((*request, file.known("", request.name())?.annotation.clone()));
    JudgedRequest::ALL.iter().filter_map(meaning).collect()
});

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

    /// Returns the meaning of its arguments.
    pub(crate) fn meaning(self) -> Option<&'static ToolAnnotation> {
        MEANINGS.get(&self)
    }

    /// Plans the request like a call of a tool that every server has.
    ///
    /// # Errors
    /// A denial, if the arguments do not fit it.
    pub(crate) fn plan<'a>(
        self,
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        let no_meaning = || Denial::unknown_tool(format!("the request `{}` is not known", self.name()));
        let meaning = self.meaning().ok_or_else(no_meaning)?;
        if self.names_resource() {
            one_address(arguments)?;
        }
        let values = meaning.accepted.take(arguments)?;
        let tool = AnnotatedTool {
            server: server.into(),
            name: self.name().into(),
            annotation: meaning.clone(),
            is_unannotated: false,
            request: Some(self),
        };
        let plan = CallPlan::build(Arc::new(tool), meaning, arguments, &values)?;
        // A resource that is no file is judged as a whole.
        Ok(if arguments.contains_key(PATH) { plan } else { plan.without(Role::ReadPath) })
    }
}

/// Checks that a resource is named once: by a path, or by an address that is no file's.
fn one_address(arguments: &Map<String, Value>) -> Result<(), Denial> {
    match (arguments.get(URI), arguments.get(PATH)) {
        (Some(Value::String(uri)), None) => match ResourceAddress::parse(uri) {
            Ok(ResourceAddress::Other) => Ok(()),
            Ok(ResourceAddress::File(path)) => {
                Err(Denial::invalid(format!("`{uri}` is a file; it is judged as the path `{path}`")))
            }
            Err(problem) => Err(Denial::invalid(problem.to_string())),
        },
        (None, Some(Value::String(_))) => Ok(()),
        (_, _) => Err(Denial::invalid("a resource is named by one `uri`, or one `path`, which is a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(method: &str, arguments: &Value) -> Result<Vec<(Role, String)>, String> {
        let arguments = Arc::new(arguments.as_object().unwrap().clone());
        let plan = JudgedRequest::parse(method).unwrap().plan("notes", &arguments);
        let plan = plan.map_err(|denial| denial.reason.to_string())?;
        let value = |value: &crate::PlannedValue<'_>| {
            let roles: Vec<Role> = value.roles.iter().collect();
            roles.into_iter().map(|role| (role, value.raw.unwrap_or_default().to_owned())).collect::<Vec<_>>()
        };
        Ok(plan.values().iter().flat_map(value).collect())
    }

    #[test]
    fn every_request_has_a_meaning() {
        assert!(Annotations::from_json(include_str!("requests/requests.json"), "requests.json").is_ok());
        assert_eq!(MEANINGS.len(), JudgedRequest::ALL.len());
        assert_eq!(JudgedRequest::parse("tools/list"), None);
    }

    #[test]
    fn a_file_is_a_path_and_other_addresses_are_text() {
        let read = |arguments: Value| plan("resources/read", &arguments);
        assert_eq!(read(json!({ "uri": "notes://1" })), Ok(vec![(Role::ResourceUri, "notes://1".into())]));
        assert_eq!(read(json!({ "path": "/a" })), Ok(vec![(Role::ReadPath, "/a".into())]));
        assert_eq!(
            read(json!({ "uri": "file:///a" })).unwrap_err(),
            "`file:///a` is a file; it is judged as the path `/a`"
        );
        for wrong in [json!({}), json!({ "uri": 1 }), json!({ "uri": "notes://1", "path": "/a" })] {
            assert!(read(wrong).unwrap_err().starts_with("a resource is named by one `uri`"));
        }
        assert_eq!(read(json!({ "uri": "notes://1", "x": 1 })).unwrap_err(), "the tool has no argument `x`");
    }

    #[test]
    fn the_uri_of_a_file_becomes_its_path() {
        let given = json!({ "uri": "file:///a/b" });
        let read = |request: JudgedRequest| request.arguments(given.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(read(JudgedRequest::ReadResource)), json!({ "path": "/a/b" }));
        assert_eq!(Value::Object(read(JudgedRequest::GetPrompt)), given);
    }

    #[test]
    fn a_prompt_is_bound_to_its_name_and_a_completion_to_what_it_completes() {
        let prompt = json!({ "name": "greet", "arguments": { "who": "ann" } });
        assert_eq!(plan("prompts/get", &prompt), Ok(vec![(Role::PromptName, "greet".into())]));
        let completion =
            json!({ "prompt": "greet", "argument": "who", "value": "a", "context": { "x": "y" } });
        let expected = vec![(Role::PromptName, "greet".into()), (Role::PromptArgument, "who".into())];
        assert_eq!(plan("completion/complete", &completion), Ok(expected));
    }
}
