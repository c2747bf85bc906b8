//! Client requests that are in flight at the core.

use super::input_required::{CallInput, InputRequest};
use super::logging::Level;
use super::outputs::Outputs;
use super::request::{Envelope, RequestRefusal};
use super::result;
use crate::wire::{Fields, Id, LineGuard, Outgoing, Response, notification_line, rewrite_params};
use serde_json::value::RawValue;
use std::collections::HashMap;
use tokio::time::Instant;

/// Methods during which a server may request input from the client.
const INPUT_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Maximum number of calls that are waiting for client input at the same time.
const MAX_WAITING: usize = 64;

/// Client request in flight at the core.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// Id of the client's current request for the call, or `None` while the client gathers input.
    pub(super) client: Option<Id>,
    pub(super) method: String,
    /// Sequence number in the order of arrival.
    number: u64,
    token: Option<Token>,
    level: Option<Level>,
    /// State of the input that the server may request, or `None` if the method does not allow input.
    pub(super) input: Option<CallInput>,
}

/// Progress token of a call.
#[derive(Debug)]
struct Token {
    /// Token of the client's first request, as sent to the core.
    first: Box<RawValue>,
    /// Token of the client's latest request for the call.
    latest: Option<Box<RawValue>>,
}

/// All requests in flight, by their ids at the core.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<Id, OpenCall>,
    last: u64,
}

impl Calls {
    /// Returns `true` if a request with this id is in flight at the core.
    pub(super) fn is_open(&self, core: &Id) -> bool {
        self.open.contains_key(core)
    }

    /// Returns `true` if the client is waiting for the response to a request with this id.
    pub(super) fn is_awaited_by_client(&self, client: &Id) -> bool {
        self.open.values().any(|call| call.client.as_ref() == Some(client))
    }

    /// Adds a request that is about to be sent to the core under the id `core`.
    pub(super) fn add(&mut self, core: Id, client: Id, method: &str, envelope: &Envelope) {
        self.last += 1;
        let first = envelope.progress_token.clone();
        let call = OpenCall {
            client: Some(client),
            method: method.to_owned(),
            number: self.last,
            token: first.map(|first| Token { latest: Some(first.clone()), first }),
            level: envelope.log_level.as_deref().and_then(super::logging::parse),
            input: INPUT_METHODS.contains(&method).then(|| CallInput::new(envelope)),
        };
        self.open.insert(core, call);
    }

    /// Returns the core's id for a request that the client is waiting for.
    pub(super) fn core_id(&self, client: &Id) -> Option<Id> {
        let found = self.open.iter().find(|(_, call)| call.client.as_ref() == Some(client));
        found.map(|(core, _)| core.clone())
    }

    /// Removes a request that the client cancelled.
    pub(super) fn remove(&mut self, core: &Id) {
        self.open.remove(core);
    }

    /// Handles the core's response: sends it to the client, or stores it until the client has gathered its input.
    pub(super) fn handle_response(
        &mut self,
        core: &Id,
        (response, guard): (Response, LineGuard),
        server_info: Option<&RawValue>,
        outputs: &mut Outputs<'_>,
    ) {
        let Some(call) = self.open.get_mut(core) else { return };
        if let (None, Some(input)) = (&call.client, &mut call.input) {
            input.response = Some((response, guard));
            return;
        }
        if let Some(client) = &call.client {
            outputs.send_to_client(result::translate((client, &call.method), response, guard, server_info));
        }
        self.open.remove(core);
    }

    /// Handles a request from the core for client input. Adds it to the newest call that accepts it, or returns it if
    /// no call does.
    pub(super) fn add_input_request(
        &mut self,
        request: InputRequest,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), InputRequest> {
        let waiting = self.open.values().filter(|call| call.client.is_none()).count();
        let can_take = |call: &OpenCall| {
            let is_accepted = call.input.as_ref().is_some_and(|input| input.accepts(&request));
            is_accepted && (call.client.is_none() || waiting < MAX_WAITING)
        };
        let last =
            self.open.iter_mut().filter(|(_, call)| can_take(call)).max_by_key(|(_, call)| call.number);
        let Some((core, OpenCall { client, method, input: Some(input), .. })) = last else {
            return Err(request);
        };
        input.add_request(request);
        if let Some(client_id) = client.take()
            && let Err(refusal) = input.send_required(&client_id, outputs)
        {
            let core = core.clone();
            outputs.refuse(&client_id, (method, None), &refusal);
            self.cancel_call(&core, &refusal.to_string(), outputs);
        }
        Ok(())
    }

    /// Removes an input request that the core has cancelled.
    pub(super) fn cancel_input(&mut self, id: &Id) {
        self.open.values_mut().filter_map(|call| call.input.as_mut()).for_each(|input| input.cancel(id));
    }

    /// Handles a client's retry with the input for a call.
    pub(super) fn handle_retry(
        &mut self,
        client: &Id,
        envelope: &Envelope,
        server_info: Option<&RawValue>,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        let Some(state) = &envelope.state else { return Err(RequestRefusal::MissingState) };
        let matches = |call: &OpenCall| call.input.as_ref().is_some_and(|input| input.matches_state(state));
        let core = self.open.iter().find(|(_, call)| matches(call)).map(|(core, _)| core.clone());
        let core = core.ok_or(RequestRefusal::UnknownState)?;
        let call = self.open.get_mut(&core).ok_or(RequestRefusal::UnknownState)?;
        let input = call.input.as_mut().ok_or(RequestRefusal::UnknownState)?;
        input.accept_responses(envelope, outputs)?;
        if let Some(token) = &mut call.token {
            token.latest = envelope.progress_token.clone();
        }
        if let Some((response, guard)) = input.response.take() {
            outputs.send_to_client(result::translate((client, &call.method), response, guard, server_info));
            self.open.remove(&core);
        } else if input.is_answered() {
            call.client = Some(client.clone());
        } else if let Err(refusal) = input.send_required(client, outputs) {
            self.cancel_call(&core, &refusal.to_string(), outputs);
            return Err(refusal);
        }
        Ok(())
    }

    /// Cancels a call at the core and refuses its open input requests.
    fn cancel_call(&mut self, core: &Id, why: &str, outputs: &mut Outputs<'_>) {
        let Some(OpenCall { input: Some(input), .. }) = self.open.remove(core) else { return };
        let has_response = input.response.is_some();
        input.refuse_all(outputs);
        if !has_response {
            outputs.cancel_because(core, why);
        }
    }

    /// Cancels the calls whose client did not gather the input in time.
    pub(super) fn expire(&mut self, now: Instant, outputs: &mut Outputs<'_>) {
        self.cancel_where(|input| input.deadline().is_some_and(|at| at <= now), outputs);
    }

    /// Cancels all calls that are waiting for client input, because the client has disconnected or is moving to
    /// another process.
    pub(super) fn cancel_waiting(&mut self, outputs: &mut Outputs<'_>) {
        self.cancel_where(|input| input.deadline().is_some(), outputs);
    }

    fn cancel_where(&mut self, is_over: impl Fn(&CallInput) -> bool, outputs: &mut Outputs<'_>) {
        let over = |call: &OpenCall| call.client.is_none() && call.input.as_ref().is_some_and(&is_over);
        let over: Vec<Id> =
            self.open.iter().filter(|(_, call)| over(call)).map(|(core, _)| core.clone()).collect();
        for core in over {
            self.cancel_call(&core, "the client sent no input for the call", outputs);
        }
    }

    /// Returns the earliest deadline of the calls that are waiting for input.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|call| call.input.as_ref()?.deadline()).min()
    }

    /// Forwards progress under the token of the client's latest request.
    pub(super) fn progress(&self, params: Option<&RawValue>, guard: LineGuard, outputs: &mut Outputs<'_>) {
        let Some(fields) = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok()) else {
            return;
        };
        let Some(token) = fields.get("progressToken") else { return };
        let matches =
            |call: &&OpenCall| call.token.as_ref().is_some_and(|own| own.first.get() == token.get());
        // While the client gathers input, it has no pending request that could receive progress.
        let call = self.open.values().filter(|call| call.client.is_some()).find(matches);
        let Some(latest) = call.and_then(|call| call.token.as_ref()?.latest.clone()) else { return };
        let params = rewrite_params(params, |params, _| params.set("progressToken", latest));
        let line = notification_line("notifications/progress", params.ok().as_deref());
        outputs.send_to_client(Outgoing::line(line).with_guard(guard));
    }

    /// Returns `true` if a pending client request wants log messages of this level.
    pub(super) fn wants_log(&self, level: Level) -> bool {
        let wants = |call: &OpenCall| call.client.is_some() && call.level.is_some_and(|least| least <= level);
        self.open.values().any(wants)
    }
}
