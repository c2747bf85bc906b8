//! Client responses to server requests, rebuilt from the fields that the protocol defines.
//!
//! - INVARIANT: a server receives only those fields of a client's response that the method defines, within the limits
//!   below. The names of dropped fields are recorded.

use super::client_request::{ClientRequest, MAX_NAME_LEN};
use crate::wire::Response;
use ironcurtain_visible as visible;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Maximum size of the content of an elicitation response, in bytes of JSON. Form fields are short.
const MAX_CONTENT_LEN: usize = 16 * 1024;

/// Maximum size in bytes of a sampling response, which may contain images. A parsed value takes up to 16 times as much
/// memory. This memory is not part of the session's share.
const MAX_SAMPLED_LEN: usize = 4 << 20;
const MAX_OTHER_LEN: usize = 64 * 1024;

/// Maximum length of an error message, in characters.
const MAX_MESSAGE_LEN: usize = 1000;

/// Maximum number of dropped fields that are listed by name.
const MAX_LISTED: usize = 8;

/// JSON-RPC code for an unusable response (JSON-RPC 2.0, section 5.1: internal error).
const INVALID_RESPONSE: i32 = -32603;

/// Response that is ready to be sent to the server.
#[derive(Debug)]
pub struct ClientAnswer {
    /// Response that the server receives.
    pub(super) response: Response,
    /// Content of the response, for the audit log.
    pub content: Map<String, Value>,
    /// Names of dropped fields, at most `MAX_LISTED`.
    pub dropped: Vec<String>,
}

impl ClientAnswer {
    /// Rebuilds a client's response to a request.
    ///
    /// An invalid result becomes an error.
    #[must_use]
    pub fn build(request: &ClientRequest, response: &Response) -> Self {
        let mut build = Builder::default();
        let built = match response {
            Response::Result(result) => build.result(request, result).map(|built| (true, built)),
            Response::Error(error) => build.error(error).map(|built| (false, built)),
        };
        let (is_result, content) = built.unwrap_or_else(|problem| {
            let text = format!("the client's response to `{}` is invalid: {problem}", request.name());
            let fields = [("code", Value::from(INVALID_RESPONSE)), ("message", Value::from(text))];
            (false, fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        });
        let raw = to_raw_value(&content).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let response = if is_result { Response::Result(raw) } else { Response::Error(raw) };
        Self { response, content, dropped: build.dropped }
    }

    /// Wraps a response without checks, for testing the code that sends responses.
    #[cfg(any(test, feature = "fuzzing"))]
    #[must_use]
    pub fn unchecked(response: Response) -> Self {
        Self { response, content: Map::new(), dropped: Vec::new() }
    }

    /// Returns a sentence that lists the dropped fields, or `None` if there are none.
    #[must_use]
    pub fn dropped(&self) -> Option<String> {
        let names: Vec<String> = self.dropped.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("dropped from the response: {}", names.join(", ")))
    }
}

/// Reason a client's response is not forwarded.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("expected an object")]
    ExpectedObject,
    #[error("it is {length} bytes long; the limit is {max}")]
    TooLong { length: usize, max: usize },
    #[error("expected `{field}` to be {expected}")]
    Field { field: &'static str, expected: &'static str },
    #[error("`content` is {0} bytes long; the limit is {MAX_CONTENT_LEN}")]
    ContentTooLong(usize),
}

#[derive(Default)]
struct Builder {
    dropped: Vec<String>,
}

impl Builder {
    fn result(
        &mut self,
        request: &ClientRequest,
        result: &RawValue,
    ) -> Result<Map<String, Value>, AnswerError> {
        let max = match request {
            ClientRequest::Sampling | ClientRequest::TaskResult => MAX_SAMPLED_LEN,
            ClientRequest::Elicitation(_)
            | ClientRequest::Task
            | ClientRequest::TaskList
            | ClientRequest::Other
            | ClientRequest::Withheld => MAX_OTHER_LEN,
        };
        let fields = parse(result, max)?;
        // A client that supports tasks may respond with a task, and return the actual response to `tasks/result`.
        if fields.contains_key("task")
            && matches!(request, ClientRequest::Elicitation(_) | ClientRequest::Sampling)
        {
            return Ok(self.keep_fields(fields, "", |build, name, value| match name {
                "task" => Some(Value::Object(build.task(value))),
                _ => None,
            }));
        }
        match request {
            ClientRequest::Elicitation(names) => self.elicitation(fields, Some(names)),
            ClientRequest::Sampling => self.sampling(fields),
            ClientRequest::TaskResult if fields.contains_key("action") => self.elicitation(fields, None),
            ClientRequest::TaskResult => self.sampling(fields),
            ClientRequest::Task => Ok(self.task(Value::Object(fields))),
            ClientRequest::TaskList => {
                Ok(self.keep_fields(fields, "", |build, name, value| match (name, value) {
                    ("tasks", Value::Array(tasks)) => {
                        Some(tasks.into_iter().map(|task| Value::Object(build.task(task))).collect())
                    }
                    ("nextCursor", value) => short_string(value),
                    _ => None,
                }))
            }
            ClientRequest::Other | ClientRequest::Withheld => {
                Ok(self.keep_fields(fields, "", |_, _, _| None))
            }
        }
    }

    fn elicitation(
        &mut self,
        fields: Map<String, Value>,
        names: Option<&[String]>,
    ) -> Result<Map<String, Value>, AnswerError> {
        let action = fields.get("action").and_then(Value::as_str);
        let is_accepted = action == Some("accept");
        if !matches!(action, Some("accept" | "decline" | "cancel")) {
            return Err(AnswerError::Field { field: "action", expected: "`accept`, `decline` or `cancel`" });
        }
        let built = self.keep_fields(fields, "", |build, name, value| match (name, value) {
            ("action", value) => Some(value),
            ("content", Value::Object(content)) if is_accepted => {
                Some(Value::Object(build.keep_fields(content, "content.", |_, name, value| {
                    let is_requested = match names {
                        Some(names) => names.iter().any(|field| field == name),
                        None => name.len() <= MAX_NAME_LEN,
                    };
                    Some(value).filter(|value| is_requested && is_form_value(value))
                })))
            }
            _ => None,
        });
        let length = built.get("content").map_or(0, |content| content.to_string().len());
        if length > MAX_CONTENT_LEN { Err(AnswerError::ContentTooLong(length)) } else { Ok(built) }
    }

    fn sampling(&mut self, fields: Map<String, Value>) -> Result<Map<String, Value>, AnswerError> {
        if !matches!(fields.get("role").and_then(Value::as_str), Some("user" | "assistant")) {
            return Err(AnswerError::Field { field: "role", expected: "`user` or `assistant`" });
        }
        Ok(self.keep_fields(fields, "", |build, name, value| match (name, value) {
            ("role", value) => Some(value),
            ("model" | "stopReason", value) => short_string(value),
            ("content", Value::Array(blocks)) => {
                Some(blocks.into_iter().filter_map(|block| build.block(block)).collect())
            }
            ("content", block) => build.block(block),
            _ => None,
        }))
    }

    /// Rebuilds a content block of a sampling response.
    fn block(&mut self, block: Value) -> Option<Value> {
        let Value::Object(block) = block else { return None };
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let built = self.keep_fields(block, "content.", |_, name, value| match (kind.as_str(), name) {
            ("text" | "image" | "audio" | "tool_use", "type") => Some(value),
            ("text", "text") | ("image" | "audio", "data") => Some(value).filter(Value::is_string),
            ("image" | "audio", "mimeType") | ("tool_use", "id" | "name") => short_string(value),
            ("tool_use", "input") => Some(value).filter(Value::is_object),
            _ => None,
        });
        (!built.is_empty()).then_some(Value::Object(built))
    }

    /// Rebuilds the state of a task, without its status message.
    fn task(&mut self, task: Value) -> Map<String, Value> {
        let Value::Object(task) = task else { return Map::new() };
        self.keep_fields(task, "task.", |_, name, value| match name {
            "taskId" | "status" | "createdAt" | "lastUpdatedAt" => short_string(value),
            "ttl" | "pollInterval" => Some(value).filter(|value| value.is_number() || value.is_null()),
            _ => None,
        })
    }

    fn error(&mut self, error: &RawValue) -> Result<Map<String, Value>, AnswerError> {
        let fields = parse(error, MAX_OTHER_LEN)?;
        if !fields.get("code").is_some_and(Value::is_i64) {
            return Err(AnswerError::Field { field: "code", expected: "an integer" });
        }
        Ok(self.keep_fields(fields, "", |_, name, value| match (name, value) {
            ("code", value) => Some(value),
            ("message", Value::String(text)) => Some(Value::from(visible::head(&text, MAX_MESSAGE_LEN))),
            _ => None,
        }))
    }

    /// Keeps the fields for which `build` returns a value, and records the names of the dropped fields.
    fn keep_fields(
        &mut self,
        fields: Map<String, Value>,
        path_prefix: &str,
        mut build: impl FnMut(&mut Self, &str, Value) -> Option<Value>,
    ) -> Map<String, Value> {
        let mut built = Map::new();
        for (name, value) in fields {
            match build(self, &name, value) {
                Some(value) => drop(built.insert(name, value)),
                None => self.drop_field(path_prefix, &name),
            }
        }
        built
    }

    fn drop_field(&mut self, path_prefix: &str, name: &str) {
        if self.dropped.len() < MAX_LISTED {
            let name = visible::line(&visible::head(name, MAX_NAME_LEN));
            self.dropped.push(format!("{path_prefix}{name}"));
        }
    }
}

fn parse(raw: &RawValue, max: usize) -> Result<Map<String, Value>, AnswerError> {
    let length = raw.get().len();
    if length > max {
        return Err(AnswerError::TooLong { length, max });
    }
    let fields: Value = serde_json::from_str(raw.get())?;
    if let Value::Object(fields) = fields { Ok(fields) } else { Err(AnswerError::ExpectedObject) }
}

/// Returns the value if it is a string of at most [`MAX_NAME_LEN`] bytes.
fn short_string(value: Value) -> Option<Value> {
    Some(value).filter(|value| value.as_str().is_some_and(|text| text.len() <= MAX_NAME_LEN))
}

/// Returns `true` if a form field can have this value: a string, a number, a boolean or a list of strings (MCP,
/// elicitation).
fn is_form_value(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    /// Returns the response that the server receives, and the names of the dropped fields.
    fn built(request: &ClientRequest, result: &Value) -> (Result<Value, String>, Vec<String>) {
        let answer = ClientAnswer::build(request, &Response::Result(raw(result)));
        let sent = match answer.response {
            Response::Result(result) => Ok(serde_json::from_str(result.get()).unwrap()),
            Response::Error(error) => Err(error.get().to_owned()),
        };
        (sent, answer.dropped)
    }

    fn form() -> ClientRequest {
        let params = json!({ "message": "?", "requestedSchema": { "properties": { "name": {}, "tags": {}, "n": {} } } });
        ClientRequest::new("elicitation/create", Some(&raw(&params)))
    }

    #[test]
    fn elicitation_response_has_only_the_fields_of_the_form() {
        let content = json!({ "name": "a", "tags": ["x"], "n": 1, "extra": "hidden" });
        let fields =
            json!({ "action": "accept", "content": content, "_meta": { "x": "hidden" }, "more": "hidden" });
        let expected = json!({ "action": "accept", "content": { "name": "a", "tags": ["x"], "n": 1 } });
        let (sent, dropped) = built(&form(), &fields);
        assert_eq!(sent.unwrap(), expected);
        assert_eq!(dropped.len(), 3, "{dropped:?}");
        // Form fields cannot have nested values, and a refusal has no content.
        let nested = json!({ "action": "accept", "content": { "name": { "x": "hidden" } } });
        assert_eq!(built(&form(), &nested).0.unwrap(), json!({ "action": "accept", "content": {} }));
        let declined = json!({ "action": "decline", "content": { "name": "hidden" } });
        assert_eq!(built(&form(), &declined).0.unwrap(), json!({ "action": "decline" }));
    }

    #[test]
    fn long_or_malformed_elicitation_response_becomes_an_error() {
        let long = json!({ "action": "accept", "content": { "name": "x".repeat(MAX_CONTENT_LEN) } });
        assert!(built(&form(), &long).0.unwrap_err().contains("the limit is 16384"));
        assert!(built(&form(), &json!({ "action": "maybe" })).0.unwrap_err().contains("`decline`"));
        assert!(built(&form(), &json!([])).0.unwrap_err().contains("expected an object"));
        // Responses over the limit are not parsed.
        let nested = json!({ "action": "accept", "content": { "name": vec![0; MAX_OTHER_LEN] } });
        assert!(built(&form(), &nested).0.unwrap_err().contains("the limit is 65536"));
        let image = |length| json!({ "type": "image", "data": "x".repeat(length), "mimeType": "image/png" });
        let sampling = |length| json!({ "role": "assistant", "content": image(length), "model": "m" });
        assert!(built(&ClientRequest::Sampling, &sampling(1 << 20)).0.is_ok());
        assert!(
            built(&ClientRequest::Sampling, &sampling(MAX_SAMPLED_LEN))
                .0
                .unwrap_err()
                .contains("the limit is 4194304")
        );
    }

    #[test]
    fn sampling_response_has_only_fields_of_the_protocol() {
        let text = json!({ "type": "text", "text": "hi", "annotations": { "x": "hidden" }, "_meta": {} });
        let fields = json!({ "role": "assistant", "content": [text, { "type": "other", "x": "hidden" }], "model": "m", "stopReason": "endTurn", "_meta": {} });
        let expected = json!({ "role": "assistant", "content": [{ "type": "text", "text": "hi" }], "model": "m", "stopReason": "endTurn" });
        assert_eq!(built(&ClientRequest::Sampling, &fields).0.unwrap(), expected);
        let long = json!({ "role": "assistant", "content": [], "model": "m".repeat(300) });
        assert_eq!(
            built(&ClientRequest::Sampling, &long).0.unwrap(),
            json!({ "role": "assistant", "content": [] })
        );
    }

    #[test]
    fn task_response_has_no_text_of_the_client() {
        let task = json!({ "taskId": "t", "status": "working", "ttl": null, "statusMessage": "hidden" });
        let expected = json!({ "taskId": "t", "status": "working", "ttl": null });
        assert_eq!(built(&ClientRequest::Task, &task).0.unwrap(), expected);
        assert_eq!(built(&form(), &json!({ "task": task })).0.unwrap(), json!({ "task": expected }));
        let list = json!({ "tasks": [task], "nextCursor": "2", "x": "hidden" });
        assert_eq!(
            built(&ClientRequest::TaskList, &list).0.unwrap(),
            json!({ "tasks": [expected], "nextCursor": "2" })
        );
    }

    #[test]
    fn error_has_a_code_and_a_short_message() {
        let error = json!({ "code": -1, "message": "m".repeat(5000), "data": { "x": "hidden" } });
        let answer = ClientAnswer::build(&ClientRequest::Sampling, &Response::Error(raw(&error)));
        let Response::Error(sent) = answer.response else { panic!("a result") };
        assert!(sent.get().len() < 1100 && !sent.get().contains("hidden"), "{}", sent.get());
        assert_eq!(answer.dropped, ["data"]);
    }
}
