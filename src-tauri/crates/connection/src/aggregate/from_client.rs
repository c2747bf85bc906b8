//! Handles the client's messages: answers requests that concern all servers, and routes every other request to one
//! server.
//!
//! - INVARIANT: each routed request reaches its server's session with the server's own names, and that session judges
//!   and records it.
//! - Requests that are rejected before they reach a session are recorded here.

use super::initialize::PendingInitialize;
use super::routing::{Destination, clipped};
use super::upstream::Phase;
use super::{Aggregate, task_lists};
use ironcurtain_audit::{DecidedBy, Entry, Event, PolicyDecision, redacted};
use ironcurtain_mcp::aggregate::{CatalogueKind, InitializeRequest, OwnRequest};
use ironcurtain_mcp::client::{ClientMessage, RefusedRequest};
use ironcurtain_mcp::server::MemoryShare;
use ironcurtain_mcp::wire::{
    Fields, Id, Incoming, Line, MAX_LINE_BYTES, Outgoing, PartialMessage, batch_members, error_line,
    id_in_truncated, notification_line, request_line, response_line, result_line,
};
use rmcp::model::ErrorCode;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Maximum number of dropped messages that are recorded per connection so that a client cannot fill the audit log.
const MAX_DROPPED_RECORDED: u64 = 100;

/// Name of the rule that rejects invalid messages, as recorded in the audit log.
const MALFORMED: &str = "structural-malformed";

/// Client request that is held until a server has started or the request times out.
pub(super) struct HeldRequest {
    id: Id,
    method: String,
    params: Option<Box<RawValue>>,
    share: MemoryShare,
}

impl Aggregate {
    pub(super) async fn handle_client_message(&mut self, message: ClientMessage) {
        let message = match message {
            ClientMessage::Line(message) => message,
            ClientMessage::Refused(refused) => {
                let RefusedRequest { id, method, params, why } = refused;
                return self.record_rejection(&id, &method, params.as_deref(), &why).await;
            }
        };
        let (line, share) = match message {
            Line::Whole(line, share) => (line, share.map(Arc::new)),
            Line::TooLong { length, head } => {
                let text = format!("the message is {length} bytes long; the limit is {MAX_LINE_BYTES} bytes");
                return self
                    .reject_line(id_in_truncated(&head).as_ref(), ErrorCode::INVALID_REQUEST.0, &text)
                    .await;
            }
            Line::NoMemory { head } => {
                let text = "not enough memory for a message of this length while other sessions use it; try again, or increase `memoryMib` in `config.json`";
                return self
                    .reject_line(id_in_truncated(&head).as_ref(), ErrorCode::INVALID_REQUEST.0, text)
                    .await;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let has_batches = self.initialize_request.as_ref().is_some_and(InitializeRequest::supports_batches);
        let batch = if has_batches { batch_members(&line) } else { None };
        let Some(batch) = batch else { return self.message(&line, share).await };
        for message in batch {
            self.message(message.get().as_bytes(), share.clone()).await;
        }
    }

    async fn message(&mut self, line: &[u8], share: MemoryShare) {
        match Incoming::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, method, params, share).await,
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params).await,
            Ok(Incoming::Response { id, response }) => {
                // If no request has this id, the server that sent the request has been closed.
                if let Some((upstream, own)) = self.tables.take_server_request(&id) {
                    self.send_to_upstream(upstream, response_line(&own, &response), share);
                }
            }
            Err(problem) => {
                let id = PartialMessage::recover(line).and_then(|partial| partial.id());
                self.reject_line(id.as_ref(), problem.code(), &problem.to_string()).await;
            }
        }
    }

    async fn request(&mut self, id: Id, method: String, params: Option<Box<RawValue>>, share: MemoryShare) {
        let is_in_use = self.tables.is_in_flight(&id)
            || self.held_requests.iter().any(|held_request| held_request.id == id)
            || self.task_lists.iter().any(|list| list.id == id);
        if is_in_use {
            let text = format!("the id {} is in use by a pending request", id.as_json());
            return self.reject_line(Some(&id), ErrorCode::INVALID_REQUEST.0, &text).await;
        }
        match method.as_str() {
            "ping" => self.reply(result_line(&id, &json!({}))),
            "initialize" => self.initialize(&id, params.as_deref()),
            _ if self.initialize_request.is_none() => {
                let problem = (ErrorCode::INVALID_REQUEST, "the first request must be `initialize`");
                self.reject(&id, &method, params.as_deref(), problem).await;
            }
            "logging/setLevel" => self.set_level(&id, params),
            task_lists::METHOD => self.list_tasks(id, params.as_deref()),
            _ => {
                let held_request = HeldRequest { id, method, params, share };
                if let Some(held_request) = self.try_answer(held_request).await {
                    self.held_requests.push(held_request);
                }
            }
        }
    }

    /// Answers or routes each held request that no longer has to wait.
    pub(super) async fn retry_held_requests(&mut self) {
        self.answer_due_initialize();
        self.answer_due_task_lists();
        for held_request in std::mem::take(&mut self.held_requests) {
            if let Some(held_request) = self.try_answer(held_request).await {
                self.held_requests.push(held_request);
            }
        }
    }

    /// Returns the time at which the next held request times out, or `None` if no request is held.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.held_requests
            .iter()
            .filter_map(|held_request| {
                self.wait_deadline(&held_request.method, held_request.params.as_deref())
            })
            .chain(self.task_lists_deadline())
            .chain(self.initialize_deadline())
            .min()
    }

    /// Routes or answers a request, or returns it if it must wait for a server.
    async fn try_answer(&mut self, held_request: HeldRequest) -> Option<HeldRequest> {
        let deadline = self.wait_deadline(&held_request.method, held_request.params.as_deref());
        let may_wait = deadline.is_some_and(|deadline| Instant::now() < deadline);
        if let Some(kind) = CatalogueKind::for_method(&held_request.method) {
            if may_wait {
                return Some(held_request);
            }
            self.answer_list(&held_request.id, kind, held_request.params.as_deref());
            return None;
        }
        match self.destination(&held_request.method, held_request.params.as_deref()) {
            Destination::Server(server, _) if self.starts_for_call(&server, may_wait) => Some(held_request),
            Destination::Server(server, fields) => {
                let HeldRequest { id, method, share, params } = held_request;
                if let Some(why) = self.refused_call(&server, &method, &fields) {
                    self.reject(&id, &method, params.as_deref(), (ErrorCode::INVALID_REQUEST, &why)).await;
                    return None;
                }
                self.forward_to_upstream(&server, &id, (&method, &fields), share);
                None
            }
            Destination::NoServer(ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::INVALID_PARAMS, _)
                if may_wait =>
            {
                Some(held_request)
            }
            Destination::NoServer(code, text) => {
                let HeldRequest { id, method, params, .. } = &held_request;
                self.reject(id, method, params.as_deref(), (code, &text)).await;
                None
            }
        }
    }

    /// Returns `true` if a call must wait for a remembered server to start and for its tools to be compared with
    /// their pins.
    fn starts_for_call(&mut self, server: &str, may_wait: bool) -> bool {
        let Some(upstream) = self.upstreams.get(server) else { return false };
        match upstream.phase {
            Phase::Remembered => {
                self.wake(server);
                true
            }
            Phase::Starting | Phase::Running => upstream.is_waking && may_wait,
            Phase::Missing(_) | Phase::Closed => false,
        }
    }

    fn forward_to_upstream(
        &mut self,
        server: &str,
        id: &Id,
        (method, fields): (&str, &Fields),
        share: MemoryShare,
    ) {
        let Some(upstream) = self.upstreams.get(server) else {
            return self.fail(id, ErrorCode::INTERNAL_ERROR, &format!("the server `{server}` has closed"));
        };
        let params = match to_raw_value(fields) {
            Ok(params) => params,
            Err(problem) => return self.fail(id, ErrorCode::INTERNAL_ERROR, &problem.to_string()),
        };
        match upstream.send(request_line(id, method, Some(&params)), share) {
            Ok(()) => self.tables.add_client_request(id, upstream.number, method, fields),
            Err(full) => self.fail(id, ErrorCode::INTERNAL_ERROR, &full.to_string()),
        }
    }

    fn initialize(&mut self, id: &Id, params: Option<&RawValue>) {
        if self.initialize_request.is_some() {
            return self.fail(id, ErrorCode::INVALID_REQUEST, "the session is initialized already");
        }
        match InitializeRequest::parse(params) {
            Err(problem) => self.fail(id, ErrorCode::INVALID_PARAMS, &problem.to_string()),
            Ok(request) => {
                self.initialize_request = Some(request);
                self.initialized_at = Instant::now();
                self.pending_initialize = Some(PendingInitialize::new(id.clone()));
                self.look_up_tools();
                let numbers: Vec<u64> = self.upstreams.values().map(|upstream| upstream.number).collect();
                numbers.into_iter().for_each(|upstream| self.initialize_upstream(upstream));
            }
        }
    }

    fn set_level(&mut self, id: &Id, params: Option<Box<RawValue>>) {
        self.level = params;
        let with_log: Vec<u64> = self
            .upstreams
            .values()
            .filter(|upstream| upstream.has("logging"))
            .map(|upstream| upstream.number)
            .collect();
        with_log.into_iter().for_each(|upstream| self.send_log_level(upstream));
        self.reply(result_line(id, &json!({})));
    }

    /// Forwards the client's log level to a server, if the client has set one.
    pub(super) fn send_log_level(&mut self, upstream: u64) {
        if let Some(level) = self.level.clone() {
            self.send_request(upstream, OwnRequest::Level, "logging/setLevel", Some(&level));
        }
    }

    fn answer_list(&mut self, id: &Id, kind: CatalogueKind, params: Option<&RawValue>) {
        let cursor = params.and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        let cursor = cursor.as_ref().and_then(|params| params.get("cursor"));
        let cursor = cursor.map(|raw| serde_json::from_str::<String>(raw.get()).unwrap_or_default());
        match self.catalogue.page(kind, cursor.as_deref()) {
            Some(page) => {
                self.unchanged_since_read.insert(kind.change_notification());
                if kind == CatalogueKind::Tools {
                    self.upstreams.values_mut().for_each(|upstream| upstream.outdated.clear());
                }
                self.reply(result_line(id, &page));
            }
            None => self.fail(
                id,
                ErrorCode::INVALID_PARAMS,
                "unknown `params.cursor`; request the list from the start",
            ),
        }
    }

    async fn notification(&mut self, method: &str, params: Option<Box<RawValue>>) {
        let fields = params.as_ref().and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        let raw = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
        match method {
            // Each server is notified after it answers `initialize`.
            "notifications/initialized" => {}
            "notifications/roots/list_changed" => {
                let line = notification_line(method, params.as_deref());
                let running = self
                    .upstreams
                    .values()
                    .filter(|upstream| upstream.phase == Phase::Running)
                    .map(|upstream| upstream.number);
                for upstream in running.collect::<Vec<_>>() {
                    self.send_to_upstream(upstream, line.clone(), None);
                }
            }
            "notifications/cancelled" => {
                let Some(id) = raw("requestId").and_then(|raw| Id::try_from(raw).ok()) else { return };
                self.held_requests.retain(|held_request| held_request.id != id);
                self.task_lists.retain(|list| list.id != id);
                if let Some(upstream) = self.tables.upstream_of(&id) {
                    self.tables.take_client_request(&id, None);
                    self.send_to_upstream(upstream, notification_line(method, params.as_deref()), None);
                }
            }
            "notifications/progress" => {
                let Some((upstream, token)) =
                    raw("progressToken").and_then(|token| self.tables.original_token(token))
                else {
                    return;
                };
                let Some(mut fields) = fields else { return };
                fields.set("progressToken", token);
                let params = to_raw_value(&fields).ok();
                self.send_to_upstream(upstream, notification_line(method, params.as_deref()), None);
            }
            _ => {
                let text = "dropped a message without an id that is not a client notification";
                self.dropped(&format!("{text}: {}", clipped(method))).await;
            }
        }
    }

    /// Sends the client a message that IronCurtain created.
    pub(super) fn reply(&self, line: Vec<u8>) {
        let unread = self.unread.clone().try_acquire_owned().ok();
        self.to_client.send(Outgoing::line(line).holding(unread));
    }

    pub(super) fn fail(&self, id: &Id, code: ErrorCode, text: &str) {
        self.reply(error_line(Some(id), code.0, text));
    }

    /// Answers the client's `initialize` if it is pending, and fails all other requests that are held for a server.
    pub(super) fn fail_all(&mut self, text: &str) {
        self.answer_initialize();
        for list in std::mem::take(&mut self.task_lists) {
            self.fail(&list.id, ErrorCode::INTERNAL_ERROR, text);
        }
        for held_request in std::mem::take(&mut self.held_requests) {
            self.fail(&held_request.id, ErrorCode::INTERNAL_ERROR, text);
        }
    }

    /// Records that a line was dropped, and sends the client an error.
    async fn reject_line(&mut self, id: Option<&Id>, code: i32, text: &str) {
        self.dropped(text).await;
        self.reply(error_line(id, code, text));
    }

    async fn dropped(&mut self, text: &str) {
        self.dropped_messages += 1;
        if self.dropped_messages <= MAX_DROPPED_RECORDED {
            let mut entry = Entry::new(Event::Decision, "a message was dropped");
            entry.policy_decision = Some(PolicyDecision::deny(DecidedBy::Malformed, MALFORMED, text));
            self.record(entry).await;
        }
    }

    /// Records that a request was rejected, and answers it with an error.
    async fn reject(
        &mut self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
        (code, text): (ErrorCode, &str),
    ) {
        self.record_rejection(id, method, params, text).await;
        self.fail(id, code, text);
    }

    /// Records a rejected request. Secrets in it are redacted.
    async fn record_rejection(&self, id: &Id, method: &str, params: Option<&RawValue>, text: &str) {
        let params: Map<String, Value> =
            params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let mut entry = Entry::new(Event::Decision, "the request was rejected");
        entry.request_id = Some(id.as_json().to_owned());
        entry.method = Some(method.to_owned());
        entry.policy_decision = Some(PolicyDecision::deny(DecidedBy::Malformed, MALFORMED, text));
        entry.arguments = Some(redacted(&params));
        self.record(entry).await;
    }
}
