//! The two outputs that a message can take from here: to the client and to the core.

use super::request::RequestRefusal;
use crate::wire::{Id, Outgoing, Response, Share, notification_line, response_line, rewrite_params};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc::UnboundedSender;

/// Something for the core's reader.
#[derive(Debug)]
pub(super) enum ToSession {
    /// A line, with its share of the memory.
    Line(Vec<u8>, Option<Share>),
    /// A request of the client that was refused here.
    Refused(RefusedRequest),
    /// Nothing to read, but something to look at.
    Wake,
}

/// A request that was answered with why it is not taken, for the record.
#[derive(Debug)]
pub struct RefusedRequest {
    /// Its id.
    pub id: Id,
    /// Its method.
    pub method: String,
    /// Its parameters, as the client wrote them.
    pub params: Option<Box<RawValue>>,
    /// Why it was refused.
    pub why: String,
}

/// Both outputs, while the state is locked: what is sent keeps the order in which it was decided.
pub(super) struct Outputs<'a> {
    pub(super) to_client: &'a mut dyn FnMut(Outgoing),
    pub(super) to_session: &'a UnboundedSender<ToSession>,
    /// The share of the line of the client that is looked at, for the first line that it leads to.
    pub(super) share: Option<Share>,
}

impl Outputs<'_> {
    /// Sends the client a line.
    pub(super) fn client(&mut self, line: Outgoing) {
        let line = match self.share.take() {
            Some(share) => line.holding(share),
            None => line,
        };
        (self.to_client)(line);
    }

    /// Answers a request of the client with an error of ours, which the core puts on record.
    pub(super) fn refuse(
        &mut self,
        id: &Id,
        (method, params): (&str, Option<&RawValue>),
        refusal: &RequestRefusal,
    ) {
        let refused = RefusedRequest {
            id: id.clone(),
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            why: refusal.to_string(),
        };
        // As below.
        let _ = self.to_session.send(ToSession::Refused(refused));
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}\n", id.as_json(), refusal.error());
        self.client(Outgoing::line(line.into_bytes()));
    }

    /// Gives the core a line. Without a reader the session is over.
    pub(super) fn session(&mut self, line: Vec<u8>) {
        let _ = self.to_session.send(ToSession::Line(line, self.share.take()));
    }

    /// Has the core's reader look at the time again.
    pub(super) fn wake(&self) {
        // As above.
        let _ = self.to_session.send(ToSession::Wake);
    }

    /// Answers a request of the core's.
    pub(super) fn answer_session(&mut self, id: &Id, answer: Box<RawValue>) {
        self.session(response_line(id, &Response::Result(answer)));
    }

    /// Takes back a request that the core was given.
    pub(super) fn cancel(&mut self, id: &Id, reason: Option<Box<RawValue>>) {
        let Ok(request) = RawValue::from_string(id.as_json().to_owned()) else { return };
        let params = rewrite_params(None, |params, _| {
            params.set("requestId", request);
            if let Some(reason) = reason {
                params.set("reason", reason);
            }
        });
        self.session(notification_line("notifications/cancelled", params.ok().as_deref()));
    }

    /// Takes back a request that the core was given, for a reason of ours.
    pub(super) fn cancel_because(&mut self, id: &Id, reason: &str) {
        self.cancel(id, to_raw_value(reason).ok());
    }
}
