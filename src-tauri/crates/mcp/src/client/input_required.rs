//! The input that a server asks for during a call, and the state by which the client's retry finds the call again.

use super::outputs::Outputs;
use super::request::{Envelope, RequestRefusal};
use crate::wire::{Fields, Held, Id, Outgoing, Response, error_line};
use ironcurtain_paths::random_name;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt::Write;
use std::time::Duration;
use tokio::time::Instant;

/// The requests for input and the ability that a client must have declared for each.
const REQUESTS: [(&str, &str); 2] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling")];

/// The time that a client has to gather input.
const LIFETIME: Duration = Duration::from_secs(600);

/// The number of times that a client is asked during one call.
const MOST_ROUNDS: usize = 32;

/// The number of requests for input that may be open in one call.
const MOST_REQUESTS: usize = 32;

/// The longest parameters of a request for input.
const LONGEST_PARAMS: usize = 64 * 1024;

/// A request of the server.
pub(super) struct InputRequest {
    /// Its id in the core.
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// Its share of the memory, while it is open.
    pub(super) _held: Held,
    /// Its name in `inputRequests`.
    pub(super) key: String,
}

/// The input that one call needs.
pub(super) struct Input {
    digest: [u8; 32],
    /// The methods that the client takes.
    takes: Vec<&'static str>,
    requests: Vec<InputRequest>,
    last_key: usize,
    rounds: usize,
    /// The state that the client was given, and when it is over.
    state: Option<(String, Instant)>,
    /// The answer to the call, where it came before the client's input.
    pub(super) done: Option<(Response, Held)>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

impl Input {
    pub(super) fn new(envelope: &Envelope) -> Self {
        let taken = REQUESTS.iter().filter(|(_, capability)| envelope.takes(capability));
        Self {
            digest: envelope.digest,
            takes: taken.map(|(method, _)| *method).collect(),
            requests: Vec::new(),
            last_key: 0,
            rounds: 0,
            state: None,
            done: None,
        }
    }

    /// Returns `true` if this request can be taken.
    pub(super) fn takes(&self, request: &InputRequest) -> bool {
        let is_taken = self.takes.contains(&request.method.as_str());
        let is_short = request.params.as_ref().is_none_or(|params| params.get().len() <= LONGEST_PARAMS);
        is_taken && is_short && self.requests.len() < MOST_REQUESTS && self.done.is_none()
    }

    /// Takes a request, for the next time that the client is asked.
    pub(super) fn ask(&mut self, request: InputRequest) {
        self.last_key += 1;
        self.requests.push(InputRequest { key: format!("input-{}", self.last_key), ..request });
    }

    /// The core wants no answer any more.
    pub(super) fn take_back(&mut self, asked: &Id) {
        self.requests.retain(|request| request.id != *asked);
    }

    /// Ends the request of the client that waits by asking for all that is open.
    pub(super) fn require(&mut self, client: &Id, outputs: &mut Outputs<'_>) -> Result<(), RequestRefusal> {
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            return Err(RequestRefusal::TooManyRounds(MOST_ROUNDS));
        }
        let state = random_name()? + &random_name()?;
        let mut requests = String::new();
        for InputRequest { key, method, params, .. } in &self.requests {
            let comma = if requests.is_empty() { "" } else { "," };
            let params = params.as_ref().map(|raw| format!(",\"params\":{}", raw.get())).unwrap_or_default();
            // Writing into a string cannot fail.
            let _ = write!(requests, "{comma}\"{key}\":{{\"method\":\"{method}\"{params}}}");
        }
        let requests = requests.replace(['\n', '\r'], " ");
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{{{requests}}},\"requestState\":\"{state}\"}}"
        );
        self.state = Some((state, Instant::now() + LIFETIME));
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", client.as_json());
        outputs.client(Outgoing::line(line.into_bytes()));
        outputs.wake();
        Ok(())
    }

    /// Returns `true` if this is the state that the client was given.
    pub(super) fn is_opened_by(&self, state: &str) -> bool {
        self.state.as_ref().is_some_and(|(own, _)| own == state)
    }

    /// Takes the input of a retry: the core is answered, and the state is used up. What is missing stays open.
    pub(super) fn bring(
        &mut self,
        envelope: &Envelope,
        outputs: &mut Outputs<'_>,
    ) -> Result<(), RequestRefusal> {
        if envelope.digest != self.digest {
            return Err(RequestRefusal::OtherCall);
        }
        let none = Fields::default();
        let responses = envelope.responses.as_ref().unwrap_or(&none);
        let is_object = |raw: &RawValue| serde_json::from_str::<Fields>(raw.get()).is_ok();
        let given = |request: &InputRequest| responses.get(&request.key);
        if let Some(bad) =
            self.requests.iter().find(|request| given(request).is_some_and(|raw| !is_object(raw)))
        {
            return Err(RequestRefusal::NoAnswer(bad.key.clone()));
        }
        self.state = None;
        self.requests.retain(|request| match given(request) {
            Some(response) => {
                outputs.answer_session(&request.id, response.to_owned());
                false
            }
            None => true,
        });
        Ok(())
    }

    /// Returns `true` if nothing is asked for.
    pub(super) fn is_answered(&self) -> bool {
        self.requests.is_empty()
    }

    /// The end of the time that the client has, while it gathers input.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.state.as_ref().map(|(_, at)| *at)
    }

    /// Answers the core that there will be no input.
    pub(super) fn refuse_all(self, outputs: &mut Outputs<'_>) {
        for request in self.requests {
            refuse(&request.id, &request.method, outputs);
        }
    }
}

/// Tells the core that the client answers nothing.
fn refuse(id: &Id, method: &str, outputs: &mut Outputs<'_>) {
    match to_raw_value(&json!({ "action": "cancel" })) {
        Ok(cancel) if method == "elicitation/create" => outputs.answer_session(id, cancel),
        _ => outputs.session(error_line(Some(id), -32603, "the client brought no input")),
    }
}
