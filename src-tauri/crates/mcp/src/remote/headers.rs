//! HTTP headers that the protocol requires: session id, protocol version, method and name.

use crate::wire::Incoming;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum length of a session id in bytes. A longer id is ignored.
const MAX_SESSION_ID_LEN: usize = 4096;

/// Session id and protocol version that the server chose.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpSession {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl HttpSession {
    /// Returns `true` if the server assigned a session id.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Returns `true` if both have the same session id or neither has a session id.
    pub(super) fn has_same_session(&self, other: &Self) -> bool {
        self.session == other.session
    }

    /// Returns `true` if both have the same protocol version or neither has a protocol version.
    pub(super) fn has_same_version(&self, other: &Self) -> bool {
        self.version == other.version
    }

    /// Stores the session id from the response to `initialize`.
    pub(super) fn set_session(&mut self, answer: &HeaderMap) {
        self.session = answer.get(SESSION).filter(|id| id.len() <= MAX_SESSION_ID_LEN).cloned();
    }

    /// Stores the protocol version from the `initialize` result.
    pub(super) fn set_version(&mut self, result: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Chosen {
            protocol_version: String,
        }
        let chosen = serde_json::from_str::<Chosen>(result.get()).ok();
        self.version = chosen.and_then(|chosen| HeaderValue::from_str(&chosen.protocol_version).ok());
    }

    /// Returns the headers that every request has.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let known = [(SESSION, &self.session), (VERSION, &self.version)];
        headers.extend(known.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        headers
    }

    /// Returns the headers of a request that sends this message.
    pub(super) fn headers_for(&self, message: &Incoming) -> HeaderMap {
        let mut headers = self.headers();
        let (Incoming::Request { method, params, .. } | Incoming::Notification { method, params }) = message
        else {
            return headers;
        };
        let params = params.as_deref().and_then(|params| serde_json::from_str(params.get()).ok());
        let params: Params<'_> = params.unwrap_or_default();
        let version = params.meta.as_ref().and_then(|meta| meta.version.clone());
        let values =
            [(METHOD, Some(Cow::Borrowed(method.as_str()))), (NAME, params.name(method)), (VERSION, version)];
        for (name, value) in values {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&encode(&value)).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Returns the headers of a request that resumes a stream after this event.
    pub(super) fn resume_headers(&self, event: Option<&str>) -> HeaderMap {
        let mut headers = self.headers();
        headers.extend(event.and_then(|id| HeaderValue::from_str(id).ok()).map(|id| (LAST_EVENT, id)));
        headers
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow)]
    task_id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
}

impl<'a> Params<'a> {
    /// Returns the name for the `mcp-name` header, if the method has one.
    fn name(&self, method: &str) -> Option<Cow<'a, str>> {
        match method {
            "tools/call" | "prompts/get" => self.name.clone(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => self.uri.clone(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task_id.clone(),
            _ => None,
        }
    }
}

/// Encodes a string as a header value, in Base64 if necessary.
fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|b| matches!(b, b' '..=b'~')) && text.trim() == text;
    if is_plain && !text.starts_with("=?base64?") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("=?base64?{}?=", BASE64_STANDARD.encode(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers_for(session: &HttpSession, message: &str) -> Vec<(String, String)> {
        let headers = session.headers_for(&Incoming::parse(message.as_bytes()).unwrap());
        let mut all: Vec<_> =
            headers.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned())).collect();
        all.sort();
        all
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_request_has_session_version_and_method_headers() {
        let mut http = HttpSession::default();
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(headers_for(&http, initialize), pairs(&[("mcp-method", "initialize")]));
        http.set_session(&HeaderMap::from_iter([(SESSION, HeaderValue::from_static("s1"))]));
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#.to_owned();
        http.set_version(&RawValue::from_string(result).unwrap());
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"g\u00fc","arguments":{}}}"#;
        let session = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s1")];
        let method = [("mcp-method", "tools/call"), ("mcp-name", "=?base64?Z8O8?=")];
        assert_eq!(headers_for(&http, call), pairs(&[method, session].concat()));
        assert_eq!(headers_for(&http, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), pairs(&session));
        let modern = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let version = ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned());
        assert!(headers_for(&http, modern).contains(&version));
        assert_eq!(http.resume_headers(Some("9")).get(LAST_EVENT).unwrap(), "9");
    }
}
