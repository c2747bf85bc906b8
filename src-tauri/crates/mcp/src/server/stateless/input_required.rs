//! In-flight requests to a stateless server, and the input that each one is waiting for.

use super::StatelessServer;
use crate::server::client_request::ClientRequest;
use crate::server::{
    MemoryShare, NoResponse, OnAnswer, SAMPLING, SamplingRequest, ServerAnswer, ServerConnection,
};
use crate::wire::{Fields, Id, Outgoing, Response, notification_line, request_parts, rewrite_params};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Methods that a server may answer with a request for input.
const INPUT_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Maximum number of input rounds per call.
const MAX_ROUNDS: u32 = 16;

/// Maximum number of input requests per round.
const MAX_REQUESTS: usize = 32;

/// Maximum size of a server's state in bytes.
const MAX_STATE_LEN: usize = 1024 * 1024;

/// Initial and maximum delay before a retry of a call that needed no input from the client.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// Call from the core, kept until it is answered.
pub(super) struct InputCall {
    method: String,
    /// Parameters with our `_meta` fields, for retries.
    params: Box<RawValue>,
    /// Memory share of the call. It is held as long as the call can be retried.
    share: MemoryShare,
    then: OnAnswer,
    rounds: u32,
}

/// Call that is waiting for the client's input.
struct WaitingCall {
    call: InputCall,
    state: Option<Box<RawValue>>,
    responses: Fields,
    /// Server's key for each open request to the client, by our request id.
    open: HashMap<Id, String>,
}

/// All calls, keyed by a number that we assign.
#[derive(Default)]
pub(super) struct Calls {
    /// Id of each call at the server, or `None` before the call is sent.
    sent: HashMap<u64, Option<u64>>,
    waiting: HashMap<u64, WaitingCall>,
    last: u64,
    last_request: u64,
}

/// Result of a call, with the fields of an `input_required` result parsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    result_type: Option<String>,
    input_requests: Option<Fields>,
    request_state: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct InputRequest {
    method: String,
    params: Option<Box<RawValue>>,
}

impl InputCall {
    pub(super) fn new(method: &str, params: Box<RawValue>, share: MemoryShare, then: OnAnswer) -> Self {
        Self { method: method.to_owned(), params, share, then, rounds: 0 }
    }

    /// Fails the call because of an invalid request for input.
    fn fail(self, why: impl Into<String>) {
        (self.then)(ServerAnswer::Failed(NoResponse::InvalidInputRequest(why.into())), None);
    }
}

impl StatelessServer {
    /// Sends a call and returns its number.
    pub(super) fn start_call(self: &Arc<Self>, connection: &ServerConnection, call: InputCall) -> u64 {
        let mut state = self.state();
        state.calls.last += 1;
        let number = state.calls.last;
        drop(state);
        let params = call.params.clone();
        self.send(connection, number, params, call);
        number
    }

    fn send(
        self: &Arc<Self>,
        connection: &ServerConnection,
        number: u64,
        params: Box<RawValue>,
        mut call: InputCall,
    ) {
        let (method, share) = (call.method.clone(), call.share.clone());
        if !INPUT_METHODS.contains(&method.as_str()) {
            // Other methods are never retried, so their parameters are not kept.
            (call.params, call.share) = (RawValue::NULL.to_owned(), None);
        }
        self.state().calls.sent.insert(number, None);
        let (stateless, server) = (self.clone(), connection.clone());
        let then = move |answer, share| stateless.handle_response(&server, number, call, answer, share);
        let id = connection.send_request(&method, Some(params), share, Box::new(then));
        match (self.state().calls.sent.get_mut(&number), id) {
            (Some(sent_id), id) => *sent_id = id,
            // The call was cancelled while it was being sent, or has already been answered.
            (None, Some(id)) => connection.send_cancelled(id, None),
            (None, None) => {}
        }
    }

    /// Handles the server's response: answers the core, or asks the client for the required input.
    fn handle_response(
        self: &Arc<Self>,
        connection: &ServerConnection,
        number: u64,
        call: InputCall,
        answer: ServerAnswer,
        share: MemoryShare,
    ) {
        self.state().calls.sent.remove(&number);
        let ServerAnswer::Response(Response::Result(result)) = &answer else {
            return (call.then)(answer, share);
        };
        let required: CallResult = match serde_json::from_str(result.get()) {
            Ok(required) => required,
            Err(problem) => return call.fail(format!("its result is invalid: {problem}")),
        };
        match required.result_type.as_deref() {
            None | Some("complete") => (call.then)(answer, share),
            Some("input_required") => {
                if let Err((call, why)) = self.request_input(connection, number, call, required) {
                    call.fail(why);
                }
            }
            Some(_) => call.fail("its result has an unknown type"),
        }
    }

    /// Asks the client for the required input.
    fn request_input(
        self: &Arc<Self>,
        connection: &ServerConnection,
        number: u64,
        mut call: InputCall,
        required: CallResult,
    ) -> Result<(), (InputCall, String)> {
        call.rounds += 1;
        let requests = required.input_requests.unwrap_or_default();
        let problem = if !INPUT_METHODS.contains(&call.method.as_str()) {
            Some(format!("`{}` does not accept input", call.method))
        } else if call.rounds > MAX_ROUNDS {
            Some(format!("it asked {MAX_ROUNDS} times in one call"))
        } else if requests.iter().count() > MAX_REQUESTS {
            Some(format!("it sent more than {MAX_REQUESTS} requests at once"))
        } else if required.request_state.as_ref().is_some_and(|state| state.get().len() > MAX_STATE_LEN) {
            Some(format!("its state is longer than {MAX_STATE_LEN} bytes"))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err((call, problem));
        }
        let mut waiting = WaitingCall {
            call,
            state: required.request_state,
            responses: Fields::default(),
            open: HashMap::new(),
        };
        let mut for_client = Vec::new();
        for (name, raw) in requests.iter() {
            let request: InputRequest = match serde_json::from_str(raw.get()) {
                Ok(request) => request,
                Err(problem) => {
                    return Err((waiting.call, format!("`{name}` is not a valid request: {problem}")));
                }
            };
            if request.method == "roots/list" {
                let roots = to_raw_value(&self.client.roots.roots());
                waiting.responses.set(name, roots.unwrap_or_else(|_| RawValue::NULL.to_owned()));
            } else if self.client.client_supports.borrow().contains(&request.method) {
                let id = self.next_request();
                waiting.open.insert(id.clone(), name.to_owned());
                for_client.push((id, request));
            } else {
                let shown: String = request.method.chars().filter(|c| !c.is_control()).take(100).collect();
                return Err((waiting.call, format!("`{shown}` is not available to this client")));
            }
        }
        if for_client.is_empty() {
            let has_responses = waiting.responses.iter().next().is_some();
            self.retry(connection.clone(), number, waiting, has_responses);
            return Ok(());
        }
        self.state().calls.waiting.insert(number, waiting);
        for (id, InputRequest { method, params }) in for_client {
            if method == SAMPLING {
                let request = SamplingRequest { id, params, share: None, connection: connection.clone() };
                // Sending fails only if the session is closed.
                let _ = self.client.sampling.send(request);
                continue;
            }
            connection.add_client_request(id.clone(), ClientRequest::new(&method, params.as_deref()));
            self.client.outbox.send(request_parts(&id, &method, params));
        }
        Ok(())
    }

    /// Handles the client's response if it answers one of our requests, and returns it otherwise.
    pub(in crate::server) fn handle_client_response(
        self: &Arc<Self>,
        connection: &ServerConnection,
        id: &Id,
        response: Response,
    ) -> Option<Response> {
        let mut state = self.state();
        let found = state.calls.waiting.iter().find(|(_, waiting)| waiting.open.contains_key(id));
        let Some(number) = found.map(|(number, _)| *number) else { return Some(response) };
        let Some(mut waiting) = state.calls.waiting.remove(&number) else { return Some(response) };
        let name = waiting.open.remove(id).unwrap_or_default();
        match response {
            Response::Result(result) => {
                waiting.responses.set(&name, result);
                if waiting.open.is_empty() {
                    drop(state);
                    self.retry(connection.clone(), number, waiting, true);
                } else {
                    state.calls.waiting.insert(number, waiting);
                }
            }
            // The protocol has no way to report a client error to the server, so the caller receives it.
            Response::Error(error) => {
                drop(state);
                self.cancel_requests(waiting.open.keys());
                (waiting.call.then)(ServerAnswer::Response(Response::Error(error)), None);
            }
        }
        None
    }

    /// Retries a call with the required input. If no input was required, retries after a delay.
    fn retry(
        self: &Arc<Self>,
        connection: ServerConnection,
        number: u64,
        waiting: WaitingCall,
        has_responses: bool,
    ) {
        let WaitingCall { call, state, responses, .. } = waiting;
        let params = rewrite_params(Some(&call.params), |params, _| {
            if let (true, Ok(responses)) = (has_responses, to_raw_value(&responses)) {
                params.set("inputResponses", responses);
            }
            if let Some(state) = state {
                params.set("requestState", state);
            }
        });
        let params = match params {
            Ok(params) => params,
            Err(problem) => return call.fail(format!("failed to serialize the call: {problem}")),
        };
        if has_responses {
            return self.send(&connection, number, params, call);
        }
        let [first, longest] = RETRY_DELAYS;
        let delay = first.saturating_mul(1 << call.rounds.min(8)).min(longest);
        // The call can be cancelled during the delay.
        self.state().calls.sent.insert(number, None);
        let stateless = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            if stateless.state().calls.sent.contains_key(&number) {
                stateless.send(&connection, number, params, call);
            }
        });
    }

    /// Cancels a call at the server, and its open requests to the client.
    pub(in crate::server) fn cancel(&self, connection: &ServerConnection, number: u64, reason: Option<&str>) {
        let mut state = self.state();
        let sent = state.calls.sent.remove(&number).flatten();
        let waiting = state.calls.waiting.remove(&number);
        drop(state);
        if let Some(id) = sent {
            connection.send_cancelled(id, reason);
        }
        if let Some(waiting) = waiting {
            self.cancel_requests(waiting.open.keys());
        }
    }

    /// Sends the client a `notifications/cancelled` for each of these requests.
    fn cancel_requests<'a>(&self, requests: impl Iterator<Item = &'a Id>) {
        for id in requests {
            let Ok(id) = RawValue::from_string(id.as_json().to_owned()) else { continue };
            let params = to_raw_value(&json!({ "requestId": id })).ok();
            let line = notification_line("notifications/cancelled", params.as_deref());
            self.client.outbox.send(Outgoing::line(line));
        }
    }

    /// Fails all calls that are waiting for the client's input, when the connection closes.
    pub(in crate::server) fn fail_waiting(&self, why: &NoResponse) {
        let waiting = std::mem::take(&mut self.state().calls.waiting);
        for (_, waiting) in waiting {
            self.cancel_requests(waiting.open.keys());
            (waiting.call.then)(ServerAnswer::Failed(why.clone()), None);
        }
    }

    fn next_request(&self) -> Id {
        let mut state = self.state();
        state.calls.last_request += 1;
        Id::from_string(&format!("ironcurtain-input:{}", state.calls.last_request))
    }
}
