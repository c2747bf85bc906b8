//! Parses a client's call and builds the request for the server. A call is a `tools/call`, or another request that is
//! judged like a tool call.

use super::params::{self, ParamsError};
use ironcurtain_mcp::request::{
    Completion, CompletionOf, RequestBody, RequestMeta, ServerRequest, TaskOptions,
};
use ironcurtain_mcp::wire::Fields;
use ironcurtain_policy::strict::{UniqueKeys, check_numbers};
use ironcurtain_policy::{JudgedRequest, PATH, ResolvedCall, URI, file_address};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// MCP method that calls a tool.
pub(super) const CALL_TOOL: &str = "tools/call";

/// Parsed call.
#[derive(Debug)]
pub(super) struct ToolCall {
    /// Kind of request, or `None` for `tools/call`.
    pub(super) request: Option<JudgedRequest>,
    /// Name of the tool, or of the request if it is not a `tools/call`.
    pub(super) tool: String,
    pub(super) arguments: Arc<Map<String, Value>>,
    has_arguments: bool,
    task: Option<TaskOptions>,
    meta: RequestMeta,
}

impl ToolCall {
    /// Parses a call's parameters. Errors are sent to the client.
    pub(super) fn parse(
        request: Option<JudgedRequest>,
        params: Option<&RawValue>,
    ) -> Result<Self, ParamsError> {
        let params = params.ok_or(ParamsError::Missing("params"))?;
        match request {
            None => Self::read_tool_call(params),
            Some(request) => Self::read_request(request, params),
        }
    }

    fn read_tool_call(params: &RawValue) -> Result<Self, ParamsError> {
        let (params, meta) = params::params(Some(params), &["name", "arguments", "task"])?;
        let tool = params::name(&params, ("name", "params.name"))?;
        if JudgedRequest::parse(&tool).is_some() {
            return Err(ParamsError::Reserved(tool));
        }
        let raw: Option<Fields> = params::optional(&params, ("arguments", "params.arguments"))?;
        let mut arguments = Map::new();
        for (name, raw) in raw.iter().flat_map(Fields::iter) {
            let UniqueKeys(value) = params::parse(raw, name)?;
            let inexact = |source| ParamsError::Inexact { argument: name.to_owned(), source };
            check_numbers(raw.get()).map_err(inexact)?;
            arguments.insert(name.to_owned(), value);
        }
        let task = params.get("task").filter(|raw| raw.get() != "null").map(task).transpose()?;
        let has_arguments = raw.is_some();
        Ok(Self { request: None, tool, arguments: arguments.into(), has_arguments, task, meta })
    }

    fn read_request(request: JudgedRequest, raw: &RawValue) -> Result<Self, ParamsError> {
        let known: &[&str] = match request {
            JudgedRequest::ReadResource | JudgedRequest::SubscribeResource => &["uri"],
            JudgedRequest::GetPrompt => &["name", "arguments"],
            JudgedRequest::Complete => &["ref", "argument", "context"],
        };
        let (params, meta) = params::params(Some(raw), known)?;
        let arguments = match request {
            JudgedRequest::ReadResource | JudgedRequest::SubscribeResource => {
                let uri: String = params::required(&params, ("uri", "params.uri"))?;
                json!({ URI: uri })
            }
            JudgedRequest::GetPrompt => {
                let values: Option<StringArguments> =
                    params::optional(&params, ("arguments", "params.arguments"))?;
                with_texts(
                    json!({ "name": params::name(&params, ("name", "params.name"))? }),
                    "arguments",
                    values,
                )
            }
            JudgedRequest::Complete => completion(&params)?,
        };
        let Value::Object(arguments) = arguments else { return Err(ParamsError::Missing("params")) };
        let arguments = Arc::new(request.arguments(&arguments)?);
        let tool = request.name().to_owned();
        Ok(Self { request: Some(request), tool, arguments, has_arguments: true, task: None, meta })
    }

    pub(super) fn method(&self) -> &'static str {
        self.request.map_or(CALL_TOOL, JudgedRequest::name)
    }

    /// Returns the progress token in the client's request.
    pub(super) fn progress_token(&self) -> Option<Box<RawValue>> {
        self.meta.progress_token().map(ToOwned::to_owned)
    }

    /// Returns a sentence that lists the parts of the request that are not forwarded, or `None` if all parts are
    /// forwarded.
    pub(super) fn dropped(&self) -> Option<String> {
        self.meta.dropped()
    }

    /// Returns the task options, or `None` if the call does not create a task.
    pub(super) fn task(&self) -> Option<TaskOptions> {
        self.task
    }

    /// Builds the request for the server from the judged call.
    pub(super) fn to_server_request(&self, call: &ResolvedCall) -> Result<ServerRequest, serde_json::Error> {
        let arguments = call.transport_arguments();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let address = match call.paths().next() {
            Some((_, PATH, path)) => file_address(path).unwrap_or_default(),
            Some(_) | None => text(URI).to_owned(),
        };
        let body = match self.request {
            None => RequestBody::CallTool {
                name: &self.tool,
                arguments: Some(arguments).filter(|all| self.has_arguments || !all.is_empty()),
                task: self.task,
            },
            Some(JudgedRequest::ReadResource) => RequestBody::ReadResource(&address),
            Some(JudgedRequest::SubscribeResource) => RequestBody::Subscribe(&address),
            Some(JudgedRequest::GetPrompt) => {
                RequestBody::GetPrompt { name: text("name"), arguments: arguments.get("arguments") }
            }
            Some(JudgedRequest::Complete) => RequestBody::Complete(Completion {
                of: match arguments.get("prompt").and_then(Value::as_str) {
                    Some(prompt) => CompletionOf::Prompt(prompt),
                    None => CompletionOf::Resource(text("resource")),
                },
                argument: text("argument"),
                value: text("value"),
                context: arguments.get("context"),
            }),
        };
        ServerRequest::new(body, &self.meta)
    }
}

/// String arguments of a prompt or completion, keyed by name.
type StringArguments = BTreeMap<String, String>;

/// Parses the options of a task.
fn task(raw: &RawValue) -> Result<TaskOptions, ParamsError> {
    let fields = params::object(raw, "params.task", &["ttl"])?;
    Ok(TaskOptions { ttl: params::optional(&fields, ("ttl", "params.task.ttl"))? })
}

/// Builds the arguments that represent a completion when it is judged.
fn completion(params: &Fields) -> Result<Value, ParamsError> {
    let field = |name, path| params.get(name).ok_or(ParamsError::Missing(path));
    // Accepts a title, which is only for display.
    let reference =
        params::object(field("ref", "params.ref")?, "params.ref", &["type", "name", "uri", "title"])?;
    let kind: String = params::required(&reference, ("type", "params.ref.type"))?;
    let argument =
        params::object(field("argument", "params.argument")?, "params.argument", &["name", "value"])?;
    let (kind_name, name) = match (kind.as_str(), reference.get("name"), reference.get("uri")) {
        ("ref/prompt", Some(_), None) => ("prompt", params::name(&reference, ("name", "params.ref.name"))?),
        ("ref/resource", None, Some(_)) => {
            ("resource", params::required::<String>(&reference, ("uri", "params.ref.uri"))?)
        }
        (_, _, _) => return Err(ParamsError::Reference),
    };
    let judged = json!({
        kind_name: name,
        "argument": params::name(&argument, ("name", "params.argument.name"))?,
        "value": params::required::<String>(&argument, ("value", "params.argument.value"))?,
    });
    let context = params.get("context").filter(|raw| raw.get() != "null");
    let context = context.map(|raw| params::object(raw, "params.context", &["arguments"])).transpose()?;
    let values = context.map(|context| params::optional(&context, ("arguments", "params.context.arguments")));
    Ok(with_texts(judged, "context", values.transpose()?.flatten()))
}

/// Adds the values to the object as a field called `name`, unless `values` is `None`.
fn with_texts(mut object: Value, name: &str, values: Option<StringArguments>) -> Value {
    if let (Some(values), Value::Object(fields)) = (values, &mut object) {
        let values = values.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
        fields.insert(name.to_owned(), values);
    }
    object
}

#[cfg(test)]
mod tests;
