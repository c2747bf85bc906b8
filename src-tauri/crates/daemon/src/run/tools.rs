//! Built-in MCP server with which an agent in a run requests, lists and releases access.
//!
//! - No tool grants access by itself: a request raises a question, and the tool returns once the user has answered.
//! - If a client disconnects or cancels a call, its questions are withdrawn.

use super::Run;
use super::tool_calls::ToolOutcome;
use ironcurtain_mcp::wire::{Id, Incoming, Line, Lines, error_line, result_line};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::task::{AbortHandle, JoinSet};

/// Name of the server.
pub(crate) const SERVER_NAME: &str = "ironcurtain";

/// Maximum length of a message, in bytes.
const MAX_LEN: usize = 64 * 1024;

/// Maximum number of calls per client that are waiting for the user.
const MAX_CALLS: usize = 16;

/// Supported protocol versions, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "This program runs in a sandbox. Opening a file or a host that is not granted asks the user \
    and waits for the answer, so trying is enough. Use `request_access` to ask beforehand, with a reason.";

/// A client's pending calls.
#[derive(Default)]
struct PendingCalls {
    tasks: JoinSet<(Id, ToolOutcome)>,
    by_id: HashMap<Id, AbortHandle>,
}

impl Run {
    /// Serves one client until it disconnects or the run ends.
    pub(crate) async fn serve_tools(self: Arc<Self>, stream: UnixStream) {
        tokio::select! {
            () = self.wait_for_end() => {}
            served = serve(&self, stream) => {
                if let Err(problem) = served {
                    tracing::debug!(%problem, run = self.id, "a client of the built-in server disconnected");
                }
            }
        }
    }
}

async fn serve(run: &Arc<Run>, stream: UnixStream) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut lines = Lines::new(from, MAX_LEN);
    let mut calls = PendingCalls::default();
    loop {
        let answer = tokio::select! {
            line = lines.next() => match line? {
                None => return Ok(()),
                Some(Line::Whole(line, _)) => handle_message(run, &mut calls, &line),
                Some(Line::TooLong { .. } | Line::NoMemory { .. }) => {
                    Some(error_line(None, ErrorCode::INVALID_REQUEST.0, "the message is too long"))
                }
            },
            Some(done) = calls.tasks.join_next() => match done {
                Ok((id, outcome)) => {
                    calls.by_id.remove(&id);
                    Some(result_line(&id, &outcome.into_result()))
                }
                // The call was cancelled.
                Err(_) => None,
            },
        };
        if let Some(answer) = answer {
            to.write_all(&answer).await?;
        }
    }
}

/// Handles a message. Returns the response, or `None` if the message needs no response or the call is pending.
fn handle_message(run: &Arc<Run>, calls: &mut PendingCalls, line: &[u8]) -> Option<Vec<u8>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    match Incoming::parse(line) {
        Ok(Incoming::Request { id, method, params }) => {
            handle_request(run, calls, id, &method, params.as_deref())
        }
        Ok(Incoming::Notification { method, params }) => {
            if method == "notifications/cancelled" {
                let id = params.as_deref().and_then(cancelled_id);
                id.and_then(|id| calls.by_id.remove(&id)).iter().for_each(AbortHandle::abort);
            }
            None
        }
        // This server sends no requests, so it ignores responses.
        Ok(Incoming::Response { .. }) => None,
        Err(problem) => Some(error_line(None, problem.code(), &problem.to_string())),
    }
}

fn handle_request(
    run: &Arc<Run>,
    calls: &mut PendingCalls,
    id: Id,
    method: &str,
    params: Option<&RawValue>,
) -> Option<Vec<u8>> {
    let failed = |code: ErrorCode, text: &str| Some(error_line(Some(&id), code.0, text));
    match method {
        "ping" => Some(result_line(&id, &Map::new())),
        "initialize" => Some(result_line(&id, &initialize_result(params))),
        "tools/list" => Some(result_line(&id, &json!({ "tools": super::tool_calls::tool_list() }))),
        "tools/call" => {
            let Some(Call { name, arguments }) = params.and_then(|raw| serde_json::from_str(raw.get()).ok())
            else {
                return failed(ErrorCode::INVALID_PARAMS, "`name` is missing");
            };
            if calls.by_id.len() >= MAX_CALLS || calls.by_id.contains_key(&id) {
                return failed(ErrorCode::INVALID_REQUEST, "too many calls are waiting for the user");
            }
            let (run, answered) = (run.clone(), id.clone());
            let task = calls
                .tasks
                .spawn(async move { (answered, run.call_tool(&name, arguments.as_deref()).await) });
            calls.by_id.insert(id, task);
            None
        }
        _ => failed(ErrorCode::METHOD_NOT_FOUND, "method not found"),
    }
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

fn initialize_result(params: Option<&RawValue>) -> Value {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeParams {
        protocol_version: String,
    }
    let requested = params.and_then(|raw| serde_json::from_str::<InitializeParams>(raw.get()).ok());
    let is_requested =
        |version: &&&str| requested.as_ref().is_some_and(|requested| requested.protocol_version == **version);
    let [newest, ..] = VERSIONS;
    json!({
        "protocolVersion": VERSIONS.iter().find(is_requested).unwrap_or(&newest),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

fn cancelled_id(params: &RawValue) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Box<RawValue>,
    }
    let cancelled: Cancelled = serde_json::from_str(params.get()).ok()?;
    Id::try_from(&*cancelled.request_id).ok()
}
