//! Checks the head of an HTTP response: the content type, or the error.

use super::RefusedLogin;
use super::fault::Fault;
use crate::wire::{Id, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use ironcurtain_visible as visible;
use serde::Deserialize;

/// Maximum length of server text quoted in an error message, in characters.
pub(super) const MAX_MESSAGE_LEN: usize = 300;

/// Result of checking a response head.
pub(super) enum Head {
    /// The body contains messages.
    Accepted,
    /// The request failed with this fault.
    Failed(Fault),
    /// The request failed with this fault, and the body may explain why.
    FailedWithBody(Fault),
}

impl Head {
    /// Checks a response head. `is_awaited` is `true` if a message must follow; `foreign` sanitizes server text for
    /// display.
    pub(super) fn check<B>(
        answer: &Response<B>,
        is_awaited: bool,
        has_session: bool,
        refused: &RefusedLogin,
        sanitize: impl Fn(&[u8]) -> String,
    ) -> Self {
        let status = answer.status();
        let text = |name: HeaderName| Some(sanitize(answer.headers().get(name)?.as_bytes()));
        Self::Failed(match status {
            StatusCode::OK => return Self::Accepted,
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT if !is_awaited => return Self::Accepted,
            StatusCode::NOT_FOUND if has_session => Fault::SessionLost,
            StatusCode::NOT_FOUND => return Self::FailedWithBody(Fault::NotFound),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let scope = text(WWW_AUTHENTICATE).and_then(|challenge| required_scope(&challenge));
                let (status, scope) = (status.as_u16(), scope.as_deref());
                Fault::Unauthorized { status, advice: refused(status, scope) }
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Fault::Busy { status: status.as_u16(), retry_after: text(RETRY_AFTER) }
            }
            _ if status.is_redirection() => {
                let to = text(LOCATION).unwrap_or_default();
                let to = to.split(['?', '#']).next().unwrap_or_default().to_owned();
                Fault::Moved { status: status.as_u16(), to }
            }
            _ => {
                return Self::FailedWithBody(Fault::Status {
                    status: status.as_u16(),
                    explanation: String::new(),
                });
            }
        })
    }
}

/// Returns the scope that a challenge with `error="insufficient_scope"` requires.
fn required_scope(challenge: &str) -> Option<String> {
    if !challenge.contains("insufficient_scope") {
        return None;
    }
    let (_, rest) = challenge.split_once("scope=\"")?;
    let (scope, _) = rest.split_once('"')?;
    let is_scope = |c: char| c.is_ascii_graphic() || c == ' ';
    (!scope.is_empty() && scope.chars().all(is_scope)).then(|| scope.to_owned())
}

/// Format of a response body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    Message,
    Events,
    WebPage,
    Other(String),
}

/// Returns the body format that the headers declare.
pub(super) fn body_format(headers: &HeaderMap) -> BodyFormat {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match content_type.as_str() {
        "application/json" => BodyFormat::Message,
        "text/event-stream" => BodyFormat::Events,
        "text/html" => BodyFormat::WebPage,
        "" => BodyFormat::Other("nothing".to_owned()),
        _ => BodyFormat::Other(visible::head(&visible::line(&content_type), MAX_MESSAGE_LEN)),
    }
}

/// Returns `true` if `text` is the response to the request `awaited`.
pub(super) fn is_response_to(text: &[u8], awaited: &Id) -> bool {
    matches!(Incoming::parse(text), Ok(Incoming::Response { id, .. }) if id == *awaited)
}

/// Returns the explanation in an error body: the message of a JSON-RPC error, or else the whole text.
pub(super) fn error_explanation(reason: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Refusal {
        error: ErrorObject,
    }
    #[derive(Deserialize)]
    struct ErrorObject {
        message: String,
    }
    let refusal = serde_json::from_slice::<Refusal>(reason).ok();
    refusal.map_or_else(|| reason.to_vec(), |refusal| refusal.error.message.into_bytes())
}
