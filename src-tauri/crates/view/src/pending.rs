//! Requests that are waiting for permission. They block no thread.
//!
//! - An interruption may arrive before its request starts to wait, so early interruptions are remembered.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::gate::AskedAccess;

/// Interval at which the threads of interrupted requests are checked for a pending signal.
const CHECK: Duration = Duration::from_millis(50);

/// Maximum number of waiting requests. Further requests are denied.
const MOST: usize = 4096;

/// Maximum number of remembered early interruptions.
const MOST_EARLY: usize = 256;

/// Request that is waiting for permission.
#[derive(Debug)]
pub(crate) struct Parked {
    /// Bytes of the request, as read from the kernel.
    pub(crate) bytes: Vec<u8>,
    pub(crate) process: u32,
    /// Access that needs permission.
    pub(crate) asked: AskedAccess,
    /// Accesses that the user has already approved for this request.
    pub(crate) approved: Vec<AskedAccess>,
}

/// All waiting requests of a view.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<Waiting>,
    interrupted: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    parked: HashMap<u64, Parked>,
    interrupted: Vec<u64>,
    early: VecDeque<u64>,
    has_ended: bool,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a waiting request. Returns `false` if there are too many.
    pub(crate) fn park(&self, unique: u64, parked: Parked) -> bool {
        let mut waiting = self.lock();
        if waiting.parked.len() >= MOST {
            return false;
        }
        waiting.parked.insert(unique, parked);
        if let Some(at) = waiting.early.iter().position(|early| *early == unique) {
            waiting.early.remove(at);
            waiting.interrupted.push(unique);
            self.interrupted.notify_one();
        }
        true
    }

    /// Removes and returns a waiting request. Returns `None` if it is no longer waiting.
    pub(crate) fn take(&self, unique: u64) -> Option<Parked> {
        let mut waiting = self.lock();
        waiting.interrupted.retain(|interrupted| *interrupted != unique);
        waiting.parked.remove(&unique)
    }

    /// Records that the thread of a request received a signal.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut waiting = self.lock();
        if !waiting.parked.contains_key(&unique) {
            waiting.early.push_back(unique);
            if waiting.early.len() > MOST_EARLY {
                waiting.early.pop_front();
            }
            return;
        }
        if !waiting.interrupted.contains(&unique) {
            waiting.interrupted.push(unique);
            self.interrupted.notify_one();
        }
    }

    /// Forgets an early interruption of this request. Returns `true` if there was one.
    pub(crate) fn take_early(&self, unique: u64) -> bool {
        let mut waiting = self.lock();
        let at = waiting.early.iter().position(|early| *early == unique);
        at.and_then(|at| waiting.early.remove(at)).is_some()
    }

    /// Waits for interrupted requests. Returns those whose thread is about to exit, according to `is_ending`. Returns
    /// `None` once the view has closed.
    pub(crate) fn ended(&self, is_ending: impl Fn(u32) -> bool) -> Option<Vec<u64>> {
        let mut waiting = self.lock();
        while waiting.interrupted.is_empty() {
            if waiting.has_ended {
                return None;
            }
            waiting = self.interrupted.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let ended: Vec<u64> = waiting
            .interrupted
            .iter()
            .filter(|unique| waiting.parked.get(unique).is_none_or(|parked| is_ending(parked.process)))
            .copied()
            .collect();
        if ended.is_empty() {
            // The signal may become visible slightly after the interruption, or a later signal may terminate the
            // thread.
            drop(self.interrupted.wait_timeout(waiting, CHECK));
        }
        Some(ended)
    }

    /// Makes [`ended`](Self::ended) return `None`.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.interrupted.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{AccessKind, WantedAccess};

    fn parked(process: u32) -> Parked {
        let access = WantedAccess { path: "/a".into(), kind: AccessKind::Read };
        Parked { bytes: vec![], process, asked: AskedAccess { access, file: None }, approved: vec![] }
    }

    #[test]
    fn an_interruption_ends_the_wait_only_of_a_thread_that_ends() {
        let pending = Pending::default();
        assert!(pending.park(2, parked(20)) && pending.park(4, parked(40)));
        pending.interrupt(2);
        pending.interrupt(4);
        assert_eq!(pending.ended(|process| process == 40), Some(vec![4]));
        assert!(pending.take(4).is_some() && pending.take(4).is_none());
        assert_eq!(pending.ended(|_| false), Some(vec![]));
        assert!(pending.take(2).is_some());
        pending.end();
        assert_eq!(pending.ended(|_| true), None);
    }

    #[test]
    fn an_early_interruption_is_remembered() {
        let pending = Pending::default();
        pending.interrupt(6);
        assert!(pending.park(6, parked(60)));
        assert_eq!(pending.ended(|_| true), Some(vec![6]));
    }

    #[test]
    fn waiting_requests_are_bounded() {
        let pending = Pending::default();
        assert!((0..MOST).all(|unique| pending.park(unique.try_into().unwrap(), parked(1))));
        assert!(!pending.park(u64::MAX, parked(1)));
    }
}
