//! Queue of questions and notices for the terminal thread.
//!
//! - A closed question is removed immediately, even if it is still queued.

use super::super::{Question, Slot, Withdrawn};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sending end of the queue.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Arc<Mutex<Waiting>>,
    /// Socket that wakes the receiving end. The receiving end stops when the socket is closed.
    wakes: UnixStream,
}

/// Receiving end of the queue, used by the terminal thread.
#[derive(Debug)]
pub(super) struct Inbox {
    waiting: Arc<Mutex<Waiting>>,
    woken: UnixStream,
}

/// Next item for the terminal to show.
#[derive(Debug)]
pub(super) enum Next {
    /// A question and the slot for its answer.
    Question(Box<Question>, Slot),
    /// A message that requires no answer.
    Notice(String),
}

/// Maximum number of notices to keep while a question is on the screen.
const MAX_NOTICES: usize = 10;

#[derive(Debug, Default)]
struct Waiting {
    notices: VecDeque<String>,
    queue: VecDeque<(Question, Slot)>,
    /// Id of the question on the screen, and the reason it was closed, or `None` if it is open.
    drawn: Option<(String, Option<Withdrawn>)>,
    closed: bool,
}

/// Creates both ends of the queue.
pub(super) fn boxes() -> io::Result<(Outbox, Inbox)> {
    let (wakes, woken) = UnixStream::pair()?;
    wakes.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let waiting = Arc::default();
    Ok((Outbox { waiting: Arc::clone(&waiting), wakes }, Inbox { waiting, woken }))
}

impl Outbox {
    pub(super) fn push(&self, question: Question, slot: Slot) {
        lock(&self.waiting).queue.push_back((question, slot));
        self.wake();
    }

    /// Queues a message. It is shown when no question is on the screen.
    pub(super) fn notify(&self, notice: &str) {
        let mut waiting = lock(&self.waiting);
        if waiting.notices.len() == MAX_NOTICES {
            waiting.notices.pop_front();
        }
        waiting.notices.push_back(notice.to_owned());
        drop(waiting);
        self.wake();
    }

    pub(super) fn withdraw(&self, id: &str, why: Withdrawn) {
        let mut waiting = lock(&self.waiting);
        waiting.queue.retain(|(question, _)| question.id != id);
        match &mut waiting.drawn {
            Some((drawn, over)) if drawn == id => *over = Some(why),
            Some(_) | None => {}
        }
        drop(waiting);
        self.wake();
    }

    fn wake(&self) {
        // A full socket buffer means that a wake-up is already pending.
        let _ = (&self.wakes).write(&[0]);
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.queue.clear();
    }
}

impl Inbox {
    /// Waits for a notice or the next open question. Returns `None` when the sending end is closed.
    pub(super) fn next(&self) -> Option<Next> {
        loop {
            self.drain();
            let mut waiting = lock(&self.waiting);
            waiting.drawn = None;
            if waiting.closed {
                return None;
            }
            if let Some(notice) = waiting.notices.pop_front() {
                return Some(Next::Notice(notice));
            }
            while let Some((question, slot)) = waiting.queue.pop_front() {
                if !slot.is_over() {
                    waiting.drawn = Some((question.id.clone(), None));
                    return Some(Next::Question(Box::new(question), slot));
                }
            }
            drop(waiting);
            // The loop checks the queue again, so the result of `poll` does not matter.
            let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], None);
        }
    }

    /// Returns the queued questions that `is_meant` selects, and restarts their deadlines.
    pub(super) fn waiting(&self, is_meant: impl Fn(&Question) -> bool) -> Vec<Question> {
        let waiting = lock(&self.waiting);
        let meant = waiting.queue.iter().filter(|(question, slot)| !slot.is_over() && is_meant(question));
        meant
            .map(|(question, slot)| {
                slot.working();
                question.clone()
            })
            .collect()
    }

    /// Removes a queued question and returns its slot, or `None` if the question was already closed.
    pub(super) fn take(&self, id: &str) -> Option<Slot> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.queue.iter().position(|(question, _)| question.id == id)?;
        waiting.queue.remove(at).map(|(_, slot)| slot)
    }

    /// Returns `true` if the question on the screen was closed. Consumes the pending wake-ups.
    pub(super) fn is_over(&self) -> bool {
        self.drain();
        let waiting = lock(&self.waiting);
        waiting.closed || waiting.drawn.as_ref().is_some_and(|(_, over)| over.is_some())
    }

    /// Returns the reason the question on the screen was closed.
    pub(super) fn why_over(&self) -> Withdrawn {
        let drawn = lock(&self.waiting).drawn.clone();
        drawn.and_then(|(_, over)| over).unwrap_or(Withdrawn::SessionEnded)
    }

    fn drain(&self) {
        let mut signals = [0; 256];
        while matches!((&self.woken).read(&mut signals), Ok(n) if n > 0) {}
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
