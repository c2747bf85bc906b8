//! The two destinations of translated messages: the client and the core.

use super::request::RequestRefusal;
use crate::wire::{Id, Outgoing, Response, Share, notification_line, response_line, rewrite_params};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc::UnboundedSender;

/// Message to the core's reader.
#[derive(Debug)]
pub(super) enum ToSession {
    /// A client line and the memory that it holds.
    Line(Vec<u8>, Option<Share>),
    /// A client request that was refused and answered here.
    Refused(RefusedRequest),
    /// Wakes the reader so that it checks its deadline.
    Wake,
}

/// Request that was answered with an error before it reached the core, kept for the audit log.
#[derive(Debug)]
pub struct RefusedRequest {
    /// Id of the request.
    pub id: Id,
    /// Method of the request.
    pub method: String,
    /// Parameters of the request as raw JSON.
    pub params: Option<Box<RawValue>>,
    /// Error message that the client received.
    pub why: String,
}

/// Both destinations. Used only while the state is locked, which preserves the order of messages.
pub(super) struct Outputs<'a> {
    pub(super) to_client: &'a mut dyn FnMut(Outgoing),
    pub(super) to_session: &'a UnboundedSender<ToSession>,
    /// Memory share of the client line that is being processed. The first line produced from it takes over the share.
    pub(super) share: Option<Share>,
}

impl Outputs<'_> {
    /// Sends a line to the client.
    pub(super) fn send_to_client(&mut self, line: Outgoing) {
        let line = match self.share.take() {
            Some(share) => line.holding(share),
            None => line,
        };
        (self.to_client)(line);
    }

    /// Answers a client request with an error of our own, and reports it to the core.
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
        // Sending fails only if the session is closed.
        let _ = self.to_session.send(ToSession::Refused(refused));
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}\n", id.as_json(), refusal.error());
        self.send_to_client(Outgoing::line(line.into_bytes()));
    }

    /// Sends a line to the core, unless the session is closed.
    pub(super) fn send_to_session(&mut self, line: Vec<u8>) {
        let _ = self.to_session.send(ToSession::Line(line, self.share.take()));
    }

    /// Wakes the core's reader so that it checks its deadline.
    pub(super) fn wake(&self) {
        // Sending fails only if the session is closed.
        let _ = self.to_session.send(ToSession::Wake);
    }

    /// Answers a request from the core.
    pub(super) fn answer_session(&mut self, id: &Id, answer: Box<RawValue>) {
        self.send_to_session(response_line(id, &Response::Result(answer)));
    }

    /// Cancels a request sent to the core.
    pub(super) fn cancel(&mut self, id: &Id, reason: Option<Box<RawValue>>) {
        let Ok(request) = RawValue::from_string(id.as_json().to_owned()) else { return };
        let params = rewrite_params(None, |params, _| {
            params.set("requestId", request);
            if let Some(reason) = reason {
                params.set("reason", reason);
            }
        });
        self.send_to_session(notification_line("notifications/cancelled", params.ok().as_deref()));
    }

    /// Cancels a request sent to the core, with our own reason.
    pub(super) fn cancel_because(&mut self, id: &Id, reason: &str) {
        self.cancel(id, to_raw_value(reason).ok());
    }
}
