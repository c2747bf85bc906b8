//! Waits until a server has applied one version of its roots.
//!
//! - Each wait has one deadline. Changes during the wait do not extend it.

use crate::server::roots::ServerView;
use ironcurtain_mcp::server::{ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::{Response, notification_line};
use ironcurtain_services::SessionLog;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time to wait for a server to apply changed roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time to wait for a server's first `roots/list`. The time is short, because the server may not support roots.
const FIRST_ASK_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum interval between two calls to `list_allowed_directories`.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Notification that the roots have changed.
pub(super) const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// Pending wait for one version of the roots.
pub(super) struct RootsWait {
    pub(super) version: u64,
    pub(super) outcome: Pin<Box<dyn Future<Output = WaitOutcome> + Send>>,
}

/// Result of a wait.
#[derive(Debug)]
pub(super) enum WaitOutcome {
    /// The process exited before it applied the roots.
    Exited,
    /// The server applied the roots, or the time limit was exceeded.
    Waited {
        /// `true` if the server requests roots, `false` if it does not, or `None` if that is still unknown.
        asks_for_roots: Option<bool>,
    },
}

impl RootsWait {
    /// Starts waiting for the roots in `shown`. `asks_for_roots` is `Some(true)` if the server is known to request
    /// roots. `lists_allowed` is `true` if the server has the `list_allowed_directories` tool.
    pub(super) fn begin(
        connection: ServerConnection,
        shown: ServerView,
        (asks_for_roots, lists_allowed): (Option<bool>, bool),
        log: SessionLog,
    ) -> Self {
        let version = shown.version;
        let outcome = wait_for_confirmation(connection, shown, asks_for_roots, lists_allowed, log);
        Self { version, outcome: Box::pin(outcome) }
    }
}

async fn wait_for_confirmation(
    connection: ServerConnection,
    shown: ServerView,
    mut asks_for_roots: Option<bool>,
    lists_allowed: bool,
    log: SessionLog,
) -> WaitOutcome {
    let deadline = Instant::now() + ROOTS_TIMEOUT;
    // A server that has the tool supports roots, even if it is slow to request them.
    let may_never_ask = asks_for_roots.is_none() && !lists_allowed;
    let bound = if may_never_ask { FIRST_ASK_TIMEOUT } else { ROOTS_TIMEOUT };
    let mut sent = connection.sent_roots.clone();
    let asked = tokio::time::timeout(bound, sent.wait_for(|v| *v >= shown.version)).await;
    match asked.map(|asked| asked.is_ok()) {
        Ok(true) => asks_for_roots = Some(true),
        Ok(false) => return WaitOutcome::Exited,
        Err(_) if asks_for_roots.is_none() => asks_for_roots = Some(*connection.sent_roots.borrow() > 0),
        Err(_) => log.write(format!("the server did not request its new roots within {bound:?}")),
    }
    if lists_allowed && asks_for_roots == Some(true) {
        confirm(&connection, &shown, deadline, &log).await;
    }
    WaitOutcome::Waited { asks_for_roots }
}

/// Calls the tool repeatedly until it lists every root. The server may apply new roots some time after receiving them.
async fn confirm(connection: &ServerConnection, shown: &ServerView, deadline: Instant, log: &SessionLog) {
    let mut pause = Duration::from_micros(500);
    let params =
        serde_json::value::to_raw_value(&serde_json::json!({ "name": super::LIST_ALLOWED, "arguments": {} }))
            .ok();
    while Instant::now() < deadline {
        let asked = connection.request("tools/call", params.as_deref());
        let Ok(answer) = tokio::time::timeout_at(deadline, asked.answer()).await else { break };
        match answer {
            ServerAnswer::Response(Response::Result(result)) => {
                let text = result_text(&result);
                if shown.is_covered_by_directories(&text.lines().map(str::trim).collect::<Vec<_>>()) {
                    return;
                }
            }
            ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_) => return,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
        if pause == MAX_PAUSE {
            // Notify the server again: if an older `roots/list` response arrived late, the server may have applied
            // outdated roots.
            connection.send(notification_line(ROOTS_CHANGED, None), None);
        }
    }
    log.write(format!("the server did not accept all of its roots within {ROOTS_TIMEOUT:?}"));
}

/// Joins all text items of a tool result.
fn result_text(result: &RawValue) -> String {
    let value: serde_json::Value = serde_json::from_str(result.get()).unwrap_or_default();
    let items = value.get("content").and_then(serde_json::Value::as_array);
    let texts = items.into_iter().flatten().filter_map(|item| item.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}
