//! Kinds of server requests to the client. The kind determines the allowed content of the response.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Maximum length of a name, model, stop reason or identifier in bytes.
pub(super) const MAX_NAME_LEN: usize = 256;

/// Maximum number of form fields in a response. Further fields are dropped.
const MAX_FIELDS: usize = 256;

/// Server request to the client, which determines the allowed content of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientRequest {
    /// `elicitation/create`, with the field names of its form.
    Elicitation(Vec<String>),
    /// `sampling/createMessage`.
    Sampling,
    /// `tasks/result`. The response has the same form as a response to the request for which the task was created.
    TaskResult,
    /// `tasks/get` or `tasks/cancel`.
    Task,
    /// `tasks/list`.
    TaskList,
    /// Any other request. Its response has no content.
    Other,
    /// A request that is waiting for the user's approval. The client has not received it and cannot respond to it.
    Withheld,
}

impl ClientRequest {
    /// Returns the kind of a request.
    #[must_use]
    pub fn new(method: &str, params: Option<&RawValue>) -> Self {
        match method {
            "elicitation/create" => Self::Elicitation(form_fields(params)),
            "sampling/createMessage" => Self::Sampling,
            "tasks/result" => Self::TaskResult,
            "tasks/get" | "tasks/cancel" => Self::Task,
            "tasks/list" => Self::TaskList,
            _ => Self::Other,
        }
    }

    /// Returns a method name for messages about the request.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elicitation(_) => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::TaskResult => "tasks/result",
            Self::Task => "tasks/get",
            Self::TaskList => "tasks/list",
            Self::Other | Self::Withheld => "request",
        }
    }
}

/// Returns the property names in an elicitation's `requestedSchema`.
fn form_fields(params: Option<&RawValue>) -> Vec<String> {
    let params: Option<FormParams> = params.and_then(|params| serde_json::from_str(params.get()).ok());
    params.map(|params| params.requested_schema.properties.0).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormParams {
    requested_schema: FormSchema,
}

#[derive(Deserialize)]
struct FormSchema {
    properties: FormFields,
}

/// Property names, without the server's descriptions of the properties.
struct FormFields(Vec<String>);

impl<'de> Deserialize<'de> for FormFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;
        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = FormFields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FormFields, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if names.len() < MAX_FIELDS && name.len() <= MAX_NAME_LEN {
                        names.push(name);
                    }
                }
                Ok(FormFields(names))
            }
        }
        deserializer.deserialize_map(KeysVisitor)
    }
}
