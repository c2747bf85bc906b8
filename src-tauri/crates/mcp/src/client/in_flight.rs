//! Client requests that are in flight at the core.

use super::input_required::{Input, InputRequest};
use super::logging::Level;
use super::outputs::Outputs;
use super::request::{Envelope, RequestRefusal};
use super::result;
use crate::wire::{Fields, Held, Id, Outgoing, Response, notification_line, rewrite_params};
use serde_json::value::RawValue;
use std::collections::HashMap;
use tokio::time::Instant;

/// Methods during which a server may request input from the client.
const WITH_INPUT: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

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
    pub(super) input: Option<Input>,
}

/// Progress token of a call.
#[derive(Debug)]
struct Token {
    /// Token of the client's first request, as sent to the core.
    first: Box<RawValue>,
    /// Token of the client's latest request for the call.
    now: Option<Box<RawValue>>,
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
    pub(super) fn is_waited_for(&self, client: &Id) -> bool {
        self.open.values().any(|call| call.client.as_ref() == Some(client))
    }

    /// Adds a request that is about to be sent to the core under the id `core`.
    pub(super) fn enter(&mut self, core: Id, client: Id, method: &str, envelope: &Envelope) {
        self.last += 1;
        let first = envelope.progress_token.clone();
        let call = OpenCall {
            client: Some(client),
            method: method.to_owned(),
            number: self.last,
            token: first.map(|first| Token { now: Some(first.clone()), first }),
            level: envelope.log_level.as_deref().and_then(super::logging::level),
            input: WITH_INPUT.contains(&method).then(|| Input::new(envelope)),
        };
        self.open.insert(core, call);
    }

    /// Returns the core's id for a request that the client is waiting for.
    pub(super) fn of_client(&self, client: &Id) -> Option<Id> {
        let found = self.open.iter().find(|(_, call)| call.client.as_ref() == Some(client));
        found.map(|(core, _)| core.clone())
    }

    /// Removes a request that the client cancelled.
    pub(super) fn forget(&mut self, core: &Id) {
        self.open.remove(core);
    }

    /// Handles the core's response: sends it to the client, or stores it until the client has gathered its input.
    pub(super) fn answered(
        &mut self,
        core: &Id,
        (response, held): (Response, Held),
        server_info: Option<&RawValue>,
        outputs: &mut Outputs<'_>,
    ) {
        let Some(call) = self.open.get_mut(core) else { return };
        if let (None, Some(input)) = (&call.client, &mut call.input) {
            input.done = Some((response, held));
            return;
        }
        if let Some(client) = &call.client {
            outputs.client(result::answer((client, &call.method), response, held, server_info));
        }
        self.open.remove(core);
    }

    /// Handles a request from the core for client input. Adds it to the newest call that accepts it, or returns it if
    /// no call does.
    pub(super) fn asked(
        &mut self,
        request: InputRequest,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), InputRequest> {
        let waiting = self.open.values().filter(|call| call.client.is_none()).count();
        let may = |call: &OpenCall| {
            let takes = call.input.as_ref().is_some_and(|input| input.accepts(&request));
            takes && (call.client.is_none() || waiting < MAX_WAITING)
        };
        let last = self.open.iter_mut().filter(|(_, call)| may(call)).max_by_key(|(_, call)| call.number);
        let Some((core, OpenCall { client, method, input: Some(input), .. })) = last else {
            return Err(request);
        };
        input.ask(request);
        if let Some(waits) = client.take()
            && let Err(refusal) = input.require(&waits, outputs)
        {
            let core = core.clone();
            outputs.refuse(&waits, (method, None), &refusal);
            self.give_up(&core, &refusal.to_string(), outputs);
        }
        Ok(())
    }

    /// Removes an input request that the core has cancelled.
    pub(super) fn cancel_input(&mut self, asked: &Id) {
        self.open.values_mut().filter_map(|call| call.input.as_mut()).for_each(|input| input.cancel(asked));
    }

    /// Handles a client's retry with the input for a call.
    pub(super) fn retried(
        &mut self,
        client: &Id,
        envelope: &Envelope,
        server_info: Option<&RawValue>,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        let Some(state) = &envelope.state else { return Err(RequestRefusal::NoState) };
        let is_it = |call: &OpenCall| call.input.as_ref().is_some_and(|input| input.is_opened_by(state));
        let core = self.open.iter().find(|(_, call)| is_it(call)).map(|(core, _)| core.clone());
        let core = core.ok_or(RequestRefusal::UnknownState)?;
        let call = self.open.get_mut(&core).ok_or(RequestRefusal::UnknownState)?;
        let input = call.input.as_mut().ok_or(RequestRefusal::UnknownState)?;
        input.bring(envelope, outputs)?;
        if let Some(token) = &mut call.token {
            token.now = envelope.progress_token.clone();
        }
        if let Some((response, held)) = input.done.take() {
            outputs.client(result::answer((client, &call.method), response, held, server_info));
            self.open.remove(&core);
        } else if input.is_answered() {
            call.client = Some(client.clone());
        } else if let Err(refusal) = input.require(client, outputs) {
            self.give_up(&core, &refusal.to_string(), outputs);
            return Err(refusal);
        }
        Ok(())
    }

    /// Cancels a call at the core and refuses its open input requests.
    fn give_up(&mut self, core: &Id, why: &str, outputs: &mut Outputs<'_>) {
        let Some(OpenCall { input: Some(input), .. }) = self.open.remove(core) else { return };
        let is_done = input.done.is_some();
        input.refuse_all(outputs);
        if !is_done {
            outputs.cancel_because(core, why);
        }
    }

    /// Cancels the calls whose client did not gather the input in time.
    pub(super) fn expire(&mut self, now: Instant, outputs: &mut Outputs<'_>) {
        self.give_up_where(|input| input.deadline().is_some_and(|at| at <= now), outputs);
    }

    /// Cancels all calls that are waiting for client input, because the client has disconnected or is moving to
    /// another process.
    pub(super) fn give_up_waiting(&mut self, outputs: &mut Outputs<'_>) {
        self.give_up_where(|input| input.deadline().is_some(), outputs);
    }

    fn give_up_where(&mut self, is_over: impl Fn(&Input) -> bool, outputs: &mut Outputs<'_>) {
        let over = |call: &OpenCall| call.client.is_none() && call.input.as_ref().is_some_and(&is_over);
        let over: Vec<Id> =
            self.open.iter().filter(|(_, call)| over(call)).map(|(core, _)| core.clone()).collect();
        for core in over {
            self.give_up(&core, "the client sent no input for the call", outputs);
        }
    }

    /// Returns the earliest deadline of the calls that are waiting for input.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|call| call.input.as_ref()?.deadline()).min()
    }

    /// Forwards progress under the token of the client's latest request.
    pub(super) fn progress(&self, params: Option<&RawValue>, held: Held, outputs: &mut Outputs<'_>) {
        let Some(fields) = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok()) else {
            return;
        };
        let Some(token) = fields.get("progressToken") else { return };
        let is_it = |call: &&OpenCall| call.token.as_ref().is_some_and(|own| own.first.get() == token.get());
        // While the client gathers input, it has no pending request that could receive progress.
        let call = self.open.values().filter(|call| call.client.is_some()).find(is_it);
        let Some(now) = call.and_then(|call| call.token.as_ref()?.now.clone()) else { return };
        let params = rewrite_params(params, |params, _| params.set("progressToken", now));
        let line = notification_line("notifications/progress", params.ok().as_deref());
        outputs.client(Outgoing::line(line).holding_what(held));
    }

    /// Returns `true` if a pending client request wants log messages of this level.
    pub(super) fn want_log(&self, level: Level) -> bool {
        let wants = |call: &OpenCall| call.client.is_some() && call.level.is_some_and(|least| least <= level);
        self.open.values().any(wants)
    }
}
