//! Queue of questions and notices for the terminal thread.
//!
//! - A closed question is removed immediately, even if it is still queued.

use super::super::{AnswerSlot, Question, WithdrawalReason};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sending end of the queue.
#[derive(Debug)]
pub(super) struct Outbox {
    pending: Arc<Mutex<Pending>>,
    /// Socket that wakes the receiving end. The receiving end stops when the socket is closed.
    wake_sender: UnixStream,
}

/// Receiving end of the queue, used by the terminal thread.
#[derive(Debug)]
pub(super) struct Inbox {
    pending: Arc<Mutex<Pending>>,
    wake_receiver: UnixStream,
}

/// Next item for the terminal to show.
#[derive(Debug)]
pub(super) enum NextItem {
    /// A question and the slot for its answer.
    Question(Box<Question>, AnswerSlot),
    /// A message that requires no answer.
    Notice(String),
}

/// Maximum number of notices to keep while a question is on the screen.
const MAX_NOTICES: usize = 10;

#[derive(Debug, Default)]
struct Pending {
    notices: VecDeque<String>,
    queue: VecDeque<(Question, AnswerSlot)>,
    /// Id of the question on the screen, and the reason it was closed, or `None` if it is open.
    on_screen: Option<(String, Option<WithdrawalReason>)>,
    closed: bool,
}

/// Creates both ends of the queue.
pub(super) fn channel() -> io::Result<(Outbox, Inbox)> {
    let (wake_sender, wake_receiver) = UnixStream::pair()?;
    wake_sender.set_nonblocking(true)?;
    wake_receiver.set_nonblocking(true)?;
    let pending = Arc::default();
    Ok((Outbox { pending: Arc::clone(&pending), wake_sender }, Inbox { pending, wake_receiver }))
}

impl Outbox {
    pub(super) fn push(&self, question: Question, slot: AnswerSlot) {
        lock(&self.pending).queue.push_back((question, slot));
        self.wake();
    }

    /// Queues a message. It is shown when no question is on the screen.
    pub(super) fn notify(&self, notice: &str) {
        let mut pending = lock(&self.pending);
        if pending.notices.len() == MAX_NOTICES {
            pending.notices.pop_front();
        }
        pending.notices.push_back(notice.to_owned());
        drop(pending);
        self.wake();
    }

    pub(super) fn withdraw(&self, id: &str, why: WithdrawalReason) {
        let mut pending = lock(&self.pending);
        pending.queue.retain(|(question, _)| question.id != id);
        match &mut pending.on_screen {
            Some((on_screen, over)) if on_screen == id => *over = Some(why),
            Some(_) | None => {}
        }
        drop(pending);
        self.wake();
    }

    fn wake(&self) {
        // A full socket buffer means that a wake-up is already pending.
        let _ = (&self.wake_sender).write(&[0]);
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut pending = lock(&self.pending);
        pending.closed = true;
        pending.queue.clear();
    }
}

impl Inbox {
    /// Waits for a notice or the next open question. Returns `None` when the sending end is closed.
    pub(super) fn next(&self) -> Option<NextItem> {
        loop {
            self.drain();
            let mut pending = lock(&self.pending);
            pending.on_screen = None;
            if pending.closed {
                return None;
            }
            if let Some(notice) = pending.notices.pop_front() {
                return Some(NextItem::Notice(notice));
            }
            while let Some((question, slot)) = pending.queue.pop_front() {
                if !slot.is_closed() {
                    pending.on_screen = Some((question.id.clone(), None));
                    return Some(NextItem::Question(Box::new(question), slot));
                }
            }
            drop(pending);
            // The loop checks the queue again, so the result of `poll` does not matter.
            let _ = poll(&mut [PollFd::new(&self.wake_receiver, PollFlags::IN)], None);
        }
    }

    /// Returns the queued questions that `is_selected` selects, and restarts their deadlines.
    pub(super) fn pending(&self, is_selected: impl Fn(&Question) -> bool) -> Vec<Question> {
        let pending = lock(&self.pending);
        let selected =
            pending.queue.iter().filter(|(question, slot)| !slot.is_closed() && is_selected(question));
        selected
            .map(|(question, slot)| {
                slot.report_activity();
                question.clone()
            })
            .collect()
    }

    /// Removes a queued question and returns its slot, or `None` if the question was already closed.
    pub(super) fn take_slot(&self, id: &str) -> Option<AnswerSlot> {
        let mut pending = lock(&self.pending);
        let at = pending.queue.iter().position(|(question, _)| question.id == id)?;
        pending.queue.remove(at).map(|(_, slot)| slot)
    }

    /// Returns `true` if the question on the screen was closed. Consumes the pending wake-ups.
    pub(super) fn is_closed(&self) -> bool {
        self.drain();
        let pending = lock(&self.pending);
        pending.closed || pending.on_screen.as_ref().is_some_and(|(_, over)| over.is_some())
    }

    /// Returns the reason the question on the screen was closed.
    pub(super) fn close_reason(&self) -> WithdrawalReason {
        let on_screen = lock(&self.pending).on_screen.clone();
        on_screen.and_then(|(_, over)| over).unwrap_or(WithdrawalReason::SessionEnded)
    }

    fn drain(&self) {
        let mut signals = [0; 256];
        while matches!((&self.wake_receiver).read(&mut signals), Ok(n) if n > 0) {}
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_receiver.as_fd()
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
