//! Envelope of a JSON-RPC message. The content stays raw text.

use super::{LineGuard, Outgoing};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Maximum length of a request id as JSON text, in bytes.
const MAX_ID_LEN: usize = 1024;

/// Request id as raw JSON text: a number or a string of at most 1 KiB. Ids are equal if their JSON texts are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Arc<str>);

impl Id {
    /// Creates a string id.
    #[must_use]
    pub fn from_string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().into())
    }

    /// Returns the id as JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&RawValue> for Id {
    type Error = MessageError;

    fn try_from(raw: &RawValue) -> Result<Self, MessageError> {
        let text = raw.get();
        if text.len() > MAX_ID_LEN {
            return Err(MessageError::IdTooLong(text.len()));
        }
        let number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if number || text.starts_with('"') { Ok(Self(text.into())) } else { Err(MessageError::InvalidId) }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

/// Reason a line is not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Invalid JSON (JSON-RPC 2.0: -32700).
    #[error("the message is not JSON: {0}")]
    InvalidJson(String),
    /// A batch, which only protocol version 2025-03-26 supports.
    #[error("only protocol version 2025-03-26 has batches; send one message per line")]
    Batch,
    /// Valid JSON, but not a JSON-RPC message (JSON-RPC 2.0: -32600).
    #[error("the message is not JSON-RPC 2.0: {0}")]
    InvalidJsonRpc(String),
    /// The id is neither a number nor a string.
    #[error("the message's `id` is neither a number nor a string")]
    InvalidId,
    /// The id exceeds the maximum length.
    #[error("the message's `id` is {0} bytes long; the limit is {MAX_ID_LEN}")]
    IdTooLong(usize),
}

impl MessageError {
    /// Returns the error code from JSON-RPC 2.0, section 5.1.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::InvalidJson(_) => -32700,
            Self::Batch | Self::InvalidJsonRpc(_) | Self::InvalidId | Self::IdTooLong(_) => -32600,
        }
    }
}

/// Parsed JSON-RPC message.
#[derive(Debug)]
pub enum Incoming {
    /// A message that requires a response.
    Request {
        /// Id to be repeated in the response.
        id: Id,
        /// Name of the method.
        method: String,
        /// Parameters as raw JSON.
        params: Option<Box<RawValue>>,
    },
    /// A message that must not be answered.
    Notification {
        /// Name of the method.
        method: String,
        /// Parameters as raw JSON.
        params: Option<Box<RawValue>>,
    },
    /// A response to one of our requests.
    Response {
        /// Id of the request that is answered.
        id: Id,
        /// Payload of the response.
        response: Response,
    },
}

/// Unparsed payload of a response.
#[derive(Debug, Clone)]
pub enum Response {
    /// The request succeeded, with this result as raw JSON.
    Result(Box<RawValue>),
    /// The request failed, with this error object as raw JSON.
    Error(Box<RawValue>),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    id: Option<&'a RawValue>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

/// Deserializes a field that is present, even if it is `null`: a message with the id `null` is not a notification.
fn deserialize_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Incoming {
    /// Parses one line.
    ///
    /// # Errors
    /// Returns an error with a message for the sender.
    pub fn parse(line: &[u8]) -> Result<Self, MessageError> {
        let first = line.iter().find(|b| !b.is_ascii_whitespace());
        if first == Some(&b'[') {
            return Err(MessageError::Batch);
        }
        let envelope: Envelope<'_> = serde_json::from_slice(line).map_err(|e| match e.classify() {
            Category::Data => MessageError::InvalidJsonRpc(e.to_string()),
            Category::Io | Category::Syntax | Category::Eof => MessageError::InvalidJson(e.to_string()),
        })?;
        if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(MessageError::InvalidJsonRpc("`jsonrpc` is not \"2.0\"".to_owned()));
        }
        let id = envelope.id.map(Id::try_from).transpose();
        let Envelope { method, params, result, error, .. } = envelope;
        match (method, id, result, error) {
            (Some(method), Ok(Some(id)), None, None) => Ok(Self::Request { id, method, params }),
            (Some(method), Ok(None), None, None) => Ok(Self::Notification { method, params }),
            (None, Ok(Some(id)), Some(result), None) => {
                Ok(Self::Response { id, response: Response::Result(result) })
            }
            (None, Ok(Some(id)), None, Some(error)) => {
                Ok(Self::Response { id, response: Response::Error(error) })
            }
            (_, Err(bad), _, _) => Err(bad),
            _ => Err(MessageError::InvalidJsonRpc(
                "it is neither a request, a notification nor a response".to_owned(),
            )),
        }
    }
}

impl Incoming {
    /// Parses an outgoing line, and returns the message with the line's guard.
    ///
    /// # Errors
    /// Returns the line unchanged if it is not a message.
    pub fn from_outgoing(line: Outgoing) -> Result<(Self, LineGuard), Outgoing> {
        let Ok(mut message) = Self::parse(&line.envelope()) else { return Err(line) };
        let (body, guard) = line.into_body();
        let slot = match &mut message {
            Self::Request { params, .. } | Self::Notification { params, .. } => params.as_mut(),
            Self::Response { response: Response::Result(body) | Response::Error(body), .. } => Some(body),
        };
        if let (Some(slot), Some(body)) = (slot, body) {
            *slot = body;
        }
        Ok((message, guard))
    }
}

/// Returns the raw messages of a batch, or `None` if the line is not a batch or the batch is empty.
#[must_use]
pub fn batch_members(line: &[u8]) -> Option<Vec<&RawValue>> {
    serde_json::from_slice(line).ok().filter(|batch_members: &Vec<_>| !batch_members.is_empty())
}

/// Parts recovered from an invalid message, for reporting the error to its sender or to the requester.
#[derive(Debug, PartialEq, Eq)]
pub struct PartialMessage {
    /// Raw JSON text of the id, if one was found.
    pub id: Option<String>,
    /// `true` if the message appears to be a response.
    pub is_response: bool,
}

impl PartialMessage {
    /// Recovers the readable parts. Returns `None` if the line is not a JSON object.
    #[must_use]
    pub fn recover(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Recovered<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            method: Option<de::IgnoredAny>,
            result: Option<de::IgnoredAny>,
            error: Option<de::IgnoredAny>,
        }
        let text = String::from_utf8_lossy(line);
        let parts: Recovered<'_> = serde_json::from_str(&text).ok()?;
        let id = parts.id.map(|id| id.get().to_owned()).filter(|id| id.len() <= MAX_ID_LEN);
        let is_answer = id.is_some() || parts.result.is_some() || parts.error.is_some();
        Some(Self { id, is_response: is_answer && parts.method.is_none() })
    }

    /// Returns the id, if it is valid.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        Id::try_from(&*RawValue::from_string(self.id.clone()?).ok()?).ok()
    }
}

/// Returns a request line.
#[must_use]
pub fn request_line(id: &Id, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    method_line(&format!("\"id\":{},", id.as_json()), method, params)
}

/// Returns a request line without copying the parameters.
#[must_use]
pub fn request_parts(id: &Id, method: &str, params: Option<Box<RawValue>>) -> Outgoing {
    match params {
        None => Outgoing::line(request_line(id, method, None)),
        Some(params) => {
            let method = serde_json::Value::from(method);
            let id = id.as_json();
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":");
            Outgoing::with_body(head.into_bytes(), params, b"}\n")
        }
    }
}

/// Returns a notification line.
#[must_use]
pub fn notification_line(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    method_line("", method, params)
}

/// Returns a response line with an unchanged payload.
#[must_use]
pub fn response_line(id: &Id, response: &Response) -> Vec<u8> {
    let (name, value) = match response {
        Response::Result(value) => ("result", value),
        Response::Error(value) => ("error", value),
    };
    join_lines(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"{name}\":{}}}", id.as_json(), value.get()).into_bytes(),
    )
}

/// Returns a response line without copying the payload.
#[must_use]
pub fn response_parts(id: &Id, response: Response) -> Outgoing {
    let (name, value) = match response {
        Response::Result(value) => ("result", value),
        Response::Error(value) => ("error", value),
    };
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"{name}\":", id.as_json());
    Outgoing::with_body(head.into_bytes(), value, b"}\n")
}

/// Returns a response line with a serialized result.
#[must_use]
pub fn result_line(id: &Id, result: &impl Serialize) -> Vec<u8> {
    match serde_json::value::to_raw_value(result) {
        Ok(raw) => response_line(id, &Response::Result(raw)),
        Err(e) => error_line(Some(id), -32603, &format!("failed to serialize the response: {e}")),
    }
}

/// Returns an error response line. Its id is `null` if the request's id could not be read.
#[must_use]
pub fn error_line(id: Option<&Id>, code: i32, message: &str) -> Vec<u8> {
    let id = id.map_or("null", Id::as_json);
    let message = serde_json::Value::from(message);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}\n")
        .into_bytes()
}

fn method_line(id: &str, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let method = serde_json::Value::from(method);
    let params = params.map(|p| format!(",\"params\":{}", p.get())).unwrap_or_default();
    join_lines(format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":{method}{params}}}").into_bytes())
}

/// Replaces line breaks with spaces. Raw values can contain line breaks between tokens, and some readers would split
/// the message there.
fn join_lines(mut line: Vec<u8>) -> Vec<u8> {
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_passes_through_unchanged() {
        let line = br#"{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"n":1.0,"big":123456789012345678901234567890}}"#;
        let Ok(Incoming::Request { id, method, params }) = Incoming::parse(line) else { panic!() };
        let mut expected = br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"n":1.0,"big":123456789012345678901234567890}}"#.to_vec();
        expected.push(b'\n');
        assert_eq!((id.as_json(), method.as_str()), ("\"x\"", "tools/list"));
        assert_eq!(request_line(&Id::from(7), &method, params.as_deref()), expected);
    }

    #[test]
    fn invalid_messages_have_a_reason() {
        let code = |line: &[u8]| Incoming::parse(line).unwrap_err().code();
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\","), -32700);
        assert_eq!(code(b"\xff\xfe"), -32700);
        assert_eq!(code(b"[{\"jsonrpc\":\"2.0\"}]"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":1}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\"}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}"), -32600);
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"result\":{}}"), -32600);
        assert_eq!(code(b"42"), -32600);
    }

    #[test]
    fn the_id_of_an_invalid_message_is_found() {
        let id = |line: &[u8]| PartialMessage::recover(line)?.id().map(|id| id.as_json().to_owned());
        let not_utf8 =
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"a\":\"\xff\"}}";
        assert_eq!(id(not_utf8).as_deref(), Some("7"));
        assert_eq!(id(b"{\"id\":\"x\",\"result\":{},\"error\":{}}").as_deref(), Some("\"x\""));
        assert_eq!(id(b"{\"id\":{},\"method\":\"ping\"}"), None);
        assert_eq!(id(b"{\"id\":5,"), None);
        let parsed = PartialMessage::recover(b"{\"id\":null,\"error\":{}}").unwrap();
        assert_eq!(parsed, PartialMessage { id: None, is_response: true });
        assert_eq!(
            PartialMessage::recover(b"{\"jsonrpc\":\"1.0\"}"),
            Some(PartialMessage { id: None, is_response: false })
        );
    }

    #[test]
    fn an_id_of_one_kibibyte_is_accepted_and_a_longer_one_refused() {
        let parse = |length: usize| {
            let id = "x".repeat(length - 2);
            Incoming::parse(format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#).as_bytes())
        };
        assert!(matches!(parse(1024), Ok(Incoming::Request { .. })));
        let refused = parse(1025).unwrap_err();
        assert_eq!(refused.code(), -32600);
        assert_eq!(refused.to_string(), "the message's `id` is 1025 bytes long; the limit is 1024");
    }

    #[test]
    fn a_line_feed_between_tokens_does_not_end_the_line() {
        let params = RawValue::from_string("{\n\"a\":\r\n1}".to_owned()).unwrap();
        let line = notification_line("x", Some(&params));
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        assert!(line.ends_with(b"}\n"));
    }

    #[test]
    fn the_body_of_a_message_is_unchanged() {
        let raw = RawValue::from_string(r#"{"n":1.0}"#.to_owned()).unwrap();
        let line = response_parts(&7.into(), Response::Result(raw));
        let Ok((Incoming::Response { id, response: Response::Result(result) }, _)) =
            Incoming::from_outgoing(line)
        else {
            panic!()
        };
        assert_eq!((id.as_json(), result.get()), ("7", r#"{"n":1.0}"#));
        let line = Incoming::from_outgoing(Outgoing::line(b"{\"id\":null}\n".to_vec())).unwrap_err();
        assert_eq!(line.bytes().collect::<Vec<_>>(), b"{\"id\":null}\n");
    }
}
