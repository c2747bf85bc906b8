//! A sandboxed server's network: what its proxy lets through, what it asks about, and what is taken back.
//!
//! Judged by what arrives on the other side and by what is on record.

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
    /// Fetches an address behind the policy's back.
    fn behind(&mut self, url: &str) -> String {
        self.free("sneak", url)
    }

    /// Fetches an address with the tool whose address is judged.
    fn get(&mut self, url: &str) -> Outcome {
        self.call("get", json!({ "url": url }))
    }

    /// Calls a tool that anybody may call.
    fn free(&mut self, tool: &str, place: &str) -> String {
        self.call(tool, json!({ "where": place })).ok().to_owned()
    }
}

/// The record of the network, one line each: host, port, decision or failure, and what decided.
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

/// The table of the sockets in a sandbox: that of its last process, the server.
fn proxy_table(supervisor: u32) -> PathBuf {
    let server = descendants(supervisor).last().unwrap().pid;
    PathBuf::from(format!("/proc/{server}/net/tcp"))
}
