//! Input that a server requests during a call, and the state that identifies the call when the client retries.

use super::outputs::Outputs;
use super::request::{Envelope, RequestRefusal};
use crate::wire::{Fields, Id, LineGuard, Outgoing, Response, error_line};
use ironcurtain_paths::random_name;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt::Write;
use std::time::Duration;
use tokio::time::Instant;

/// Methods that request input, each with the client capability that it requires.
const INPUT_REQUESTS: [(&str, &str); 2] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling")];

/// Time limit for the client to gather input. The call is then cancelled.
const INPUT_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of input rounds per call.
const MAX_ROUNDS: usize = 32;

/// Maximum number of open input requests per call.
const MAX_REQUESTS: usize = 32;

/// Maximum length of an input request's parameters in bytes.
const MAX_PARAMS_LEN: usize = 64 * 1024;

/// Request from a server for client input.
pub(super) struct InputRequest {
    /// Id of the request at the core.
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// Memory share that is held while the request is open.
    pub(super) _guard: LineGuard,
    /// Key of the request in `inputRequests`.
    pub(super) key: String,
}

/// Input that a call still requires, and its limits.
pub(super) struct CallInput {
    digest: [u8; 32],
    /// Request methods that the client supports.
    methods: Vec<&'static str>,
    requests: Vec<InputRequest>,
    last_key: usize,
    rounds: usize,
    /// State that the client received, and the time at which it expires, or `None` if the client is not gathering
    /// input.
    state: Option<(String, Instant)>,
    /// Response to the call, if it arrived before the client's input.
    pub(super) response: Option<(Response, LineGuard)>,
}

impl std::fmt::Debug for CallInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallInput").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

impl CallInput {
    pub(super) fn new(envelope: &Envelope) -> Self {
        let supported = INPUT_REQUESTS.iter().filter(|(_, capability)| envelope.has_capability(capability));
        Self {
            digest: envelope.digest,
            methods: supported.map(|(method, _)| *method).collect(),
            requests: Vec::new(),
            last_key: 0,
            rounds: 0,
            state: None,
            response: None,
        }
    }

    /// Returns `true` if the client can be asked for this input now.
    pub(super) fn accepts(&self, request: &InputRequest) -> bool {
        let is_supported = self.methods.contains(&request.method.as_str());
        let is_short = request.params.as_ref().is_none_or(|params| params.get().len() <= MAX_PARAMS_LEN);
        is_supported && is_short && self.requests.len() < MAX_REQUESTS && self.response.is_none()
    }

    /// Adds a request to the next round.
    pub(super) fn add_request(&mut self, request: InputRequest) {
        self.last_key += 1;
        self.requests.push(InputRequest { key: format!("input-{}", self.last_key), ..request });
    }

    /// Removes a request that the core cancelled.
    pub(super) fn cancel(&mut self, id: &Id) {
        self.requests.retain(|request| request.id != *id);
    }

    /// Answers the client's pending request with `input_required` and all open requests.
    pub(super) fn send_required(
        &mut self,
        client: &Id,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(RequestRefusal::TooManyRounds(MAX_ROUNDS));
        }
        let state = random_name()? + &random_name()?;
        let mut requests = String::new();
        for InputRequest { key, method, params, .. } in &self.requests {
            let comma = if requests.is_empty() { "" } else { "," };
            let params = params.as_ref().map(|raw| format!(",\"params\":{}", raw.get())).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(requests, "{comma}\"{key}\":{{\"method\":\"{method}\"{params}}}");
        }
        let requests = requests.replace(['\n', '\r'], " ");
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{{{requests}}},\"requestState\":\"{state}\"}}"
        );
        self.state = Some((state, Instant::now() + INPUT_TIMEOUT));
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", client.as_json());
        outputs.send_to_client(Outgoing::line(line.into_bytes()));
        outputs.wake();
        Ok(())
    }

    /// Returns `true` if `state` is the state that the client received for this call.
    pub(super) fn matches_state(&self, state: &str) -> bool {
        self.state.as_ref().is_some_and(|(own, _)| own == state)
    }

    /// Handles the input of a retry: answers the core and invalidates the state. Requests without an answer stay open.
    pub(super) fn accept_responses(
        &mut self,
        envelope: &Envelope,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        if envelope.digest != self.digest {
            return Err(RequestRefusal::StateMismatch);
        }
        let none = Fields::default();
        let responses = envelope.responses.as_ref().unwrap_or(&none);
        let is_object = |raw: &RawValue| serde_json::from_str::<Fields>(raw.get()).is_ok();
        let response_for = |request: &InputRequest| responses.get(&request.key);
        if let Some(invalid) =
            self.requests.iter().find(|request| response_for(request).is_some_and(|raw| !is_object(raw)))
        {
            return Err(RequestRefusal::InvalidInputResponse(invalid.key.clone()));
        }
        self.state = None;
        self.requests.retain(|request| match response_for(request) {
            Some(response) => {
                outputs.answer_session(&request.id, response.to_owned());
                false
            }
            None => true,
        });
        Ok(())
    }

    /// Returns `true` if every request has been answered.
    pub(super) fn is_answered(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the deadline for the client to gather input.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.state.as_ref().map(|(_, at)| *at)
    }

    /// Answers all open requests as a client that provides no input would.
    pub(super) fn refuse_all(self, outputs: &mut Outputs<'_>) {
        for request in self.requests {
            refuse(&request.id, &request.method, outputs);
        }
    }
}

/// Answers a request as a client that provides no input would.
fn refuse(id: &Id, method: &str, outputs: &mut Outputs<'_>) {
    match to_raw_value(&json!({ "action": "cancel" })) {
        Ok(cancel) if method == "elicitation/create" => outputs.answer_session(id, cancel),
        _ => outputs.send_to_session(error_line(Some(id), -32603, "the client sent no input")),
    }
}
