//! Requests to a server on behalf of its client, built from known fields.
//!
//! - INVARIANT: only the fields of [`RequestBody`] and [`RequestMeta`] reach the server. Free text from the client
//!   occurs only in checked bodies. All other values were issued by the server or belong to a fixed set.

mod meta;

pub use meta::RequestMeta;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Log levels, least severe first.
pub const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Request that is ready to be sent to a server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub(super) method: Cow<'static, str>,
    pub(super) params: Option<Box<RawValue>>,
}

/// Method and parameters of a request, except `_meta`.
#[derive(Debug, Clone, Copy)]
pub enum RequestBody<'a> {
    /// `tools/call`
    CallTool {
        /// Name of the tool at the server.
        name: &'a str,
        /// Arguments, if the client sent any.
        arguments: Option<&'a Map<String, Value>>,
        /// Options for the task to create, or `None` if the call creates no task.
        task: Option<TaskOptions>,
    },
    /// `resources/read`.
    ReadResource(&'a str),
    /// `resources/subscribe`.
    Subscribe(&'a str),
    /// `resources/unsubscribe`.
    Unsubscribe(&'a str),
    /// `prompts/get`.
    GetPrompt {
        /// Name of the prompt at the server.
        name: &'a str,
        /// Arguments, if the client sent any.
        arguments: Option<&'a Value>,
    },
    /// `completion/complete`.
    Complete(Completion<'a>),
    /// A list method.
    List {
        /// Name of the list method.
        method: &'static str,
        /// Cursor of the page, as the server issued it, or `None` for the first page.
        cursor: Option<&'a str>,
    },
    /// `logging/setLevel`.
    SetLogLevel(&'static str),
    /// A method about one task.
    Task {
        /// Name of the task method.
        method: &'static str,
        /// Task id that the server issued.
        task: &'a str,
    },
}

/// Options for a task that a call creates.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TaskOptions {
    /// Duration for which the server should keep the task, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

/// Argument to be completed.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    /// Prompt or resource template that has the argument.
    pub of: CompletionOf<'a>,
    /// Name of the argument.
    pub argument: &'a str,
    /// Value that the user has typed so far.
    pub value: &'a str,
    /// Values of other arguments, if the client sent any.
    pub context: Option<&'a Value>,
}

/// Prompt or resource template whose argument is completed.
#[derive(Debug, Clone, Copy)]
pub enum CompletionOf<'a> {
    /// A prompt, by its name at the server.
    Prompt(&'a str),
    /// A resource template, by URI.
    Resource(&'a str),
}

impl ServerRequest {
    /// Builds a request.
    ///
    /// # Errors
    /// Returns an error if a field cannot be serialized as JSON.
    pub fn new(body: RequestBody<'_>, meta: &RequestMeta) -> Result<Self, serde_json::Error> {
        let fields = body.fields();
        let params = Params { meta, fields: &fields };
        let is_empty = fields.is_empty() && meta.is_empty();
        let params = if is_empty { None } else { Some(to_raw_value(&params)?) };
        Ok(Self { method: body.method().into(), params })
    }

    /// Returns the method name.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the parameters as raw JSON, including `_meta`.
    #[must_use]
    pub fn params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// Creates a request from unchecked parts, for testing the code that sends requests.
    #[cfg(any(test, feature = "fuzzing"))]
    #[must_use]
    pub fn unchecked(method: &str, params: Option<Box<RawValue>>) -> Self {
        Self { method: method.to_owned().into(), params }
    }
}

impl<'a> RequestBody<'a> {
    fn method(&self) -> &'static str {
        match self {
            Self::CallTool { .. } => "tools/call",
            Self::ReadResource(_) => "resources/read",
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::GetPrompt { .. } => "prompts/get",
            Self::Complete(_) => "completion/complete",
            Self::SetLogLevel(_) => "logging/setLevel",
            Self::List { method, .. } | Self::Task { method, .. } => method,
        }
    }

    /// Returns the parameters except `_meta`.
    fn fields(&self) -> Vec<(&'static str, Field<'a>)> {
        let text = |name, text: &'a str| (name, Field::Text(text));
        match *self {
            Self::CallTool { name, arguments, task } => {
                let arguments = arguments.map(|arguments| ("arguments", Field::Object(arguments)));
                let task = task.map(|task| ("task", Field::Task(task)));
                std::iter::once(text("name", name)).chain(arguments).chain(task).collect()
            }
            Self::ReadResource(uri) | Self::Subscribe(uri) | Self::Unsubscribe(uri) => vec![text("uri", uri)],
            Self::GetPrompt { name, arguments } => {
                let arguments = arguments.map(|arguments| ("arguments", Field::Value(arguments)));
                std::iter::once(text("name", name)).chain(arguments).collect()
            }
            Self::Complete(Completion { of, argument, value, context }) => {
                let of = match of {
                    CompletionOf::Prompt(name) => vec![text("type", "ref/prompt"), text("name", name)],
                    CompletionOf::Resource(uri) => vec![text("type", "ref/resource"), text("uri", uri)],
                };
                let argument = vec![text("name", argument), text("value", value)];
                let context = context
                    .map(|context| ("context", Field::Nested(vec![("arguments", Field::Value(context))])));
                let fields = [("ref", Field::Nested(of)), ("argument", Field::Nested(argument))];
                fields.into_iter().chain(context).collect()
            }
            Self::List { cursor, .. } => cursor.map(|cursor| text("cursor", cursor)).into_iter().collect(),
            Self::SetLogLevel(level) => vec![text("level", level)],
            Self::Task { task, .. } => vec![text("taskId", task)],
        }
    }
}

struct Params<'a> {
    meta: &'a RequestMeta,
    fields: &'a [(&'static str, Field<'a>)],
}

/// Value of a field, borrowed until it is serialized.
enum Field<'a> {
    Text(&'a str),
    Value(&'a Value),
    Object(&'a Map<String, Value>),
    Task(TaskOptions),
    Nested(Vec<(&'static str, Field<'a>)>),
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", self.meta)?;
        }
        for (name, field) in self.fields {
            map.serialize_entry(name, field)?;
        }
        map.end()
    }
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
            Self::Object(object) => object.serialize(serializer),
            Self::Task(task) => task.serialize(serializer),
            Self::Nested(fields) => serializer.collect_map(fields.iter().map(|(name, field)| (name, field))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn built(body: RequestBody<'_>, meta: &str) -> (String, Option<String>) {
        let meta = RequestMeta::read(Some(&RawValue::from_string(meta.to_owned()).unwrap())).unwrap();
        let request = ServerRequest::new(body, &meta).unwrap();
        (request.method().to_owned(), request.params().map(|params| params.get().to_owned()))
    }

    #[test]
    fn a_request_has_only_the_fields_of_its_method() {
        let arguments = json!({ "n": 1.0, "big": 18_446_744_073_709_551_615_u64, "t": "\n" });
        let call = RequestBody::CallTool {
            name: "t",
            arguments: arguments.as_object(),
            task: Some(TaskOptions { ttl: Some(5) }),
        };
        let expected = r#"{"_meta":{"progressToken":"p"},"name":"t","arguments":{"n":1.0,"big":18446744073709551615,"t":"\n"},"task":{"ttl":5}}"#;
        assert_eq!(
            built(call, r#"{"x":1,"progressToken":"p"}"#),
            ("tools/call".into(), Some(expected.into()))
        );
        let list = |cursor| RequestBody::List { method: "tools/list", cursor };
        assert_eq!(built(list(None), r#"{"x":1}"#), ("tools/list".into(), None));
        assert_eq!(built(list(Some("2")), "{}").1.unwrap(), r#"{"cursor":"2"}"#);
        let context = json!({ "a": "b" });
        let completion =
            |of| RequestBody::Complete(Completion { of, argument: "x", value: "y", context: Some(&context) });
        assert_eq!(
            built(completion(CompletionOf::Prompt("p")), "{}").1.unwrap(),
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"y"},"context":{"arguments":{"a":"b"}}}"#
        );
        assert_eq!(
            built(RequestBody::Task { method: "tasks/get", task: "t" }, "{}").1.unwrap(),
            r#"{"taskId":"t"}"#
        );
    }
}
