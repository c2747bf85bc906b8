//! The queue of calls that wait for the server, so that they are forwarded in the order in which they came.
//!
//! - INVARIANT: a call has its turn when all before it are forwarded or never will be. One that is taken back while it waits
//!   hands what it waits for to the one behind it.

use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// Completes when a place is free: with what is to be waited for instead, where that was given up before its turn.
#[derive(Debug)]
struct Turn(oneshot::Receiver<Turn>);

/// The calls that wait.
#[derive(Debug, Default)]
pub(super) struct CallQueue(Mutex<Option<Turn>>);

/// A place in the queue. The one behind it has its turn when this is dropped.
#[derive(Debug)]
pub(super) struct QueuePlace {
    turn: Option<Turn>,
    next: Option<oneshot::Sender<Turn>>,
}

impl CallQueue {
    /// Returns `true` if every call that had to wait is forwarded, or never will be.
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

    /// The place behind all others.
    pub(super) fn stand(&self) -> QueuePlace {
        let (next, turn) = oneshot::channel();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        QueuePlace { turn: last.replace(Turn(turn)), next: Some(next) }
    }
}

impl QueuePlace {
    /// Waits for its turn.
    pub(super) async fn comes(&mut self) {
        while let Some(Turn(turn)) = &mut self.turn {
            // Whoever has had its turn says nothing.
            self.turn = turn.await.ok();
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let (Some(turn), Some(next)) = (self.turn.take(), self.next.take()) {
            // Nobody may stand behind it.
            let _ = next.send(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn whoever_leaves_before_its_turn_lets_nobody_past_those_before_it() {
        let queue = CallQueue::default();
        let mut first = queue.stand();
        let (second, third) = (queue.stand(), queue.stand());
        assert!(first.comes().now_or_never().is_some() && !queue.is_empty());
        drop(third);
        assert!(!queue.is_empty(), "two stand before the place that is free");
        let mut fourth = queue.stand();
        drop(second);
        assert!(fourth.comes().now_or_never().is_none(), "the first is not forwarded");
        drop(first);
        assert!(fourth.comes().now_or_never().is_some());
        drop(fourth);
        assert!(queue.is_empty());
    }
}
