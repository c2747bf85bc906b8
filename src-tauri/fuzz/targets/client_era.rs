//! A stateless client and a core with a handshake. In any conversation, every request gets at most one response, which
//! is its own; the client is asked only under states that we issued; and messages pass unchanged.

#![no_main]

#[path = "../calls.rs"]
mod calls;
#[path = "../words.rs"]
mod words;

use arbitrary::Arbitrary;
use calls::{ACKNOWLEDGED, ClientCall, INPUTS, METHODS, NOTIFICATIONS, cancellation, request};
use ironcurtain_mcp::client::FuzzedClient;
use ironcurtain_mcp::wire::{
    Fields, Id, Incoming, Outgoing, Response, client_may_send, meta_key, server_may_send,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use words::{flat, line_of, object, one, pick, raw};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// The client sends a request.
    Asks {
        id: u8,
        method: u8,
        takes: u8,
        with: &'a str,
        meta: u8,
    },
    /// The client retries one of its calls, or another, with input.
    Brings {
        id: u8,
        state: u8,
        with: &'a str,
        is_other: bool,
    },
    Cancels {
        id: u8,
    },
    Says(&'a [u8]),
    /// The core responds to one of its requests, possibly a cancelled one.
    Answers {
        which: u8,
        with: &'a str,
        is_error: bool,
    },
    CoreAsks {
        id: u8,
        method: u8,
        with: &'a str,
    },
    CoreCancels {
        id: u8,
    },
    Tells {
        method: u8,
        with: &'a str,
    },
    CoreSays(&'a [u8]),
}

/// The conversation as both sides must see it.
#[derive(Default)]
struct Talk {
    edge: FuzzedClient,
    calls: Vec<ClientCall>,
    /// Unanswered requests of the client, with the numbers of their calls.
    open: HashMap<Id, Vec<Option<usize>>>,
    /// Ids that the client used for two requests at once, so that responses are ambiguous.
    doubled: HashSet<Id>,
    /// Requests that the core has, with the numbers of their calls and whether they were cancelled.
    at_core: Vec<(Id, String, Option<usize>)>,
    late: Vec<(Id, String, Option<usize>)>,
    /// States issued to the client, with their calls; and the states that were used.
    states: Vec<(String, usize)>,
    used: HashSet<String>,
    /// Unanswered requests of the core, with their texts.
    asked: HashMap<Id, String>,
    /// Texts of the client's responses.
    brought: Vec<String>,
    is_legacy: bool,
    said_by_core: u64,
    /// Set while the core responds to a cancelled request.
    is_late: bool,
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut talk = Talk::default();
    for step in steps.iter().take(64) {
        talk.step(step);
    }
    talk.end();
});

impl Talk {
    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Asks { id, method, takes, with, meta } => {
                let call = ClientCall { method: pick(&METHODS, *method), with: object(with), takes: *takes };
                let number = self.calls.len();
                let line = request(*id, number, &call, *meta, "");
                self.calls.push(call);
                drop(self.client_says(line, Some(number)));
            }
            Step::Brings { id, state, with, is_other } => self.brings(*id, *state, with, *is_other),
            Step::Cancels { id } => drop(self.client_says(cancellation(&id.to_string()), None)),
            Step::Says(bytes) => {
                let line = line_of(bytes);
                // Counted calls are created above.
                if !line.windows(5).any(|part| part == b"umber") {
                    self.client_says(line, None);
                }
            }
            Step::Answers { which, with, is_error } => {
                let known = self.at_core.len() + self.late.len();
                let Some(at) = usize::from(*which).checked_rem(known) else { return };
                let late = at.checked_sub(self.at_core.len());
                let (id, method, number) =
                    late.map_or_else(|| self.at_core.remove(at), |at| self.late.remove(at));
                self.is_late = late.is_some();
                self.answers(&id, &method, number, &object(with), *is_error);
                self.is_late = false;
            }
            Step::CoreAsks { id, method, with } => {
                let id = Id::from_string(&format!("s{}", id % 8));
                self.said_by_core += 1;
                let words = format!(r#"{{"asked":{},"x":{}}}"#, self.said_by_core, object(with));
                if self.asked.contains_key(&id) {
                    return;
                }
                let head = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"method":"{}","params":"#,
                    id.as_json(),
                    pick(&INPUTS, *method)
                );
                self.asked.insert(id, flat(&words));
                self.core_says(Outgoing::with_body(head.into_bytes(), raw(&words), b"}\n"));
            }
            Step::CoreCancels { id } => {
                let id = Id::from_string(&format!("s{}", id % 8));
                self.asked.remove(&id);
                self.core_says(Outgoing::line([cancellation(id.as_json()), b"\n".to_vec()].concat()));
            }
            Step::Tells { method, with } => {
                let head =
                    format!(r#"{{"jsonrpc":"2.0","method":"{}","params":"#, pick(&NOTIFICATIONS, *method));
                self.core_says(Outgoing::with_body(head.into_bytes(), raw(&object(with)), b"}\n"));
            }
            Step::CoreSays(bytes) => {
                let line = line_of(bytes);
                // The core responds only to requests, or to lines that are not messages.
                if !matches!(Incoming::parse(&line), Ok(Incoming::Response { .. } | Incoming::Request { .. }))
                {
                    self.core_says(Outgoing::line([line, b"\n".to_vec()].concat()));
                }
            }
        }
    }

    fn brings(&mut self, id: u8, state: u8, with: &str, is_other: bool) {
        let Some(at) = usize::from(state).checked_rem(self.states.len()) else { return };
        let (state, number) = self.states[at].clone();
        let was = &self.calls[number];
        let with_other = ClientCall { with: object(r#"{"other":true}"#), ..*was };
        let is_other = is_other && was.with != with_other.with;
        let again = if is_other { &with_other } else { was };
        let words = flat(&format!(r#"{{"brought":{},"x":{}}}"#, self.brought.len(), object(with)));
        let extra = format!(
            r#","requestState":"{state}","inputResponses":{{"input-1":{words},"input-2":{words},"input-3":{words}}}"#
        );
        let line = request(id, number, again, 0, &extra);
        self.brought.push(words);
        let before = self.at_core.len();
        let heard = self.client_says(line, Some(number));
        if self.is_legacy {
            return;
        }
        assert!(self.at_core.len() <= before, "a retry counts as a separate call");
        let is_refused = heard.iter().any(|(heard, error)| *error && heard.as_json() == id.to_string());
        if !is_refused {
            assert!(!is_other, "a state was accepted for another call");
            assert!(self.used.insert(state), "a state was used twice");
        }
    }

    /// Sends a line of the client. Returns the immediate responses, and which of them are errors.
    fn client_says(&mut self, line: Vec<u8>, number: Option<usize>) -> Vec<(Id, bool)> {
        match Incoming::parse(&line) {
            Ok(Incoming::Request { id, .. }) => {
                let open = self.open.entry(id.clone()).or_default();
                open.push(number);
                if open.len() > 1 {
                    self.doubled.insert(id);
                }
            }
            Ok(Incoming::Notification { method, params }) if method == "notifications/cancelled" => {
                let fields = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                let id = fields.and_then(|fields| Id::try_from(fields.get("requestId")?).ok());
                if let Some(id) = id.filter(|_| !self.is_legacy) {
                    self.open.remove(&id);
                }
            }
            Ok(_) | Err(_) => {}
        }
        self.edge.client_sends(line.clone());
        self.look(&line)
    }

    fn core_says(&mut self, line: Outgoing) {
        let bytes: Vec<u8> = line.bytes().collect();
        self.edge.session_sends(line);
        if self.is_legacy {
            assert_eq!(self.edge.client_receives(), [bytes], "a message to the stateless client was changed");
        }
        drop(self.look(&[]));
    }

    fn answers(&mut self, id: &Id, method: &str, number: Option<usize>, with: &str, is_error: bool) {
        let number = number.map_or("null".to_owned(), |n| n.to_string());
        let body = match (is_error, method) {
            (true, _) => format!(r#"{{"code":-1,"message":"no","data":{{"number":{number},"x":{with}}}}}"#),
            (false, "initialize") => format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{{"logging":{{}},"resources":{{"subscribe":true}}}},"serverInfo":{with}}}"#
            ),
            (false, _) if with.contains("ype") => with.to_owned(),
            (false, _) => format!(r#"{{"number":{number},"x":{with}}}"#),
        };
        let name = if is_error { "error" } else { "result" };
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"{name}":"#, id.as_json());
        self.core_says(Outgoing::with_body(head.into_bytes(), raw(&body), b"}\n"));
    }

    /// Checks all output. `given` is the line of the client that was just read.
    fn look(&mut self, given: &[u8]) -> Vec<(Id, bool)> {
        for line in self.edge.session_receives() {
            if line == given {
                self.is_legacy |= matches!(Incoming::parse(&line), Ok(Incoming::Request { .. }));
                continue;
            }
            assert!(!self.is_legacy, "a message of the handshake client was changed");
            self.core_hears(&line);
        }
        let mut answers = Vec::new();
        for line in self.edge.client_receives() {
            if !self.is_legacy {
                answers.extend(self.client_hears(&line));
            }
        }
        answers
    }

    fn core_hears(&mut self, line: &[u8]) {
        one(line);
        match Incoming::parse(line).expect("the core received an invalid message") {
            Incoming::Request { id, method, params } => {
                assert!(!["server/discover", "subscriptions/listen", "ping"].contains(&&*method), "{method}");
                assert!(!method.starts_with("tasks/"), "{method}");
                let known = self.at_core.iter().any(|(own, ..)| *own == id);
                assert!(!known, "the core has two requests with one id");
                let params: Fields = serde_json::from_str(params.as_ref().unwrap().get()).unwrap();
                assert!(params.get("requestState").is_none() && params.get("inputResponses").is_none());
                let meta = params.get("_meta").map_or("", RawValue::get);
                assert!(!meta.contains("io.modelcontextprotocol/client"), "{meta}");
                let number = params.get("number").and_then(|raw| raw.get().parse().ok());
                if let Some(call) = number.and_then(|number: usize| self.calls.get(number)) {
                    assert_eq!(params.get("arguments").unwrap().get(), flat(&call.with));
                }
                self.late.retain(|(late, ..)| *late != id);
                self.at_core.push((id, method, number));
            }
            Incoming::Notification { method, params } => {
                assert!(client_may_send(&method), "{method}");
                let fields = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                let id = fields.and_then(|fields| Id::try_from(fields.get("requestId")?).ok());
                if let ("notifications/cancelled", Some(id)) = (&*method, id) {
                    let at = self.at_core.iter().position(|(own, ..)| *own == id);
                    self.late.extend(at.map(|at| self.at_core.remove(at)));
                }
            }
            Incoming::Response { id, response } => {
                assert!(self.asked.remove(&id).is_some(), "a response without a request, or a second one");
                let Response::Result(result) = response else { return };
                let is_theirs = self.brought.iter().any(|words| words == result.get());
                assert!(is_theirs || result.get() == r#"{"action":"cancel"}"#, "{}", result.get());
            }
        }
    }

    /// Returns the id of the request that the response answers, and whether it is an error.
    fn client_hears(&mut self, line: &[u8]) -> Option<(Id, bool)> {
        one(line);
        match Incoming::parse(line) {
            // The core's response to a line without an id.
            Err(_) => None,
            Ok(Incoming::Request { method, .. }) => panic!("the client is asked by `{method}`"),
            Ok(Incoming::Notification { method, params }) => {
                let is_stamped = params.is_some_and(|raw| raw.get().contains(meta_key::SUBSCRIPTION_ID));
                let is_of_a_call = ["notifications/progress", "notifications/message"].contains(&&*method);
                assert!(method == ACKNOWLEDGED || server_may_send(&method), "{method}");
                assert!(is_of_a_call || is_stamped, "{method} without a subscription");
                None
            }
            Ok(Incoming::Response { id, response }) => {
                let mut open = self.open.remove(&id).unwrap_or_default();
                let is_error = matches!(response, Response::Error(_));
                if open.is_empty() {
                    assert!(is_error && self.is_late, "{} is answered twice", id.as_json());
                    return None;
                }
                let number = open.remove(0);
                match response {
                    _ if self.doubled.contains(&id) => {}
                    Response::Error(error) => {
                        let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
                        let said = error["data"]["number"].as_u64();
                        assert!(
                            said.is_none_or(|said| number == Some(said as usize)),
                            "the error of another call"
                        );
                    }
                    Response::Result(result) => self.result(&result, number),
                }
                self.open.insert(id.clone(), open);
                Some((id, is_error))
            }
        }
    }

    fn result(&mut self, result: &RawValue, number: Option<usize>) {
        // For example, a result with a number that no program can read exactly.
        let Ok(read) = serde_json::from_str::<Value>(result.get()) else { return };
        match read["resultType"].as_str() {
            Some("complete") => {
                if let Some(said) = read["number"].as_u64() {
                    assert_eq!(number, Some(said as usize), "the response to another call");
                    assert!(read.get("x").is_some());
                }
            }
            Some("input_required") => {
                let state = read["requestState"].as_str().unwrap().to_owned();
                let number = number.expect("a request that is not a call requested input");
                assert!(state.len() >= 32 && self.states.iter().all(|(own, _)| *own != state));
                let requests: HashMap<String, Value> =
                    serde_json::from_value(read["inputRequests"].clone()).unwrap();
                assert!(!requests.is_empty(), "it requests no input");
                for request in requests.values() {
                    let at = INPUTS.iter().position(|method| request["method"] == *method).unwrap();
                    assert!(
                        at < 2 && self.calls[number].takes & (1 << at) != 0,
                        "the client does not support this request"
                    );
                    let words: Vec<Value> =
                        self.asked.values().filter_map(|words| serde_json::from_str(words).ok()).collect();
                    assert!(words.contains(&request["params"]), "an unknown input request");
                }
                self.states.push((state, number));
            }
            other => panic!("a result of the type {other:?}"),
        }
    }

    /// Asserts that every open request gets exactly one response once both sides have finished.
    fn end(&mut self) {
        while let Some((id, method, number)) = self.at_core.pop() {
            self.answers(&id, &method, number, "{}", false);
        }
        if self.is_legacy {
            return;
        }
        let unread = self.edge.ends();
        assert!(unread.is_empty(), "the core was initialized, and answered");
        drop(self.look(&[]));
        let left: Vec<&Id> =
            self.open.iter().filter(|(_, open)| !open.is_empty()).map(|(id, _)| id).collect();
        assert!(left.is_empty(), "requests without a response: {left:?}");
        assert!(self.asked.is_empty(), "the core waits for {:?}", self.asked);
    }
}
