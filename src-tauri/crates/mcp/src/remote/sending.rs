//! Sends the lines of a connection to the remote server.
//!
//! - Requests run concurrently. After a message that expects no response, the next line is sent only once the server
//!   has accepted the message.
//! - Every request gets a response from the server, or an error.

use super::exchange::Exchange;
use super::fault::Fault;
use crate::wire::{Allowance, Id, Incoming, Input, Line, Lines, MAX_LINE_BYTES, Share, id_in_truncated};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Maximum number of requests in flight. Further requests are refused.
const MAX_REQUESTS: usize = 128;

/// Maximum number of our responses in flight. Further responses are dropped.
const MAX_ANSWERS: usize = 32;

/// Sending side of a connection.
struct LineSender {
    exchange: Arc<Exchange>,
    in_flight: Arc<InFlightTasks>,
    answers: JoinSet<()>,
    others: JoinSet<()>,
    is_listening: bool,
}

/// Tasks of the requests in flight, by request id.
#[derive(Default)]
struct InFlightTasks(Mutex<HashMap<Id, AbortHandle>>);

impl InFlightTasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends lines until either side closes the connection, then closes the session.
pub(super) async fn run(exchange: Exchange, input: Input, memory: Allowance, end: CancellationToken) {
    let exchange = Arc::new(exchange);
    let mut sender = LineSender {
        exchange: exchange.clone(),
        in_flight: Arc::default(),
        answers: JoinSet::new(),
        others: JoinSet::new(),
        is_listening: false,
    };
    let mut lines = Lines::with_allowance(memory, input, MAX_LINE_BYTES);
    let sending = async { while sender.send(lines.next().await.ok().flatten()).await.is_some() {} };
    tokio::select! {
        biased;
        () = end.cancelled() => {}
        () = exchange.closed.cancelled() => {}
        () = sending => {}
    }
    // Requests in flight fail when the connection closes.
    drop(sender);
    exchange.close_session().await;
}

impl LineSender {
    /// Sends one line. Returns `None` at the end of the input.
    async fn send(&mut self, line: Option<Line>) -> Option<()> {
        let (line, share) = match line? {
            Line::Whole(line, share) => (line, share),
            // Our own lines are never too long.
            Line::TooLong { head, .. } | Line::NoMemory { head } => {
                return match id_in_truncated(&head) {
                    Some(id) => self.exchange.refuse(&id, &Fault::NoMemory).await.ok(),
                    None => Some(()),
                };
            }
        };
        while self.answers.try_join_next().is_some() || self.others.try_join_next().is_some() {}
        let Ok(message) = Incoming::parse(&line) else { return Some(()) };
        match &message {
            Incoming::Request { id, .. } => {
                let id = id.clone();
                self.request(id, message, line, share).await;
            }
            Incoming::Notification { method, params } => {
                let is_initialized = method == "notifications/initialized";
                let cancelled = cancelled(method, params.as_deref());
                self.send_other(&message, line).await;
                if let Some(task) = cancelled.and_then(|id| self.in_flight.lock().remove(&id)) {
                    task.abort();
                }
                if is_initialized && !std::mem::replace(&mut self.is_listening, true) {
                    let exchange = self.exchange.clone();
                    self.others.spawn(async move { exchange.listen().await });
                }
            }
            Incoming::Response { .. } if self.answers.len() >= MAX_ANSWERS => {
                self.exchange.log("dropped a response: the server does not accept any at the moment").await;
            }
            Incoming::Response { .. } => {
                let exchange = self.exchange.clone();
                self.answers.spawn(async move {
                    log_outcome(&exchange, exchange.send_other(&message, line).await).await
                });
            }
        }
        Some(())
    }

    async fn request(&mut self, id: Id, message: Incoming, line: Vec<u8>, share: Option<Share>) {
        if self.in_flight.lock().len() >= MAX_REQUESTS {
            // This fails if the reader was dropped, which closes the connection anyway.
            let _ = self.exchange.refuse(&id, &Fault::TooMany(MAX_REQUESTS)).await;
            return;
        }
        let (exchange, in_flight, entered) = (self.exchange.clone(), self.in_flight.clone(), id.clone());
        // The lock is held until the request is inserted so that the request's task cannot remove it earlier.
        let mut tasks = self.in_flight.lock();
        let task = self.others.spawn(async move {
            let outcome = exchange.request(&id, message, line, share).await;
            match outcome {
                Ok(()) => {}
                // The failure is reported when the connection closes. The next call then opens a new connection.
                Err(Fault::SessionLost) => exchange.close_lost_session(),
                // This fails if the reader was dropped, which closes the connection anyway.
                Err(fault) => drop(exchange.refuse(&id, &fault).await),
            }
            in_flight.lock().remove(&id);
        });
        tasks.insert(entered, task);
    }

    async fn send_other(&self, message: &Incoming, line: Vec<u8>) {
        log_outcome(&self.exchange, self.exchange.send_other(message, line).await).await;
    }
}

/// Reports the failure of a message that expects no response.
async fn log_outcome(exchange: &Exchange, outcome: Result<(), Fault>) {
    match outcome {
        Ok(()) => {}
        Err(Fault::SessionLost) => exchange.close_lost_session(),
        Err(fault) => exchange.log(&format!("failed to send a message: {fault}")).await,
    }
}

/// Returns the id of the request that a notification cancels.
fn cancelled(method: &str, params: Option<&RawValue>) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Box<RawValue>,
    }
    if method != "notifications/cancelled" {
        return None;
    }
    let cancelled: Cancelled = serde_json::from_str(params?.get()).ok()?;
    Id::try_from(&*cancelled.request_id).ok()
}
