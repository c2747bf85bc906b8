//! State of the conversation with a stateless client. Takes one message at a time and produces messages for both sides.

use super::in_flight::Calls;
use super::initialize::{InitializeResult, ServerFacts, initialize};
use super::input_required::InputRequest;
use super::logging::{self, Level};
use super::outputs::{Outputs, ToSession};
use super::request::{Envelope, RequestRefusal};
use super::subscriptions::{self, FollowedResource, Subscriptions};
use crate::wire::{
    Fields, Id, Incoming, LineGuard, Outgoing, Response, Share, client_may_send, error_line,
    notification_line, request_line, response_parts,
};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// Prefix of our own request ids to the core.
const OWN_ID_PREFIX: &str = "\"ironcurtain:";

/// Conversation shared by the client's reader and writer.
#[derive(Debug)]
pub(super) struct Conversation {
    state: Mutex<State>,
    to_session: UnboundedSender<ToSession>,
}

#[derive(Debug, Default)]
struct State {
    initialize: Initialize,
    facts: ServerFacts,
    calls: Calls,
    subscriptions: Subscriptions,
    /// Our own requests to the core.
    own_requests: HashMap<Id, OwnRequest>,
    last: u64,
    /// Log level that was last set on the server, or `None` if no level was set.
    level: Option<Level>,
}

#[derive(Debug, Default)]
enum Initialize {
    /// No valid message has arrived yet.
    #[default]
    None,
    /// The core is being initialized. Meanwhile, client lines are queued, each with its memory share.
    Pending(Vec<(Vec<u8>, Option<Share>)>),
    /// The core is initialized, with this result.
    Done(InitializeResult),
    /// The client uses a handshake version, so messages are forwarded unchanged.
    Handshake,
}

#[derive(Debug)]
enum OwnRequest {
    Initialize,
    Follow(FollowedResource),
    /// Request whose response is ignored.
    Other,
}

impl Conversation {
    pub(super) fn new(to_session: UnboundedSender<ToSession>, initialized: Option<InitializeResult>) -> Self {
        let facts = initialized.as_ref().map(InitializeResult::facts).unwrap_or_default();
        let initialize = initialized.map_or(Initialize::None, Initialize::Done);
        Self { state: Mutex::new(State { initialize, facts, ..State::default() }), to_session }
    }

    /// Handles a line from the client.
    pub(super) fn receive(&self, line: Vec<u8>, share: Option<Share>, to_client: &mut dyn FnMut(Outgoing)) {
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share };
        self.state().receive(line, &mut outputs);
    }

    /// Handles a line from the core.
    pub(super) fn send(&self, line: Outgoing, to_client: &mut dyn FnMut(Outgoing)) {
        let mut state = self.state();
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        if matches!(state.initialize, Initialize::Handshake) {
            return outputs.send_to_client(line);
        }
        match Incoming::from_outgoing(line) {
            Err(line) => outputs.send_to_client(line),
            Ok((Incoming::Response { id, response }, guard)) => {
                state.handle_response(&id, response, guard, &mut outputs)
            }
            Ok((Incoming::Request { id, method, params }, guard)) => {
                let request = InputRequest { id, method, params, _guard: guard, key: String::new() };
                state.handle_input_request(request, &mut outputs);
            }
            Ok((Incoming::Notification { method, params }, guard)) => {
                state.handle_session_notification(&method, params.as_deref(), guard, &mut outputs);
            }
        }
    }

    /// Returns the time at which [`Conversation::expire`] must be called next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.state().calls.deadline()
    }

    /// Cancels requests that timed out.
    pub(super) fn expire(&self, to_client: &mut dyn FnMut(Outgoing)) {
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        self.state().calls.expire(Instant::now(), &mut outputs);
    }

    /// Handles client EOF by cancelling pending requests. Returns `true` if the core's `initialize` has completed.
    pub(super) fn handle_eof(&self, to_client: &mut dyn FnMut(Outgoing)) -> bool {
        let mut state = self.state();
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        state.calls.cancel_waiting(&mut outputs);
        !matches!(state.initialize, Initialize::Pending(_))
    }

    /// Prepares the handover to another process. Returns the lines that the other process must read again.
    pub(super) fn hand_over(&self, to_client: &mut dyn FnMut(Outgoing)) -> Vec<u8> {
        let mut state = self.state();
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        state.calls.cancel_waiting(&mut outputs);
        state.subscriptions.complete_all(&mut outputs);
        let Initialize::Pending(queue) = &mut state.initialize else { return Vec::new() };
        queue.drain(..).flat_map(|(line, _)| line.into_iter().chain([b'\n'])).collect()
    }

    /// Returns the core's `initialize` result.
    pub(super) fn initialized(&self) -> Option<InitializeResult> {
        match &self.state().initialize {
            Initialize::Done(initialized) => Some(initialized.clone()),
            Initialize::None | Initialize::Pending(_) | Initialize::Handshake => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn receive(&mut self, line: Vec<u8>, outputs: &mut Outputs<'_>) {
        if matches!(self.initialize, Initialize::Handshake) {
            return outputs.send_to_session(line);
        }
        match Incoming::parse(&line) {
            // Forwarded, because the core reports the error.
            Err(_) => outputs.send_to_session(line),
            // Dropped: a stateless client answers by retrying its call, never with a response.
            Ok(Incoming::Response { .. }) => {}
            Ok(Incoming::Notification { method, params }) => {
                self.handle_notification(&method, params.as_deref(), line, outputs);
            }
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(refusal) = self.handle_request(&id, &method, params.as_deref(), line, outputs) {
                    outputs.refuse(&id, (&method, params.as_deref()), &refusal);
                }
            }
        }
    }

    fn handle_notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        line: Vec<u8>,
        outputs: &mut Outputs<'_>,
    ) {
        if method != "notifications/cancelled" {
            // Notifications that clients must not send are forwarded to the core, which drops them. This protocol
            // version defines no other client notifications.
            if !client_may_send(method) {
                outputs.send_to_session(line);
            }
            return;
        }
        let Some(params) = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok()) else {
            return;
        };
        let Some(id) = params.get("requestId").and_then(|raw| Id::try_from(raw).ok()) else { return };
        if let Initialize::Pending(queue) = &mut self.initialize {
            queue.retain(|(line, _)| {
                !matches!(Incoming::parse(line), Ok(Incoming::Request { id: queued, .. }) if queued == id)
            });
        }
        for uri in self.subscriptions.close(&id) {
            let own = self.add_own_request(OwnRequest::Other);
            outputs.send_to_session(subscriptions::request(&own, "resources/unsubscribe", &uri));
        }
        if let Some(core) = self.calls.core_id(&id) {
            self.calls.remove(&core);
            outputs.cancel(&core, params.get("reason").map(ToOwned::to_owned));
        }
    }

    fn handle_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
        line: Vec<u8>,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        match (&mut self.initialize, method) {
            (Initialize::None, "initialize") => {
                self.initialize = Initialize::Handshake;
                outputs.send_to_session(line);
                return Ok(());
            }
            (_, "initialize") => return Err(unexpected_initialize(params)),
            (Initialize::Pending(queue), _) => {
                queue.push((line, outputs.share.take()));
                return Ok(());
            }
            (Initialize::None | Initialize::Done(_) | Initialize::Handshake, _) => {}
        }
        if self.calls.is_awaited_by_client(id) || self.subscriptions.contains(id) {
            return Err(RequestRefusal::IdInUse(id.as_json().to_owned()));
        }
        let can_handshake = matches!(self.initialize, Initialize::None);
        let envelope = Envelope::parse(method, params, can_handshake)?;
        if can_handshake {
            let own = self.add_own_request(OwnRequest::Initialize);
            let initialize = initialize(&own, &envelope)?;
            self.initialize = Initialize::Pending(vec![(line, outputs.share.take())]);
            outputs.send_to_session(initialize);
            return Ok(());
        }
        self.handle_initialized_request(id, method, &envelope, outputs)
    }

    /// Handles a client request after the core was initialized.
    fn handle_initialized_request(
        &mut self,
        id: &Id,
        method: &str,
        envelope: &Envelope,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        match method {
            "server/discover" => {
                let Initialize::Done(initialized) = &self.initialize else { return Ok(()) };
                outputs
                    .send_to_client(response_parts(id, Response::Result(initialized.to_discover_result()?)));
                return Ok(());
            }
            "subscriptions/listen" => {
                let supports_subscriptions = self.facts.has_subscriptions;
                for resource in
                    self.subscriptions.open(id, &envelope.params, supports_subscriptions, outputs)?
                {
                    let uri = resource.uri.clone();
                    let own = self.add_own_request(OwnRequest::Follow(resource));
                    outputs.send_to_session(subscriptions::request(&own, "resources/subscribe", &uri));
                }
                return Ok(());
            }
            _ if uses_tasks(method, &envelope.params) => return Err(RequestRefusal::Tasks),
            "ping" => return Err(RequestRefusal::UnsupportedMethod("ping")),
            "logging/setLevel" => return Err(RequestRefusal::UnsupportedMethod("logging/setLevel")),
            "resources/subscribe" => return Err(RequestRefusal::UnsupportedMethod("resources/subscribe")),
            "resources/unsubscribe" => {
                return Err(RequestRefusal::UnsupportedMethod("resources/unsubscribe"));
            }
            _ if envelope.state.is_some() || envelope.responses.is_some() => {
                return self.calls.handle_retry(id, envelope, self.facts.info.as_deref(), outputs);
            }
            _ => {}
        }
        self.raise_log_level(envelope, outputs);
        let is_id_used = self.calls.is_open(id) || id.as_json().starts_with(OWN_ID_PREFIX);
        let core = if is_id_used { self.next_own_id() } else { id.clone() };
        outputs.send_to_session(request_line(&core, method, Some(&envelope.params)));
        self.calls.add(core, id.clone(), method, envelope);
        Ok(())
    }

    /// Sets a more verbose log level on the server if the request asks for one. Messages that no request asked for
    /// are dropped on the way to the client.
    fn raise_log_level(&mut self, envelope: &Envelope, outputs: &mut Outputs<'_>) {
        let requested = envelope.log_level.as_deref().and_then(logging::parse);
        let Some(requested) = requested.filter(|requested| self.level.is_none_or(|level| *requested < level))
        else {
            return;
        };
        if self.facts.has_logging {
            self.level = Some(requested);
            let own = self.add_own_request(OwnRequest::Other);
            let params = to_raw_value(&json!({ "level": logging::name(requested) })).ok();
            outputs.send_to_session(request_line(&own, "logging/setLevel", params.as_deref()));
        }
    }

    fn handle_response(&mut self, id: &Id, response: Response, guard: LineGuard, outputs: &mut Outputs<'_>) {
        match self.own_requests.remove(id) {
            Some(OwnRequest::Initialize) => self.finish_initialize(response, outputs),
            Some(OwnRequest::Follow(resource)) => {
                let is_confirmed = matches!(response, Response::Result(_));
                self.subscriptions.confirm(resource, is_confirmed, outputs);
            }
            Some(OwnRequest::Other) => {}
            None if self.calls.is_open(id) => {
                self.calls.handle_response(id, (response, guard), self.facts.info.as_deref(), outputs);
            }
            // Forwards an error response to an invalid message. Drops a late response to a cancelled call if its id is
            // in use again.
            None if matches!(response, Response::Error(_))
                && !id.as_json().starts_with(OWN_ID_PREFIX)
                && !(self.calls.is_awaited_by_client(id) || self.subscriptions.contains(id)) =>
            {
                outputs.send_to_client(response_parts(id, response).with_guard(guard));
            }
            None => {}
        }
    }

    /// Handles the core's `initialize` response: processes the pending lines, or answers them with the error.
    fn finish_initialize(&mut self, response: Response, outputs: &mut Outputs<'_>) {
        let Initialize::Pending(queue) = std::mem::take(&mut self.initialize) else { return };
        match response {
            Response::Result(result) => {
                let initialized = InitializeResult::new(result);
                self.facts = initialized.facts();
                self.initialize = Initialize::Done(initialized);
                outputs.send_to_session(notification_line("notifications/initialized", None));
                for (line, share) in queue {
                    outputs.share = share;
                    self.receive(line, outputs);
                    outputs.share = None;
                }
            }
            Response::Error(error) => {
                for (line, _) in queue {
                    let Ok(Incoming::Request { id, .. }) = Incoming::parse(&line) else { continue };
                    outputs.send_to_client(response_parts(&id, Response::Error(error.clone())));
                }
            }
        }
        outputs.wake();
    }

    fn handle_input_request(&mut self, request: InputRequest, outputs: &mut Outputs<'_>) {
        if let Err(InputRequest { id, .. }) = self.calls.add_input_request(request, outputs) {
            let text =
                "the client accepts this request only during a call that declares the capability for it";
            outputs.send_to_session(error_line(Some(&id), -32601, text));
        }
    }

    fn handle_session_notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        guard: LineGuard,
        outputs: &mut Outputs<'_>,
    ) {
        match method {
            "notifications/progress" => self.calls.progress(params, guard, outputs),
            "notifications/message" => {
                if logging::message_level(params).is_some_and(|level| self.calls.wants_log(level)) {
                    outputs
                        .send_to_client(Outgoing::line(notification_line(method, params)).with_guard(guard));
                }
            }
            "notifications/cancelled" => {
                let params = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                let id = params.as_ref().and_then(|params| Id::try_from(params.get("requestId")?).ok());
                if let Some(id) = id {
                    self.calls.cancel_input(&id);
                }
            }
            // Drops all other notifications: in this protocol version, clients receive only notifications that they
            // subscribe to.
            _ => drop(self.subscriptions.send(method, params, guard, outputs)),
        }
    }

    /// Records a request of our own and returns its id.
    fn add_own_request(&mut self, request: OwnRequest) -> Id {
        let id = self.next_own_id();
        self.own_requests.insert(id.clone(), request);
        id
    }

    fn next_own_id(&mut self) -> Id {
        self.last += 1;
        Id::from_string(&format!("ironcurtain:{}", self.last))
    }
}

/// Returns `true` if a request would create or refer to a task of the handshake versions.
fn uses_tasks(method: &str, params: &RawValue) -> bool {
    let makes =
        || serde_json::from_str::<Fields>(params.get()).is_ok_and(|fields| fields.get("task").is_some());
    method.starts_with("tasks/") || (method == "tools/call" && makes())
}

fn unexpected_initialize(params: Option<&RawValue>) -> RequestRefusal {
    let params = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
    let requested = params.and_then(|params| serde_json::from_str(params.get("protocolVersion")?.get()).ok());
    RequestRefusal::UnsupportedVersion { requested: requested.unwrap_or_default(), can_handshake: false }
}
