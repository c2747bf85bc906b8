//! The lines that the conversation has for a remote server, each sent as it comes.
//!
//! - Requests wait for their answers beside each other; what has no answer is accepted before the next line is sent.
//! - Every request is answered: by the server, or with why it has no answer.

use super::exchange::Exchange;
use super::fault::Fault;
use crate::wire::{Allowance, Id, Incoming, Input, Line, Lines, MAX_LINE_BYTES, Share, id_in};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The number of requests that may wait for the server at once.
const MOST_REQUESTS: usize = 128;

/// The number of answers of ours that may be on their way at once.
const MOST_ANSWERS: usize = 32;

/// The conversation's lines, and what became of them.
struct Conversation {
    exchange: Arc<Exchange>,
    waiting: Arc<Waiting>,
    answers: JoinSet<()>,
    others: JoinSet<()>,
    listens: bool,
}

/// The requests that wait.
#[derive(Default)]
struct Waiting(Mutex<HashMap<Id, AbortHandle>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends what the conversation says, until one of both is over; then says goodbye.
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
    // Whoever waits hears from the conversation that it is over.
    drop(conversation);
    exchange.goodbye().await;
}

impl Conversation {
    /// Sends one line; nothing where there are no more.
    async fn send(&mut self, line: Option<Line>) -> Option<()> {
        let (line, held) = match line? {
            Line::Whole(line, held) => (line, held),
            // The conversation has no longer ones.
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
                let taken_back = taken_back(method, params.as_deref());
                self.tell(&message, line).await;
                if let Some(task) = taken_back.and_then(|id| self.waiting.all().remove(&id)) {
                    task.abort();
                }
                if begins && !std::mem::replace(&mut self.listens, true) {
                    let exchange = self.exchange.clone();
                    self.others.spawn(async move { exchange.listen().await });
                }
            }
            Incoming::Response { .. } if self.answers.len() >= MOST_ANSWERS => {
                self.exchange.say("an answer was dropped: the server takes none").await;
            }
            Incoming::Response { .. } => {
                let exchange = self.exchange.clone();
                self.answers.spawn(async move { told(&exchange, exchange.tell(&message, line).await).await });
            }
        }
        Some(())
    }

    async fn request(&mut self, id: Id, message: Incoming, line: Vec<u8>, held: Option<Share>) {
        if self.waiting.all().len() >= MOST_REQUESTS {
            // Where nobody reads it, the conversation is over.
            let _ = self.exchange.refuse(&id, &Fault::TooMany(MOST_REQUESTS)).await;
            return;
        }
        let (exchange, waiting, entered) = (self.exchange.clone(), self.waiting.clone(), id.clone());
        // Held until the request is entered, so that its end comes after.
        let mut all = self.waiting.all();
        let task = self.others.spawn(async move {
            let outcome = exchange.request(&id, message, line, held).await;
            match outcome {
                Ok(()) => {}
                // It is told with the end, so that the next call does not go where nobody listens any more.
                Err(Fault::Forgotten) => exchange.over.cancel(),
                // As above.
                Err(fault) => drop(exchange.refuse(&id, &fault).await),
            }
            waiting.all().remove(&id);
        });
        all.insert(entered, task);
    }

    async fn tell(&self, message: &Incoming, line: Vec<u8>) {
        told(&self.exchange, self.exchange.tell(message, line).await).await;
    }
}

/// Notes what became of a message that has no answer.
async fn told(exchange: &Exchange, outcome: Result<(), Fault>) {
    match outcome {
        Ok(()) => {}
        Err(Fault::Forgotten) => exchange.over.cancel(),
        Err(fault) => exchange.say(&format!("a message was not taken: {fault}")).await,
    }
}

/// The request that a notification takes back.
fn taken_back(method: &str, params: Option<&RawValue>) -> Option<Id> {
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
