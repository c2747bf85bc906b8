//! State of the conversation with a stateless client. Takes one message at a time and produces messages for both sides.

use super::in_flight::Calls;
use super::initialize::{InitializeResult, ServerFacts, initialize};
use super::input_required::InputRequest;
use super::logging::{self, Level};
use super::outputs::{Outputs, ToSession};
use super::request::{Envelope, RequestRefusal};
use super::subscriptions::{self, Followed, Listens};
use crate::wire::{
    Fields, Held, Id, Incoming, Outgoing, Response, Share, client_may_send, error_line, notification_line,
    request_line, response_parts,
};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// Prefix of our own request ids to the core.
const OURS: &str = "\"ironcurtain:";

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
    listens: Listens,
    /// Our own requests to the core.
    ours: HashMap<Id, OwnRequest>,
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
    Open(Vec<(Vec<u8>, Option<Share>)>),
    /// The core is initialized, with this result.
    Done(InitializeResult),
    /// The client uses a handshake version, so messages are forwarded unchanged.
    Handshake,
}

#[derive(Debug)]
enum OwnRequest {
    Initialize,
    Follow(Followed),
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
            return outputs.client(line);
        }
        match Incoming::of_line(line) {
            Err(line) => outputs.client(line),
            Ok((Incoming::Response { id, response }, held)) => {
                state.answered(&id, response, held, &mut outputs)
            }
            Ok((Incoming::Request { id, method, params }, held)) => {
                let request = InputRequest { id, method, params, _held: held, key: String::new() };
                state.asked(request, &mut outputs);
            }
            Ok((Incoming::Notification { method, params }, held)) => {
                state.notified(&method, params.as_deref(), held, &mut outputs);
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
    pub(super) fn hung_up(&self, to_client: &mut dyn FnMut(Outgoing)) -> bool {
        let mut state = self.state();
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        state.calls.give_up_waiting(&mut outputs);
        !matches!(state.initialize, Initialize::Open(_))
    }

    /// Prepares the handover to another process. Returns the lines that the other process must read again.
    pub(super) fn hand_over(&self, to_client: &mut dyn FnMut(Outgoing)) -> Vec<u8> {
        let mut state = self.state();
        let mut outputs = Outputs { to_client, to_session: &self.to_session, share: None };
        state.calls.give_up_waiting(&mut outputs);
        state.listens.end(&mut outputs);
        let Initialize::Open(queue) = &mut state.initialize else { return Vec::new() };
        queue.drain(..).flat_map(|(line, _)| line.into_iter().chain([b'\n'])).collect()
    }

    /// Returns the core's `initialize` result.
    pub(super) fn initialized(&self) -> Option<InitializeResult> {
        match &self.state().initialize {
            Initialize::Done(initialized) => Some(initialized.clone()),
            Initialize::None | Initialize::Open(_) | Initialize::Handshake => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn receive(&mut self, line: Vec<u8>, outputs: &mut Outputs<'_>) {
        if matches!(self.initialize, Initialize::Handshake) {
            return outputs.session(line);
        }
        match Incoming::parse(&line) {
            // Forwarded, because the core reports the error.
            Err(_) => outputs.session(line),
            // Dropped: a stateless client answers by retrying its call, never with a response.
            Ok(Incoming::Response { .. }) => {}
            Ok(Incoming::Notification { method, params }) => {
                self.handle_notification(&method, params.as_deref(), line, outputs);
            }
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(refusal) = self.request(&id, &method, params.as_deref(), line, outputs) {
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
                outputs.session(line);
            }
            return;
        }
        let Some(params) = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok()) else {
            return;
        };
        let Some(id) = params.get("requestId").and_then(|raw| Id::try_from(raw).ok()) else { return };
        if let Initialize::Open(queue) = &mut self.initialize {
            queue.retain(|(line, _)| {
                !matches!(Incoming::parse(line), Ok(Incoming::Request { id: queued, .. }) if queued == id)
            });
        }
        for uri in self.listens.close(&id) {
            let own = self.own(OwnRequest::Other);
            outputs.session(subscriptions::request(&own, "resources/unsubscribe", &uri));
        }
        if let Some(core) = self.calls.of_client(&id) {
            self.calls.forget(&core);
            outputs.cancel(&core, params.get("reason").map(ToOwned::to_owned));
        }
    }

    fn request(
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
                outputs.session(line);
                return Ok(());
            }
            (_, "initialize") => return Err(second_initialize(params)),
            (Initialize::Open(queue), _) => {
                queue.push((line, outputs.share.take()));
                return Ok(());
            }
            (Initialize::None | Initialize::Done(_) | Initialize::Handshake, _) => {}
        }
        if self.calls.is_waited_for(id) || self.listens.has(id) {
            return Err(RequestRefusal::IdInUse(id.as_json().to_owned()));
        }
        let is_open = matches!(self.initialize, Initialize::None);
        let envelope = Envelope::read(method, params, is_open)?;
        if is_open {
            let own = self.own(OwnRequest::Initialize);
            let initialize = initialize(&own, &envelope)?;
            self.initialize = Initialize::Open(vec![(line, outputs.share.take())]);
            outputs.session(initialize);
            return Ok(());
        }
        self.welcomed(id, method, &envelope, outputs)
    }

    /// Handles a client request after the core was initialized.
    fn welcomed(
        &mut self,
        id: &Id,
        method: &str,
        envelope: &Envelope,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        match method {
            "server/discover" => {
                let Initialize::Done(initialized) = &self.initialize else { return Ok(()) };
                outputs.client(response_parts(id, Response::Result(initialized.discovered()?)));
                return Ok(());
            }
            "subscriptions/listen" => {
                let can_follow = self.facts.has_subscriptions;
                for followed in self.listens.open(id, &envelope.params, can_follow, outputs)? {
                    let uri = followed.uri.clone();
                    let own = self.own(OwnRequest::Follow(followed));
                    outputs.session(subscriptions::request(&own, "resources/subscribe", &uri));
                }
                return Ok(());
            }
            _ if makes_or_names_a_task(method, &envelope.params) => return Err(RequestRefusal::Tasks),
            "ping" => return Err(RequestRefusal::NotOfRevision("ping")),
            "logging/setLevel" => return Err(RequestRefusal::NotOfRevision("logging/setLevel")),
            "resources/subscribe" => return Err(RequestRefusal::NotOfRevision("resources/subscribe")),
            "resources/unsubscribe" => return Err(RequestRefusal::NotOfRevision("resources/unsubscribe")),
            _ if envelope.state.is_some() || envelope.responses.is_some() => {
                return self.calls.retried(id, envelope, self.facts.info.as_deref(), outputs);
            }
            _ => {}
        }
        self.raise_log_level(envelope, outputs);
        let is_taken = self.calls.is_open(id) || id.as_json().starts_with(OURS);
        let core = if is_taken { self.next_own() } else { id.clone() };
        outputs.session(request_line(&core, method, Some(&envelope.params)));
        self.calls.enter(core, id.clone(), method, envelope);
        Ok(())
    }

    /// Sets a more verbose log level on the server if the request asks for one. Messages that no request asked for
    /// are dropped on the way to the client.
    fn raise_log_level(&mut self, envelope: &Envelope, outputs: &mut Outputs<'_>) {
        let wanted = envelope.log_level.as_deref().and_then(logging::level);
        let Some(wanted) = wanted.filter(|wanted| self.level.is_none_or(|level| *wanted < level)) else {
            return;
        };
        if self.facts.has_logging {
            self.level = Some(wanted);
            let own = self.own(OwnRequest::Other);
            let params = to_raw_value(&json!({ "level": logging::name(wanted) })).ok();
            outputs.session(request_line(&own, "logging/setLevel", params.as_deref()));
        }
    }

    fn answered(&mut self, id: &Id, response: Response, held: Held, outputs: &mut Outputs<'_>) {
        match self.ours.remove(id) {
            Some(OwnRequest::Initialize) => self.finish_initialize(response, outputs),
            Some(OwnRequest::Follow(followed)) => {
                let is_followed = matches!(response, Response::Result(_));
                self.listens.followed(followed, is_followed, outputs);
            }
            Some(OwnRequest::Other) => {}
            None if self.calls.is_open(id) => {
                self.calls.answered(id, (response, held), self.facts.info.as_deref(), outputs);
            }
            // Forwards an error response to an invalid message. Drops a late response to a cancelled call if its id is
            // in use again.
            None if matches!(response, Response::Error(_))
                && !id.as_json().starts_with(OURS)
                && !(self.calls.is_waited_for(id) || self.listens.has(id)) =>
            {
                outputs.client(response_parts(id, response).holding_what(held));
            }
            None => {}
        }
    }

    /// Handles the core's `initialize` response: processes the pending lines, or answers them with the error.
    fn finish_initialize(&mut self, response: Response, outputs: &mut Outputs<'_>) {
        let Initialize::Open(queue) = std::mem::take(&mut self.initialize) else { return };
        match response {
            Response::Result(result) => {
                let initialized = InitializeResult::new(result);
                self.facts = initialized.facts();
                self.initialize = Initialize::Done(initialized);
                outputs.session(notification_line("notifications/initialized", None));
                for (line, share) in queue {
                    outputs.share = share;
                    self.receive(line, outputs);
                    outputs.share = None;
                }
            }
            Response::Error(error) => {
                for (line, _) in queue {
                    let Ok(Incoming::Request { id, .. }) = Incoming::parse(&line) else { continue };
                    outputs.client(response_parts(&id, Response::Error(error.clone())));
                }
            }
        }
        outputs.wake();
    }

    fn asked(&mut self, request: InputRequest, outputs: &mut Outputs<'_>) {
        if let Err(InputRequest { id, .. }) = self.calls.asked(request, outputs) {
            let text =
                "the client accepts this request only during a call that declares the capability for it";
            outputs.session(error_line(Some(&id), -32601, text));
        }
    }

    fn notified(&mut self, method: &str, params: Option<&RawValue>, held: Held, outputs: &mut Outputs<'_>) {
        match method {
            "notifications/progress" => self.calls.progress(params, held, outputs),
            "notifications/message" => {
                if logging::level_of(params).is_some_and(|level| self.calls.want_log(level)) {
                    outputs.client(Outgoing::line(notification_line(method, params)).holding_what(held));
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
            _ => drop(self.listens.send(method, params, held, outputs)),
        }
    }

    /// Records a request of our own and returns its id.
    fn own(&mut self, request: OwnRequest) -> Id {
        let id = self.next_own();
        self.ours.insert(id.clone(), request);
        id
    }

    fn next_own(&mut self) -> Id {
        self.last += 1;
        Id::text(&format!("ironcurtain:{}", self.last))
    }
}

/// Returns `true` if a request would create or refer to a task of the handshake versions.
fn makes_or_names_a_task(method: &str, params: &RawValue) -> bool {
    let makes =
        || serde_json::from_str::<Fields>(params.get()).is_ok_and(|fields| fields.get("task").is_some());
    method.starts_with("tasks/") || (method == "tools/call" && makes())
}

fn second_initialize(params: Option<&RawValue>) -> RequestRefusal {
    let params = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
    let requested = params.and_then(|params| serde_json::from_str(params.get("protocolVersion")?.get()).ok());
    RequestRefusal::Revision { requested: requested.unwrap_or_default(), is_open: false }
}
