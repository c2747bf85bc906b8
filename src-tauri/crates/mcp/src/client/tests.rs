//! Tests of whole conversations between a client and a core.

mod hostile;
mod initialize;
mod input_required;

use super::conversation::Conversation;
use super::outputs::ToSession;
use crate::wire::{Outgoing, meta_key};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Conversation, and the messages that it has produced for both sides.
struct TestConversation {
    conversation: Conversation,
    for_session: UnboundedReceiver<ToSession>,
    client: Vec<Value>,
}

impl TestConversation {
    fn new() -> Self {
        let (to_session, for_session) = unbounded_channel();
        Self { conversation: Conversation::new(to_session, None), for_session, client: Vec::new() }
    }

    /// Starts a conversation with an initialized core and discards its output.
    fn initialized(capabilities: &Value) -> Self {
        let mut conversation = Self::new();
        conversation.client_sends(&request(&json!(0), "server/discover", json!({}), capabilities));
        let initialize = conversation.session_receives();
        assert_eq!(initialize[0]["method"], "initialize", "{initialize:?}");
        let server = json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "s", "version": "1" },
            "capabilities": { "tools": {}, "logging": {}, "tasks": {}, "resources": { "subscribe": true } } });
        conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": initialize[0]["id"], "result": server }));
        assert_eq!(conversation.session_receives()[0]["method"], "notifications/initialized");
        conversation.client_receives();
        conversation
    }

    fn client_sends(&mut self, message: &Value) {
        self.client_sends_line(message.to_string().into_bytes());
    }

    fn client_sends_line(&mut self, line: Vec<u8>) {
        self.conversation.receive(line, None, &mut |line| self.client.push(read(&line)));
    }

    fn session_sends(&mut self, message: &Value) {
        let line = Outgoing::line(format!("{message}\n").into_bytes());
        self.conversation.send(line, &mut |line| self.client.push(read(&line)));
    }

    fn client_receives(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.client)
    }

    fn session_receives(&mut self) -> Vec<Value> {
        let mut received = Vec::new();
        while let Ok(for_session) = self.for_session.try_recv() {
            if let ToSession::Line(line, _) = for_session {
                received.extend(serde_json::from_slice(&line).ok());
            }
        }
        received
    }

    /// Calls `ask`, lets the server request input, and returns the state that the client receives.
    fn call_until_input_required(&mut self, id: u64) -> String {
        self.client_sends(&call(id, json!({}), &elicitation_capability()));
        assert_eq!(self.session_receives()[0]["method"], "tools/call");
        self.session_sends(&elicitation("a"));
        let received = self.client_receives();
        assert_eq!(received[0]["result"]["resultType"], "input_required", "{received:?}");
        received[0]["result"]["requestState"].as_str().unwrap().to_owned()
    }
}

fn read(line: &Outgoing) -> Value {
    let bytes: Vec<u8> = line.bytes().collect();
    assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "{}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap()
}

fn elicitation_capability() -> Value {
    json!({ "elicitation": {} })
}

fn request(id: &Value, method: &str, mut params: Value, capabilities: &Value) -> Value {
    let mut meta = params["_meta"].take();
    if meta.is_null() {
        meta = json!({});
    }
    meta[meta_key::PROTOCOL_VERSION] = json!("2026-07-28");
    meta[meta_key::CLIENT_CAPABILITIES] = capabilities.clone();
    params["_meta"] = meta;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Builds a call to the `ask` tool with extra fields.
fn call(id: u64, extra_fields: Value, capabilities: &Value) -> Value {
    let mut params = json!({ "name": "ask", "arguments": { "n": 1.0 } });
    params.as_object_mut().unwrap().extend(extra_fields.as_object().unwrap().clone());
    request(&json!(id), "tools/call", params, capabilities)
}

/// Builds a retry that answers the first input request.
fn retry(id: u64, state: &str) -> Value {
    let responses = json!({ "input-1": { "action": "accept", "content": { "x": 1 } } });
    call(id, json!({ "requestState": state, "inputResponses": responses }), &elicitation_capability())
}

fn elicitation(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": { "message": "which?" } })
}

fn done(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } })
}
