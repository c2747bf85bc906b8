//! A client that declares all capabilities and connects to a server, directly or through a shim. It records each
//! step's messages without the parts that differ between runs.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

pub struct Peer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    steps: BTreeMap<String, Value>,
    /// Requests received from the server in the current step.
    asked: Vec<Value>,
    /// All notifications received from the server, in order.
    told: Vec<Value>,
    next: u64,
}

impl Peer {
    pub fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(serde_json::from_str(&line).expect("every line is JSON")).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, lines, steps: BTreeMap::new(), asked: vec![], told: vec![], next: 0 }
    }

    /// Sends a request. Records the response, and any server requests before it, under the step's name.
    pub fn step(&mut self, step: &str, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        let asked = std::mem::take(&mut self.asked);
        self.keep(step, &json!({ "answer": answer, "asked": asked }));
        answer
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.until(method, is_answer)
    }

    /// Records a value under the step's name.
    pub fn keep(&mut self, step: &str, value: &Value) {
        assert!(
            self.steps.insert(step.to_owned(), without_variable_parts(value)).is_none(),
            "two steps are named {step}"
        );
    }

    /// Records the server's requests since the last step under this step's name.
    pub fn keep_asked(&mut self, step: &str) {
        let asked = std::mem::take(&mut self.asked);
        self.keep(step, &json!(asked));
    }

    pub fn call(&mut self, step: &str, tool: &str, arguments: Value) -> Value {
        self.step(step, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub fn tell(&mut self, method: &str) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method }));
    }

    /// Waits for a notification with this method.
    pub fn wait_for(&mut self, method: &str) {
        if !self.told.iter().any(|told| told["method"] == method) {
            self.until(method, |message| message["method"] == method);
        }
    }

    /// Returns all recorded steps, and all notifications as one more step.
    pub fn steps(mut self) -> BTreeMap<String, Value> {
        let mut told: Vec<String> =
            self.told.iter().map(|told| without_variable_parts(told).to_string()).collect();
        told.sort();
        // How often these notifications repeat depends on timing.
        told.dedup();
        self.steps.insert("notifications".to_owned(), json!(told));
        std::mem::take(&mut self.steps)
    }

    fn until(&mut self, step: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.lines.recv_timeout(crate::client::TIMEOUT);
            let message = message.unwrap_or_else(|e| panic!("{step}: {e}; told {:?}", self.told));
            let is_wanted = wanted(&message);
            match (message.get("id"), message["method"].as_str()) {
                (Some(id), Some(method)) => {
                    let answer =
                        json!({ "jsonrpc": "2.0", "id": id, "result": answered(method, &message["params"]) });
                    self.asked.push(json!({ "method": method, "params": message["params"] }));
                    self.say(&answer);
                }
                (None, Some(_)) => self.told.push(message.clone()),
                (_, None) => {}
            }
            if is_wanted {
                return message;
            }
        }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the client's answer to a server request.
fn answered(method: &str, params: &Value) -> Value {
    let sampled =
        json!({ "role": "assistant", "content": { "type": "text", "text": "sampled" }, "model": "m" });
    let filled = json!({ "name": "Ann", "check": true, "interpretation": "technical" });
    // Like a real client, returns exactly the fields that the form asks for.
    let form = params["requestedSchema"]["properties"].as_object();
    let is_asked = |name: &str| form.is_none_or(|form| form.contains_key(name));
    let content: Map<String, Value> =
        filled.as_object().unwrap().clone().into_iter().filter(|(name, _)| is_asked(name)).collect();
    let elicited = json!({ "action": "accept", "content": content });
    let task = json!({ "taskId": "client-task", "status": "completed", "createdAt": "t", "lastUpdatedAt": "t", "ttl": null });
    match method {
        "roots/list" => json!({ "roots": [{ "uri": "file:///tmp", "name": "tmp" }] }),
        "sampling/createMessage" | "elicitation/create" if params.get("task").is_some() => {
            json!({ "task": task })
        }
        "sampling/createMessage" => sampled,
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" | "tasks/result" => elicited,
        "tasks/get" => task,
        _ => json!({}),
    }
}

/// Removes the parts that differ between runs: task names, times and random values.
fn without_variable_parts(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = |(name, value): (&String, &Value)| {
                let value = match name.as_str() {
                    "taskId" | "elicitationId" | "createdAt" | "lastUpdatedAt" | "id" => json!("…"),
                    // Log messages are random.
                    "data" | "level" if fields.contains_key("data") && fields.contains_key("level") => {
                        json!("…")
                    }
                    // The blob contains the time of day.
                    "blob" if fields["uri"].as_str().is_some_and(|uri| uri.contains("dynamic")) => json!("…"),
                    _ => without_variable_parts(value),
                };
                (name.clone(), value)
            };
            // Sorts the fields by key.
            let sorted: BTreeMap<String, Value> = fields.iter().map(kept).collect();
            Value::Object(sorted.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(values) => values.iter().map(without_variable_parts).collect(),
        Value::String(text) => Value::String(without_variable_text(text)),
        other => other.clone(),
    }
}

/// Removes times of day and task names from a text.
fn without_variable_text(text: &str) -> String {
    let text = match text.split_once("created at ") {
        Some((before, _)) => format!("{before}created at …"),
        None => text.to_owned(),
    };
    let is_name = |word: &&str| word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let mut out = text.clone();
    for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_name) {
        out = out.replace(name, "…");
    }
    out
}
