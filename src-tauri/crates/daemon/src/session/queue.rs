//! Queue of calls that are waiting for the server. Calls are forwarded in order of arrival.
//!
//! - INVARIANT: it is a call's turn once every earlier call has been forwarded or cancelled. If a waiting call is
//!   cancelled, the next call waits for the cancelled call's predecessor instead.

use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self};

/// Completes when the preceding call has left the queue. If that call left before its turn, yields the turn that the
/// call was waiting for.
#[derive(Debug)]
struct Turn(oneshot::Receiver<Turn>);

/// Queue of calls that are waiting for the server.
#[derive(Debug, Default)]
pub(super) struct CallQueue(Mutex<Option<Turn>>);

/// One call's slot in the queue. Dropping it lets the next call proceed.
#[derive(Debug)]
pub(super) struct QueueSlot {
    turn: Option<Turn>,
    next: Option<oneshot::Sender<Turn>>,
}

impl CallQueue {
    /// Returns `true` if no call is waiting.
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

    /// Adds a call to the end of the queue.
    pub(super) fn join(&self) -> QueueSlot {
        let (next, turn) = oneshot::channel();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        QueueSlot { turn: last.replace(Turn(turn)), next: Some(next) }
    }
}

impl QueueSlot {
    /// Waits until it is this call's turn.
    pub(super) async fn wait(&mut self) {
        while let Some(Turn(turn)) = &mut self.turn {
            // A call that leaves the queue after its turn sends nothing.
            self.turn = turn.await.ok();
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        if let (Some(turn), Some(next)) = (self.turn.take(), self.next.take()) {
            // Fails if no call is waiting behind this call.
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
        assert!(first.wait().now_or_never().is_some() && !queue.is_empty());
        drop(third);
        assert!(!queue.is_empty(), "two calls are ahead of the free slot");
        let mut fourth = queue.join();
        drop(second);
        assert!(fourth.wait().now_or_never().is_none(), "the first is not forwarded");
        drop(first);
        assert!(fourth.wait().now_or_never().is_some());
        drop(fourth);
        assert!(queue.is_empty());
    }
}
