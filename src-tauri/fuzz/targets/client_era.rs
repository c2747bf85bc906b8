//! A client without a handshake and a core with one: whatever both say, nothing is answered twice or by another's answer, the client
//! is asked only under states of ours, and what passes is what was written.

#![no_main]

#[path = "../calls.rs"]
mod calls;
#[path = "../words.rs"]
mod words;

use arbitrary::Arbitrary;
use calls::{ACKNOWLEDGED, ClientCall, INPUTS, METHODS, NEWS, request, taken_back};
use ironcurtain_mcp::client::FuzzedClient;
use ironcurtain_mcp::wire::{
    Fields, Id, Incoming, Outgoing, Response, client_may_tell, meta_key, server_may_tell,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use words::{flat, line_of, object, one, pick, raw};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// The client asks for something.
    Asks {
        id: u8,
        method: u8,
        takes: u8,
        with: &'a str,
        meta: u8,
    },
    /// It brings the input for a call of its own, or of another.
    Brings {
        id: u8,
        state: u8,
        with: &'a str,
        is_other: bool,
    },
    TakesBack {
        id: u8,
    },
    Says(&'a [u8]),
    /// The core answers one of the requests that it has, also one that was just taken back.
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
    CoreTakesBack {
        id: u8,
    },
    Tells {
        method: u8,
        with: &'a str,
    },
    CoreSays(&'a [u8]),
}

/// Everything that was said, as both sides must have understood it.
#[derive(Default)]
struct Talk {
    edge: FuzzedClient,
    calls: Vec<ClientCall>,
    /// The requests of the client that have no answer, and the numbers of their calls.
    open: HashMap<Id, Vec<Option<usize>>>,
    /// Ids under which the client asked for two things at once: which of them an answer is for, nobody can tell.
    doubled: HashSet<Id>,
    /// The requests that the core has, with the numbers of their calls, and those of them that were taken back.
    at_core: Vec<(Id, String, Option<usize>)>,
    late: Vec<(Id, String, Option<usize>)>,
    /// The states that the client was given, and their calls; those that were used.
    states: Vec<(String, usize)>,
    used: HashSet<String>,
    /// The core's own requests that have no answer, and the words of each.
    asked: HashMap<Id, String>,
    /// The words with which the client answered.
    brought: Vec<String>,
    is_legacy: bool,
    said_by_core: u64,
    /// Set while the core answers what was taken back.
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
            Step::TakesBack { id } => drop(self.client_says(taken_back(&id.to_string()), None)),
            Step::Says(bytes) => {
                let line = line_of(bytes);
                // Calls that are counted are made above.
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
                let id = Id::text(&format!("s{}", id % 8));
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
                self.core_says(Outgoing::around(head.into_bytes(), raw(&words), b"}\n"));
            }
            Step::CoreTakesBack { id } => {
                let id = Id::text(&format!("s{}", id % 8));
                self.asked.remove(&id);
                self.core_says(Outgoing::line([taken_back(id.as_json()), b"\n".to_vec()].concat()));
            }
            Step::Tells { method, with } => {
                let head = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":"#, pick(&NEWS, *method));
                self.core_says(Outgoing::around(head.into_bytes(), raw(&object(with)), b"}\n"));
            }
            Step::CoreSays(bytes) => {
                let line = line_of(bytes);
                // The core answers nothing that it was not asked, but what was no message.
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
        let beside = format!(
            r#","requestState":"{state}","inputResponses":{{"input-1":{words},"input-2":{words},"input-3":{words}}}"#
        );
        let line = request(id, number, again, 0, &beside);
        self.brought.push(words);
        let before = self.at_core.len();
        let heard = self.client_says(line, Some(number));
        if self.is_legacy {
            return;
        }
        assert!(self.at_core.len() <= before, "a retry is a call of its own");
        let is_refused = heard.iter().any(|(heard, error)| *error && heard.as_json() == id.to_string());
        if !is_refused {
            assert!(!is_other, "a state opened another call");
            assert!(self.used.insert(state), "a state was used twice");
        }
    }

    /// A line of the client; the answers that come at once, and which of them are errors.
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
            assert_eq!(self.edge.client_receives(), [bytes], "what such a client is told is changed");
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
        self.core_says(Outgoing::around(head.into_bytes(), raw(&body), b"}\n"));
    }

    /// Looks at everything that came out. `given` is the line of the client that was just read.
    fn look(&mut self, given: &[u8]) -> Vec<(Id, bool)> {
        for line in self.edge.session_receives() {
            if line == given {
                self.is_legacy |= matches!(Incoming::parse(&line), Ok(Incoming::Request { .. }));
                continue;
            }
            assert!(!self.is_legacy, "what a client with a handshake says is changed");
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
        match Incoming::parse(line).expect("the core is told no message") {
            Incoming::Request { id, method, params } => {
                assert!(!["server/discover", "subscriptions/listen", "ping"].contains(&&*method), "{method}");
                assert!(!method.starts_with("tasks/"), "{method}");
                let known = self.at_core.iter().any(|(own, ..)| *own == id);
                assert!(!known, "the core has two requests of one id");
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
                assert!(client_may_tell(&method), "{method}");
                let fields = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                let id = fields.and_then(|fields| Id::try_from(fields.get("requestId")?).ok());
                if let ("notifications/cancelled", Some(id)) = (&*method, id) {
                    let at = self.at_core.iter().position(|(own, ..)| *own == id);
                    self.late.extend(at.map(|at| self.at_core.remove(at)));
                }
            }
            Incoming::Response { id, response } => {
                assert!(self.asked.remove(&id).is_some(), "an answer that was not asked for, or twice");
                let Response::Result(result) = response else { return };
                let is_theirs = self.brought.iter().any(|words| words == result.get());
                assert!(is_theirs || result.get() == r#"{"action":"cancel"}"#, "{}", result.get());
            }
        }
    }

    /// The answer that it is, and whether it is an error.
    fn client_hears(&mut self, line: &[u8]) -> Option<(Id, bool)> {
        one(line);
        match Incoming::parse(line) {
            // The core's own words about a line without an id.
            Err(_) => None,
            Ok(Incoming::Request { method, .. }) => panic!("the client is asked by `{method}`"),
            Ok(Incoming::Notification { method, params }) => {
                let is_stamped = params.is_some_and(|raw| raw.get().contains(meta_key::SUBSCRIPTION_ID));
                let is_of_a_call = ["notifications/progress", "notifications/message"].contains(&&*method);
                assert!(method == ACKNOWLEDGED || server_may_tell(&method), "{method}");
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
        // One with a number that nobody can read, for example.
        let Ok(read) = serde_json::from_str::<Value>(result.get()) else { return };
        match read["resultType"].as_str() {
            Some("complete") => {
                if let Some(said) = read["number"].as_u64() {
                    assert_eq!(number, Some(said as usize), "the answer of another call");
                    assert!(read.get("x").is_some());
                }
            }
            Some("input_required") => {
                let state = read["requestState"].as_str().unwrap().to_owned();
                let number = number.expect("a request that is no call asks for input");
                assert!(state.len() >= 32 && self.states.iter().all(|(own, _)| *own != state));
                let requests: HashMap<String, Value> =
                    serde_json::from_value(read["inputRequests"].clone()).unwrap();
                assert!(!requests.is_empty(), "it asks for nothing");
                for request in requests.values() {
                    let at = INPUTS.iter().position(|method| request["method"] == *method).unwrap();
                    assert!(at < 2 && self.calls[number].takes & (1 << at) != 0, "it takes no such thing");
                    let words: Vec<Value> =
                        self.asked.values().filter_map(|words| serde_json::from_str(words).ok()).collect();
                    assert!(words.contains(&request["params"]), "asked for what nobody asks for");
                }
                self.states.push((state, number));
            }
            other => panic!("a result of the type {other:?}"),
        }
    }

    /// Everything that is open is answered, once, when both sides have said all that they had to say.
    fn end(&mut self) {
        while let Some((id, method, number)) = self.at_core.pop() {
            self.answers(&id, &method, number, "{}", false);
        }
        if self.is_legacy {
            return;
        }
        let unread = self.edge.ends();
        assert!(unread.is_empty(), "the core was greeted, and answered");
        drop(self.look(&[]));
        let left: Vec<&Id> =
            self.open.iter().filter(|(_, open)| !open.is_empty()).map(|(id, _)| id).collect();
        assert!(left.is_empty(), "requests without an answer: {left:?}");
        assert!(self.asked.is_empty(), "the core waits for {:?}", self.asked);
    }
}
