//! Progress of a call while a person is asked about it: a client that gave a token and hears nothing would give up on the
//! call.

use super::Session;
use ironcurtain_mcp::wire::notification_line;
use serde_json::value::{RawValue, to_raw_value};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The time between two words of progress.
const INTERVAL: Duration = Duration::from_secs(5);

/// The words for the client.
const WORDS: &str = "IronCurtain waits for the user's answer";

impl Session {
    /// Tells the client of a call that began then that it still waits, until this is dropped; without a token it tells nothing.
    pub(super) async fn tell_progress(&self, began: Instant, token: Option<Box<RawValue>>) -> Infallible {
        let Some(token) = token else { return std::future::pending().await };
        let mut ticks = interval_at(Instant::now() + INTERVAL, INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let params = Progress { progress_token: &token, progress: waited(began), message: WORDS };
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

/// It grows with the time, and stays below all that the server may tell afterwards, as progress has to.
fn waited(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() / 1e9
}
