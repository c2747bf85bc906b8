//! Queue of the calls that wait for the server, so that calls are forwarded in the order in which they arrived.
//!
//! - INVARIANT: a call's turn comes when every earlier call was forwarded or cancelled. A call that is cancelled while it waits
//!   hands its own wait to the call behind it.

use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self};

/// Completes when the place ahead is free, or yields what to wait for instead if that place was abandoned before its turn.
#[derive(Debug)]
struct Turn(oneshot::Receiver<Turn>);

/// Queue of waiting calls.
#[derive(Debug, Default)]
pub(super) struct CallQueue(Mutex<Option<Turn>>);

/// Place in the queue. Dropping it gives the turn to the next call.
#[derive(Debug)]
pub(super) struct QueuePlace {
    turn: Option<Turn>,
    next: Option<oneshot::Sender<Turn>>,
}

impl CallQueue {
    /// Returns `true` if every queued call was forwarded or cancelled.
    pub(super) fn is_empty(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(Turn(turn)) = last.as_mut() {
            match turn.try_recv() {
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Closed) => *last = None,
                Ok(before) => *last = Some(before),
            }
        }
        true
    }

    /// Joins the end of the queue.
    pub(super) fn join(&self) -> QueuePlace {
        let (next, turn) = oneshot::channel();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        QueuePlace { turn: last.replace(Turn(turn)), next: Some(next) }
    }
}

impl QueuePlace {
    /// Waits for this call's turn.
    pub(super) async fn turn(&mut self) {
        while let Some(Turn(turn)) = &mut self.turn {
            // A place dropped after its turn sends nothing.
            self.turn = turn.await.ok();
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let (Some(turn), Some(next)) = (self.turn.take(), self.next.take()) {
            // Fails if no call is queued behind this one.
            let _ = next.send(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn leaving_early_does_not_let_later_calls_overtake() {
        let queue = CallQueue::default();
        let mut first = queue.join();
        let (second, third) = (queue.join(), queue.join());
        assert!(first.turn().now_or_never().is_some() && !queue.is_empty());
        drop(third);
        assert!(!queue.is_empty(), "two stand before the place that is free");
        let mut fourth = queue.join();
        drop(second);
        assert!(fourth.turn().now_or_never().is_none(), "the first is not forwarded");
        drop(first);
        assert!(fourth.turn().now_or_never().is_some());
        drop(fourth);
        assert!(queue.is_empty());
    }
}
