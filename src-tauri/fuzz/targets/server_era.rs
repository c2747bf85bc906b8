//! A core with a handshake and a server of either version. In any conversation, every request gets
//! one response, which is its own, and messages pass unchanged.

#![no_main]

#[path = "../words.rs"]
mod words;

use arbitrary::Arbitrary;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{ClientAnswer, FuzzedServer, RequestHandle, ServerAnswer};
use ironcurtain_mcp::wire::{Fields, Id, Incoming, Response, STATELESS_VERSION, meta_key, server_may_send};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use words::{flat, line_of, object, one, pick, raw};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// The core sends a request.
    Asks {
        method: u8,
        with: &'a str,
        is_task: bool,
    },
    Cancels {
        which: u8,
    },
    /// The server responds to one of its requests.
    Answers {
        which: u8,
        kind: u8,
        with: &'a str,
    },
    ServerAsks {
        id: u8,
        method: u8,
        with: &'a str,
    },
    Tells {
        method: u8,
        with: &'a str,
    },
    ServerSays(&'a [u8]),
    ClientAnswers {
        which: u8,
        with: &'a str,
        is_error: bool,
    },
    Waits,
}

const METHODS: [&str; 8] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "logging/setLevel",
    "resources/subscribe",
    "tasks/get",
    "x\"y",
];
/// Methods that a server of the other version never receives.
const NOT_SENT: [&str; 3] = ["logging/setLevel", "resources/subscribe", "tasks/get"];
const INPUTS: [&str; 4] = ["elicitation/create", "sampling/createMessage", "roots/list", "ping"];
/// Input requests that the client accepts.
const TAKES: &[&str] = INPUTS.split_at(2).0;
const NOTIFICATIONS: [&str; 6] = [
    "notifications/progress",
    "notifications/cancelled",
    "notifications/tools/list_changed",
    "notifications/initialized",
    "notifications/subscriptions/acknowledged",
    "x",
];

/// Responses, by the numbers of their requests.
type Answers = Arc<Mutex<Vec<(usize, ServerAnswer)>>>;

struct Ask {
    with: String,
    at: RequestHandle,
    is_over: bool,
    /// The newest state from the server, and the client's input for it.
    state: Option<String>,
    rounds: usize,
    /// Every result from the server.
    results: Vec<String>,
}

struct Talk {
    edge: FuzzedServer,
    runtime: Runtime,
    is_modern: bool,
    answers: Answers,
    asks: Vec<Ask>,
    /// Requests that the server has, with their numbers.
    at_server: Vec<(Id, Option<usize>)>,
    ids: HashSet<Id>,
    /// Unanswered requests of the server.
    asked: HashSet<Id>,
    /// Requests that the client has.
    at_client: Vec<Id>,
    /// Input from the client.
    brought: Vec<String>,
}

fuzz_target!(|input: (bool, &str, Vec<Step<'_>>)| {
    let (is_modern, info, steps) = input;
    let greeting = json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": info }, "capabilities": { "tasks": {} } });
    let discovered = json!({ "supportedVersions": [STATELESS_VERSION, info],
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } } });
    let discovered = is_modern.then(|| raw(&discovered.to_string()));
    let edge = FuzzedServer::new(&raw(&greeting.to_string()), discovered.as_deref()).unwrap();
    let mut talk = Talk {
        edge,
        runtime: Builder::new_current_thread().enable_time().start_paused(true).build().unwrap(),
        is_modern,
        answers: Arc::default(),
        asks: Vec::new(),
        at_server: Vec::new(),
        ids: HashSet::new(),
        asked: HashSet::new(),
        at_client: Vec::new(),
        brought: Vec::new(),
    };
    for step in steps.iter().take(64) {
        talk.step(step);
        talk.look();
    }
    talk.end();
});

impl Talk {
    fn step(&mut self, step: &Step<'_>) {
        let runtime = self.runtime.handle().clone();
        let _entered = runtime.enter();
        match step {
            Step::Asks { method, with, is_task } => self.asks(pick(&METHODS, *method), with, *is_task),
            Step::Cancels { which } => {
                let Some(at) = usize::from(*which).checked_rem(self.asks.len()) else { return };
                self.asks[at].is_over = true;
                self.asks[at].at.cancel(Some("no"));
            }
            Step::Answers { which, kind, with } => {
                let Some(at) = usize::from(*which).checked_rem(self.at_server.len()) else { return };
                let (id, number) = self.at_server.remove(at);
                self.answers(&id, number, *kind, &object(with));
            }
            Step::ServerAsks { id, method, with } => {
                let id = match id % 6 {
                    0 => Id::from_string("ironcurtain-input:1"),
                    1 => Id::from_string("ironcurtain-input:2"),
                    n => Id::from_string(&format!("s{n}")),
                };
                let method = pick(&INPUTS, *method);
                let line = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{}}}"#,
                    id.as_json(),
                    object(with)
                );
                // A request with the id of an open one is rejected.
                self.says(&line);
                self.asked.insert(id);
            }
            Step::Tells { method, with } => {
                self.says(&format!(
                    r#"{{"jsonrpc":"2.0","method":"{}","params":{}}}"#,
                    pick(&NOTIFICATIONS, *method),
                    object(with)
                ));
            }
            Step::ServerSays(bytes) => {
                let line = line_of(bytes);
                // Requests and responses are created above.
                if !matches!(Incoming::parse(&line), Ok(Incoming::Request { .. } | Incoming::Response { .. }))
                {
                    self.edge.server_sends(line);
                }
            }
            Step::ClientAnswers { which, with, is_error } => {
                let Some(at) = usize::from(*which).checked_rem(self.at_client.len()) else { return };
                let id = self.at_client.remove(at);
                let words = format!(r#"{{"brought":{},"x":{}}}"#, self.brought.len(), object(with));
                let response =
                    if *is_error { Response::Error(raw(&words)) } else { Response::Result(raw(&words)) };
                self.brought.push(words);
                if let Some(request) = self.edge.connection().take_client_request(&id) {
                    request.respond(ClientAnswer::unchecked(response), None);
                }
            }
            Step::Waits => self.wait(),
        }
    }

    fn asks(&mut self, method: &str, with: &str, is_task: bool) {
        let (number, with) = (self.asks.len(), object(with));
        let task = if is_task { r#","task":{}"# } else { "" };
        // Fields that only our retries have are not accepted from others.
        let params = format!(
            r#"{{"number":{number},"uri":"u{number}","arguments":{with},"requestState":"forged","inputResponses":{{}}{task}}}"#
        );
        let answers = self.answers.clone();
        let then = move |answer, _| answers.lock().unwrap().push((number, answer));
        let request = ServerRequest::unchecked(method, Some(raw(&params)));
        let at = self.edge.connection().forward_request(request, None, then);
        let (state, results) = (None, Vec::new());
        self.asks.push(Ask { with, at, is_over: false, state, rounds: 0, results });
    }

    fn answers(&mut self, id: &Id, number: Option<usize>, kind: u8, with: &str) {
        let written = number.map_or("null".to_owned(), |n| n.to_string());
        let complete = format!(r#"{{"number":{written},"x":{with}}}"#);
        let state = format!(r#"{{"state":{written},"x":{with}}}"#);
        let (name, body) = match kind % 8 {
            0 => ("error", with.to_owned()),
            1 => ("result", with.to_owned()),
            2 => ("result", format!(r#"{{"resultType":"input_required","requestState":{state}}}"#)),
            n @ 3..=5 => {
                let method = INPUTS[usize::from(n) - 3];
                let requests = format!(
                    r#"{{"a":{{"method":"{method}","params":{with}}},"b":{{"method":"roots/list"}}}}"#
                );
                (
                    "result",
                    format!(
                        r#"{{"resultType":"input_required","requestState":{state},"inputRequests":{requests}}}"#
                    ),
                )
            }
            _ => ("result", complete),
        };
        if let Some(ask) = number.and_then(|number| self.asks.get_mut(number)) {
            ask.state = body.contains("\"requestState\"").then_some(state);
            ask.results.push(body.clone());
        }
        let id = if kind >= 248 { format!("\"{}\"", id.as_json()) } else { id.as_json().to_owned() };
        self.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"{name}":{body}}}"#));
    }

    fn says(&self, line: &str) {
        self.edge.server_sends(line_of(line.as_bytes()));
    }

    fn wait(&mut self) {
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_secs(1)).await });
    }

    /// Checks all output.
    fn look(&mut self) {
        for line in self.edge.server_receives() {
            self.server_hears(&line);
        }
        for line in self.edge.client_receives() {
            one(&line);
            match Incoming::parse(&line).expect("the client received an invalid message") {
                Incoming::Request { id, method, .. } => {
                    assert!(TAKES.contains(&&*method), "{method}");
                    assert!(!self.at_client.contains(&id), "the client has two requests with one id");
                    self.at_client.push(id);
                }
                Incoming::Notification { method, params } => {
                    assert!(server_may_send(&method), "{method}");
                    if let ("notifications/cancelled", Some(id)) = (&*method, cancelled_id(params.as_deref()))
                    {
                        self.at_client.retain(|own| *own != id);
                        self.asked.remove(&id);
                    }
                }
                Incoming::Response { id, .. } => panic!("{} is answered past whoever asked", id.as_json()),
            }
        }
        for (number, answer) in std::mem::take(&mut *self.answers.lock().unwrap()) {
            let ask = &mut self.asks[number];
            assert!(!ask.is_over, "answered twice, or after its cancellation");
            ask.is_over = true;
            if let ServerAnswer::Response(Response::Result(result)) = answer {
                let is_own = ask.results.iter().any(|said| flat(said) == result.get());
                assert!(
                    is_own || (self.is_modern && result.get() == "{}"),
                    "the answer of another: {}",
                    result.get()
                );
                let kind =
                    serde_json::from_str::<Value>(result.get()).unwrap_or_default()["resultType"].take();
                assert!(!self.is_modern || kind.is_null() || kind == "complete", "{kind}");
            }
        }
    }

    fn server_hears(&mut self, line: &[u8]) {
        one(line);
        match Incoming::parse(line).expect("the server received an invalid message") {
            Incoming::Request { id, method, params } => {
                assert!(self.ids.insert(id.clone()), "an id was used twice");
                let params: Fields = serde_json::from_str(params.as_ref().unwrap().get()).unwrap();
                let number = params.get("number").and_then(|raw| raw.get().parse::<usize>().ok());
                if let Some(ask) = number.and_then(|number| self.asks.get_mut(number)) {
                    assert_eq!(params.get("arguments").unwrap().get(), flat(&ask.with));
                    ask.rounds += 1;
                    if self.is_modern {
                        assert!(params.get("task").is_none() || method != "tools/call");
                        let state = params.get("requestState").map(RawValue::get);
                        let expected = ask.state.take().filter(|_| ask.rounds > 1).map(|state| flat(&state));
                        assert_eq!(state, expected.as_deref(), "a state that the server did not issue");
                        brought(&params, &self.brought);
                    }
                }
                if self.is_modern {
                    assert!(!NOT_SENT.contains(&&*method), "{method}");
                    let meta: HashMap<String, Value> =
                        serde_json::from_str(params.get("_meta").unwrap().get()).unwrap();
                    assert_eq!(meta[meta_key::PROTOCOL_VERSION], STATELESS_VERSION);
                    assert_eq!(meta[meta_key::CLIENT_CAPABILITIES], json!({}));
                }
                self.at_server.push((id, number));
            }
            Incoming::Notification { method, params } => {
                assert_eq!(method, "notifications/cancelled");
                let id = cancelled_id(params.as_deref()).expect("a cancellation without a request id");
                assert!(self.ids.contains(&id), "cancelled before it was sent");
                self.at_server.retain(|(own, _)| *own != id);
            }
            Incoming::Response { id, response } => {
                assert!(self.asked.contains(&id), "a response without a request");
                if let Response::Result(result) = response {
                    let is_theirs = self.brought.iter().any(|words| flat(words) == result.get());
                    assert!(
                        is_theirs || ["{}", r#"{"roots":[]}"#].contains(&result.get()),
                        "{}",
                        result.get()
                    );
                }
            }
        }
    }

    /// Asserts that every request gets exactly one response once the server is closed.
    fn end(&mut self) {
        let runtime = self.runtime.handle().clone();
        let entered = runtime.enter();
        self.edge.ends();
        drop(entered);
        self.wait();
        self.look();
        for (number, ask) in self.asks.iter().enumerate() {
            assert!(ask.is_over, "request {number} has no response");
        }
    }
}

/// Asserts that the input of a retried call is the client's own, or our roots.
fn brought(params: &Fields, words: &[String]) {
    let Some(responses) = params.get("inputResponses") else { return };
    let responses: Fields = serde_json::from_str(responses.get()).unwrap();
    for (name, response) in responses.iter() {
        let is_theirs = words.iter().any(|words| flat(words) == response.get());
        assert!(
            is_theirs || (name != "a" || response.get() == r#"{"roots":[]}"#),
            "{name}: {}",
            response.get()
        );
    }
}

fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    let fields: Fields = serde_json::from_str(params?.get()).ok()?;
    Id::try_from(fields.get("requestId")?).ok()
}
