//! Calls of a client without a handshake.

use crate::words::line_of;
use ironcurtain_mcp::wire::{STATELESS_VERSION, meta_key};
use serde_json::{Value, json};

/// Methods of the client's requests.
pub const METHODS: [&str; 12] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "server/discover",
    "subscriptions/listen",
    "ping",
    "logging/setLevel",
    "tasks/get",
    "completion/complete",
    "initialize",
    "x\"y",
];
/// Methods with which the core asks for input.
pub const INPUTS: [&str; 4] = ["elicitation/create", "sampling/createMessage", "roots/list", "x"];
/// Notifications that the core sends.
pub const NOTIFICATIONS: [&str; 8] = [
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
    "notifications/elicitation/complete",
    "notifications/tasks/status",
    "notifications/initialized",
    "x",
];
/// The only notification that acknowledges a request.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A call of the client, with its number.
pub struct ClientCall {
    pub method: &'static str,
    pub with: String,
    pub takes: u8,
}

/// Formats a request with the number of its call and additional fields.
pub fn request(id: u8, number: usize, call: &ClientCall, meta: u8, extra: &str) -> Vec<u8> {
    let mut capabilities = json!({});
    for (at, name) in ["elicitation", "sampling", "roots", "tasks"].into_iter().enumerate() {
        if call.takes & (1 << at) != 0 {
            capabilities[name] = json!({});
        }
    }
    let mut fields = json!({ (meta_key::PROTOCOL_VERSION): STATELESS_VERSION, (meta_key::CLIENT_CAPABILITIES): capabilities });
    match meta % 8 {
        1 => fields["progressToken"] = json!(id),
        2 => fields["progressToken"] = json!("p"),
        3 => fields[meta_key::LOG_LEVEL] = json!("warning"),
        4 => fields[meta_key::CLIENT_INFO] = json!({ "name": "c", "version": "1" }),
        5 => fields[meta_key::PROTOCOL_VERSION] = json!("2031-01-01"),
        6 => drop(fields.as_object_mut().unwrap().remove(meta_key::CLIENT_CAPABILITIES)),
        _ => {}
    }
    let method = Value::from(call.method);
    let wanted = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a","b"]}"#;
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{{"number":{number},"arguments":{},{wanted},"_meta":{fields}{extra}}}}}"#,
        call.with
    );
    line_of(text.as_bytes())
}

/// Formats the cancellation of the request with this id.
pub fn cancellation(id: &str) -> Vec<u8> {
    let text =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    text.into_bytes()
}
