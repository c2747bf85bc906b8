//! Sends the lines of a connection to the remote server.
//!
//! - Requests run concurrently. After a message that expects no response, the next line is sent only once the server
//!   has accepted the message.
//! - Every request gets a response from the server, or an error.

use super::exchange::Exchange;
use super::fault::Fault;
use crate::wire::{Allowance, Id, Incoming, Input, Line, Lines, MAX_LINE_BYTES, Share, id_in};
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
struct Conversation {
    exchange: Arc<Exchange>,
    waiting: Arc<Waiting>,
    answers: JoinSet<()>,
    others: JoinSet<()>,
    listens: bool,
}

/// Tasks of the requests in flight, by request id.
#[derive(Default)]
struct Waiting(Mutex<HashMap<Id, AbortHandle>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends lines until either side closes the connection, then closes the session.
pub(super) async fn run(exchange: Exchange, from_us: Input, memory: Allowance, end: CancellationToken) {
    let exchange = Arc::new(exchange);
    let mut conversation = Conversation {
        exchange: exchange.clone(),
        waiting: Arc::default(),
        answers: JoinSet::new(),
        others: JoinSet::new(),
        listens: false,
    };
    let mut lines = Lines::within(memory, from_us, MAX_LINE_BYTES);
    let sent = async { while conversation.send(lines.next().await.ok().flatten()).await.is_some() {} };
    tokio::select! {
        biased;
        () = end.cancelled() => {}
        () = exchange.over.cancelled() => {}
        () = sent => {}
    }
    // Requests in flight fail when the connection closes.
    drop(conversation);
    exchange.goodbye().await;
}

impl Conversation {
    /// Sends one line. Returns `None` at the end of the input.
    async fn send(&mut self, line: Option<Line>) -> Option<()> {
        let (line, held) = match line? {
            Line::Whole(line, held) => (line, held),
            // Our own lines are never too long.
            Line::TooLong { head, .. } | Line::NoRoom { head } => {
                return match id_in(&head) {
                    Some(id) => self.exchange.refuse(&id, &Fault::NoRoom).await.ok(),
                    None => Some(()),
                };
            }
        };
        while self.answers.try_join_next().is_some() || self.others.try_join_next().is_some() {}
        let Ok(message) = Incoming::parse(&line) else { return Some(()) };
        match &message {
            Incoming::Request { id, .. } => {
                let id = id.clone();
                self.request(id, message, line, held).await;
            }
            Incoming::Notification { method, params } => {
                let begins = method == "notifications/initialized";
                let cancelled = cancelled(method, params.as_deref());
                self.send_other(&message, line).await;
                if let Some(task) = cancelled.and_then(|id| self.waiting.all().remove(&id)) {
                    task.abort();
                }
                if begins && !std::mem::replace(&mut self.listens, true) {
                    let exchange = self.exchange.clone();
                    self.others.spawn(async move { exchange.listen().await });
                }
            }
            Incoming::Response { .. } if self.answers.len() >= MAX_ANSWERS => {
                self.exchange.say("dropped a response: the server does not accept any at the moment").await;
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

    async fn request(&mut self, id: Id, message: Incoming, line: Vec<u8>, held: Option<Share>) {
        if self.waiting.all().len() >= MAX_REQUESTS {
            // This fails if the reader was dropped, which closes the connection anyway.
            let _ = self.exchange.refuse(&id, &Fault::TooMany(MAX_REQUESTS)).await;
            return;
        }
        let (exchange, waiting, entered) = (self.exchange.clone(), self.waiting.clone(), id.clone());
        // The lock is held until the request is inserted, so that the request's task cannot remove it earlier.
        let mut all = self.waiting.all();
        let task = self.others.spawn(async move {
            let outcome = exchange.request(&id, message, line, held).await;
            match outcome {
                Ok(()) => {}
                // The failure is reported when the connection closes. The next call then opens a new connection.
                Err(Fault::Forgotten) => exchange.forget(),
                // This fails if the reader was dropped, which closes the connection anyway.
                Err(fault) => drop(exchange.refuse(&id, &fault).await),
            }
            waiting.all().remove(&id);
        });
        all.insert(entered, task);
    }

    async fn send_other(&self, message: &Incoming, line: Vec<u8>) {
        log_outcome(&self.exchange, self.exchange.send_other(message, line).await).await;
    }
}

/// Reports the failure of a message that expects no response.
async fn log_outcome(exchange: &Exchange, outcome: Result<(), Fault>) {
    match outcome {
        Ok(()) => {}
        Err(Fault::Forgotten) => exchange.forget(),
        Err(fault) => exchange.say(&format!("failed to send a message: {fault}")).await,
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
