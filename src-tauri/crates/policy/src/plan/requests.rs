//! Plans the requests that are judged like tool calls.

use super::CallPlan;
use crate::annotations::{self, AnnotatedTool};
use crate::requests::{JudgedRequest, PATH, ResourceAddress, URI};
use crate::{Denial, Role};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Plans the request like a call to a tool that every server has.
///
/// # Errors
/// Returns a denial if the arguments are invalid for the request.
pub(super) fn plan<'a>(
    request: JudgedRequest,
    server: &str,
    arguments: &'a Arc<Map<String, Value>>,
) -> Result<CallPlan<'a>, Denial> {
    let unknown_request = || Denial::unknown_tool(format!("unknown request `{}`", request.name()));
    let annotation = annotations::request_annotation(request).ok_or_else(unknown_request)?;
    if request.names_resource() {
        check_resource_address(arguments)?;
    }
    let values = annotation.accepted.check(arguments)?;
    let tool = AnnotatedTool {
        server: server.into(),
        name: request.name().into(),
        annotation: annotation.clone(),
        is_unannotated: false,
        request: Some(request),
    };
    let plan = CallPlan::build(Arc::new(tool), annotation, arguments, &values)?;
    // A request for a resource that is not a file is judged as a whole.
    Ok(if arguments.contains_key(PATH) { plan } else { plan.without(Role::ReadPath) })
}

/// Checks that the request identifies its resource exactly once, either by a path or by a URI that is not a file.
fn check_resource_address(arguments: &Map<String, Value>) -> Result<(), Denial> {
    match (arguments.get(URI), arguments.get(PATH)) {
        (Some(Value::String(uri)), None) => match ResourceAddress::parse(uri) {
            Ok(ResourceAddress::Other) => Ok(()),
            Ok(ResourceAddress::File(path)) => {
                Err(Denial::invalid(format!("`{uri}` is a file; it is judged as the path `{path}`")))
            }
            Err(problem) => Err(Denial::invalid(problem.to_string())),
        },
        (None, Some(Value::String(_))) => Ok(()),
        (_, _) => Err(Denial::invalid("a resource requires exactly one `uri` or `path`, which is a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(method: &str, arguments: &Value) -> Result<Vec<(Role, String)>, String> {
        let arguments = Arc::new(arguments.as_object().unwrap().clone());
        let plan = super::plan(JudgedRequest::parse(method).unwrap(), "notes", &arguments);
        let plan = plan.map_err(|denial| denial.reason.to_string())?;
        let value = |value: &crate::PlannedValue<'_>| {
            let roles: Vec<Role> = value.roles.iter().collect();
            roles.into_iter().map(|role| (role, value.raw.unwrap_or_default().to_owned())).collect::<Vec<_>>()
        };
        Ok(plan.values().iter().flat_map(value).collect())
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
            assert!(read(wrong).unwrap_err().starts_with("a resource requires exactly one `uri`"));
        }
        assert_eq!(read(json!({ "uri": "notes://1", "x": 1 })).unwrap_err(), "the tool has no argument `x`");
    }

    #[test]
    fn a_prompt_is_bound_to_its_name_and_a_completion_to_its_target() {
        let prompt = json!({ "name": "greet", "arguments": { "who": "ann" } });
        assert_eq!(plan("prompts/get", &prompt), Ok(vec![(Role::PromptName, "greet".into())]));
        let completion =
            json!({ "prompt": "greet", "argument": "who", "value": "a", "context": { "x": "y" } });
        let expected = vec![(Role::PromptName, "greet".into()), (Role::PromptArgument, "who".into())];
        assert_eq!(plan("completion/complete", &completion), Ok(expected));
    }
}
