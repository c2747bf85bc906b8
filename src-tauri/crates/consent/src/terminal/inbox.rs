//! The questions that wait for the terminal, and what becomes of them while they do.
//!
//! - One that is over is dropped at once, with all it holds, whether it was drawn or not.

use super::super::{Question, Slot, Withdrawn};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The end that puts questions in.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Arc<Mutex<Waiting>>,
    /// Wakes the other end; its end ends the other.
    wakes: UnixStream,
}

/// The end that takes them out, one at a time.
#[derive(Debug)]
pub(super) struct Inbox {
    waiting: Arc<Mutex<Waiting>>,
    woken: UnixStream,
}

/// The next thing for the terminal.
#[derive(Debug)]
pub(super) enum Next {
    /// A question that waits for its answer.
    Question(Box<Question>, Slot),
    /// Something that needs none.
    Notice(String),
}

/// The most notices that are kept while a question stands there.
const MOST_NOTICES: usize = 10;

#[derive(Debug, Default)]
struct Waiting {
    notices: VecDeque<String>,
    queue: VecDeque<(Question, Slot)>,
    /// The one that is drawn, and why it is over.
    drawn: Option<(String, Option<Withdrawn>)>,
    closed: bool,
}

/// Both ends.
pub(super) fn boxes() -> io::Result<(Outbox, Inbox)> {
    let (wakes, woken) = UnixStream::pair()?;
    wakes.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let waiting = Arc::default();
    Ok((Outbox { waiting: Arc::clone(&waiting), wakes }, Inbox { waiting, woken }))
}

impl Outbox {
    pub(super) fn put(&self, question: Question, slot: Slot) {
        lock(&self.waiting).queue.push_back((question, slot));
        self.wake();
    }

    /// Tells something when no question stands there.
    pub(super) fn tell(&self, notice: &str) {
        let mut waiting = lock(&self.waiting);
        if waiting.notices.len() == MOST_NOTICES {
            waiting.notices.pop_front();
        }
        waiting.notices.push_back(notice.to_owned());
        drop(waiting);
        self.wake();
    }

    pub(super) fn take_back(&self, id: &str, why: Withdrawn) {
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
        // Full means that it is awake.
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
    /// Waits for a notice, or the next question that is not over; none when nobody asks any more.
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
            // Whatever it says, it is looked again.
            let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], None);
        }
    }

    /// Those that wait behind the one that is drawn, as far as they are meant; whoever answers them together works on each.
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

    /// Takes one that waits, unless it is over.
    pub(super) fn take(&self, id: &str) -> Option<Slot> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.queue.iter().position(|(question, _)| question.id == id)?;
        waiting.queue.remove(at).map(|(_, slot)| slot)
    }

    /// True if the question that is drawn is over; what woke us for it is forgotten.
    pub(super) fn is_over(&self) -> bool {
        self.drain();
        let waiting = lock(&self.waiting);
        waiting.closed || waiting.drawn.as_ref().is_some_and(|(_, over)| over.is_some())
    }

    /// Why the question that is drawn is over.
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
