//! The head of an answer: whether there is something to read, and in which form, or why there is not.

use super::RefusedLogin;
use super::fault::Fault;
use crate::wire::{Id, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use hyper::{Response, StatusCode};
use ironcurtain_visible as visible;
use serde::Deserialize;

/// The number of characters that are repeated of what a server says of an error.
pub(super) const LONGEST_SAID: usize = 300;

/// The judgement of an answer's head.
pub(super) enum Head {
    /// There is something to read.
    Good,
    /// There is nothing.
    Faulty(Fault),
    /// The same, and its text may say why.
    Explained(Fault),
}

impl Head {
    /// Judges it. `is_awaited`, when a message is waited for; `foreign` makes a text of the server one that can be shown.
    pub(super) fn of<B>(
        answer: &Response<B>,
        is_awaited: bool,
        has_session: bool,
        refused: &RefusedLogin,
        foreign: impl Fn(&[u8]) -> String,
    ) -> Self {
        let status = answer.status();
        let text = |name: HeaderName| Some(foreign(answer.headers().get(name)?.as_bytes()));
        Self::Faulty(match status {
            StatusCode::OK => return Self::Good,
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT if !is_awaited => return Self::Good,
            StatusCode::NOT_FOUND if has_session => Fault::Forgotten,
            StatusCode::NOT_FOUND => return Self::Explained(Fault::NotThere),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::NotLetIn(refused(status.as_u16())),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Fault::Busy { status: status.as_u16(), retry_after: text(RETRY_AFTER) }
            }
            _ if status.is_redirection() => {
                let to = text(LOCATION).unwrap_or_default();
                let to = to.split(['?', '#']).next().unwrap_or_default().to_owned();
                Fault::Moved { status: status.as_u16(), to }
            }
            _ => return Self::Explained(Fault::Status { status: status.as_u16(), said: String::new() }),
        })
    }
}

/// The form of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    Message,
    Events,
    WebPage,
    Other(String),
}

/// The form that its headers name.
pub(super) fn form(headers: &HeaderMap) -> Form {
    let form = headers.get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
    let form = form.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match form.as_str() {
        "application/json" => Form::Message,
        "text/event-stream" => Form::Events,
        "text/html" => Form::WebPage,
        "" => Form::Other("nothing".to_owned()),
        _ => Form::Other(visible::head(&visible::line(&form), LONGEST_SAID)),
    }
}

/// Returns `true` if a text is the message that is waited for.
pub(super) fn answers(text: &[u8], awaited: &Id) -> bool {
    matches!(Incoming::parse(text), Ok(Incoming::Response { id, .. }) if id == *awaited)
}

/// The words of the text that explains an answer: those of its error, where it is one of the protocol.
pub(super) fn words(reason: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Words,
    }
    #[derive(Deserialize)]
    struct Words {
        message: String,
    }
    let refusal = serde_json::from_slice::<Refusal>(reason).ok();
    refusal.map_or_else(|| reason.to_vec(), |refusal| refusal.error.message.into_bytes())
}
