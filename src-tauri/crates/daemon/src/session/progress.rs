//! Sends progress notifications while a call waits for the user's answer, because a client that requested progress may
//! otherwise time out.

use super::Session;
use ironcurtain_mcp::wire::notification_line;
use serde_json::value::{RawValue, to_raw_value};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Interval between notifications.
const INTERVAL: Duration = Duration::from_secs(5);

/// Text of each notification.
const MESSAGE: &str = "IronCurtain is waiting for the user's answer";

impl Session {
    /// Sends progress notifications until the future is dropped. Sends none if the call has no progress token.
    pub(super) async fn send_progress(&self, began: Instant, token: Option<Box<RawValue>>) -> Infallible {
        let Some(token) = token else { return std::future::pending().await };
        let mut ticks = interval_at(Instant::now() + INTERVAL, INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let params =
                Progress { progress_token: &token, progress: progress_value(began), message: MESSAGE };
            if let Ok(params) = to_raw_value(&params) {
                self.reply(notification_line("notifications/progress", Some(&params)));
            }
        }
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress<'a> {
    progress_token: &'a RawValue,
    progress: f64,
    message: &'static str,
}

/// Returns the progress value. It increases with time, as MCP requires, and stays below any value that the server
/// could send later.
fn progress_value(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() / 1e9
}
