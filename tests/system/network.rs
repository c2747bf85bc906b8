//! Network access of a sandboxed server: connections that its proxy allows, approvals and revocation.
//!
//! The tests check the audit log and the connections that reach the destination.

mod allowed_hosts;
mod fetch_server;
mod questions;
pub mod test_network;

use crate::client::{Client, Outcome};
use crate::machine::descendants;
use crate::world::World;
use serde_json::{Value, json};
use std::path::PathBuf;

const HELLO: &str = "hello from outside";

impl Client {
    /// Fetches a URL with the tool whose URL the policy does not check.
    fn fetch_unjudged(&mut self, url: &str) -> String {
        self.call_free_tool("sneak", url)
    }

    /// Fetches a URL with the tool whose URL the policy checks.
    fn fetch_judged(&mut self, url: &str) -> Outcome {
        self.call("get", json!({ "url": url }))
    }

    /// Calls a tool that needs no approval.
    fn call_free_tool(&mut self, tool: &str, place: &str) -> String {
        self.call(tool, json!({ "where": place })).ok().to_owned()
    }
}

/// Returns the audit log's network entries, one per line: host, port, decision or failure, and reason.
fn network_log(world: &World) -> Vec<String> {
    let log = world.log();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = |entry: Value| {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert_eq!((text("/serverName"), &entry["sandboxed"]), ("fetcher", &json!(true)));
        let (decision, rule) = (text("/policyDecision/status"), text("/policyDecision/rule"));
        format!("{}:{} {decision}{} {rule}", text("/host"), entry["port"], text("/result"))
    };
    entries.filter(|entry| entry["event"] == "network").map(line).collect()
}

/// Returns the path of the sandbox's `/proc/PID/net/tcp` file. The server is the last process in the sandbox.
fn proxy_table(supervisor: u32) -> PathBuf {
    let server = descendants(supervisor).last().unwrap().pid;
    PathBuf::from(format!("/proc/{server}/net/tcp"))
}
