//! Requests that wait for permission, without blocking a thread.
//!
//! - An interruption can arrive before its request starts to wait, so early interruptions are stored.
//! - INVARIANT: while a folder is reserved for a mount, no request whose locks would block the mount waits for an
//!   answer. Such a request is held for a short time instead. Most mounts finish within that time.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::gate::AskedAccess;

/// Interval for checking the threads of interrupted requests for pending signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of waiting requests. Additional requests are denied.
const MAX_COUNT: usize = 4096;

/// Maximum time for which a request is held while a folder is being mounted. A mount waits this long if it needs a lock
/// that the kernel holds for the request.
const MAX_DEFERRAL: Duration = Duration::from_millis(500);

/// Maximum number of stored early interruptions.
const MAX_EARLY: usize = 256;

/// Request that is waiting for permission.
#[derive(Debug)]
pub(crate) struct ParkedRequest {
    /// Bytes of the request, as read from the kernel.
    pub(crate) bytes: Vec<u8>,
    pub(crate) process: u32,
    /// Access that needs permission.
    pub(crate) asked: AskedAccess,
    /// Accesses that the user has approved for this request so far.
    pub(crate) approved: Vec<AskedAccess>,
    /// Folders that the kernel keeps locked until the request is answered.
    pub(crate) locks: Vec<PathBuf>,
}

/// Folder reserved for mounting.
#[derive(Debug)]
struct MountReservation {
    folder: PathBuf,
    number: u64,
    /// `false` while a waiting request would block the mount.
    is_active: bool,
}

/// Outcome of [`Pending::park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkOutcome {
    Parked,
    /// Too many requests are waiting.
    Full,
    /// A folder is being mounted, and the request is held in the meantime.
    Deferred,
}

/// Request that was held while a folder was mounted.
#[derive(Debug)]
pub(crate) struct DeferredRequest {
    pub(crate) unique: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) approved: Vec<AskedAccess>,
    /// `false` if the folder is not mounted yet.
    pub(crate) is_mounted: bool,
}

/// All waiting requests of a view.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    interrupted: Condvar,
    /// Notified when a request stops waiting, or a reservation is cancelled.
    unparked: Condvar,
    /// Notified when a request is held, or a reservation ends.
    deferred_changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    parked: HashMap<u64, ParkedRequest>,
    reservation: Option<MountReservation>,
    /// Number of the newest reservation.
    reservations: u64,
    interrupted: Vec<u64>,
    early_interrupts: VecDeque<u64>,
    /// Held requests, each with the time since which it has been held.
    deferred: VecDeque<(Instant, u64, ParkedRequest)>,
    is_closed: bool,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request wait, if possible.
    pub(crate) fn park(&self, unique: u64, parked: ParkedRequest) -> ParkOutcome {
        let mut state = self.lock();
        if state.parked.len() + state.deferred.len() >= MAX_COUNT {
            return ParkOutcome::Full;
        }
        if state
            .reservation
            .as_ref()
            .is_some_and(|reserved| reserved.is_active && parked.blocks(&reserved.folder))
        {
            state.deferred.push_back((Instant::now(), unique, parked));
            self.deferred_changed.notify_one();
            return ParkOutcome::Deferred;
        }
        state.parked.insert(unique, parked);
        if let Some(index) = state.early_interrupts.iter().position(|early| *early == unique) {
            state.early_interrupts.remove(index);
            state.interrupted.push(unique);
            self.interrupted.notify_one();
        }
        ParkOutcome::Parked
    }

    /// Takes a waiting request, or returns `None` if it is no longer waiting.
    pub(crate) fn take(&self, unique: u64) -> Option<ParkedRequest> {
        let mut state = self.lock();
        state.interrupted.retain(|interrupted| *interrupted != unique);
        let parked = state.parked.remove(&unique);
        self.unparked.notify_all();
        parked
    }

    /// Requests the reservation of a folder, replacing any earlier one, and returns the reservation's number.
    pub(crate) fn request_reservation(&self, folder: PathBuf) -> u64 {
        let mut state = self.lock();
        state.reservations += 1;
        let number = state.reservations;
        state.reservation = Some(MountReservation { folder, number, is_active: false });
        self.unparked.notify_all();
        self.deferred_changed.notify_one();
        number
    }

    /// Waits until no request blocks mounting the folder, then reserves it. Returns `false` if the reservation was
    /// replaced or [`released`](Self::release).
    pub(crate) fn wait_for_reservation(&self, number: u64) -> bool {
        let mut state = self.lock();
        loop {
            if let Some(is_active) = state.reserve(number) {
                return is_active;
            }
            state = self.unparked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until held requests can continue, and returns them. Returns `None` once the view has closed.
    pub(crate) fn next_resumable(&self) -> Option<Vec<DeferredRequest>> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let is_mounted = !state.reservation.as_ref().is_some_and(|reserved| reserved.is_active);
            let remaining = |(since, ..): &(Instant, _, _)| MAX_DEFERRAL.saturating_sub(since.elapsed());
            let first = state.deferred.front().map(remaining);
            let released: Vec<_> = match first {
                Some(_) if is_mounted => state.deferred.drain(..).collect(),
                Some(remaining) if remaining.is_zero() => state.deferred.pop_front().into_iter().collect(),
                Some(_) | None => Vec::new(),
            };
            if !released.is_empty() {
                let to_request = |(_, unique, parked): (_, _, ParkedRequest)| {
                    let ParkedRequest { bytes, approved, .. } = parked;
                    DeferredRequest { unique, bytes, approved, is_mounted }
                };
                return Some(released.into_iter().map(to_request).collect());
            }
            state = match first {
                Some(remaining) => {
                    self.deferred_changed
                        .wait_timeout(state, remaining)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.deferred_changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Cancels the reservation.
    pub(crate) fn release(&self) {
        self.lock().reservation = None;
        self.unparked.notify_all();
        self.deferred_changed.notify_one();
    }

    /// Records that a request's thread received a signal.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut state = self.lock();
        if !state.parked.contains_key(&unique) {
            state.early_interrupts.push_back(unique);
            if state.early_interrupts.len() > MAX_EARLY {
                state.early_interrupts.pop_front();
            }
            return;
        }
        if !state.interrupted.contains(&unique) {
            state.interrupted.push(unique);
            self.interrupted.notify_one();
        }
    }

    /// Removes an early interruption of this request. Returns `true` if there was one.
    pub(crate) fn take_early_interrupt(&self, unique: u64) -> bool {
        let mut state = self.lock();
        let index = state.early_interrupts.iter().position(|early| *early == unique);
        index.and_then(|index| state.early_interrupts.remove(index)).is_some()
    }

    /// Blocks until a request is interrupted. Returns the requests whose thread is about to exit according to
    /// `is_terminating`, or `None` after the view has closed.
    pub(crate) fn next_terminated(&self, is_terminating: impl Fn(u32) -> bool) -> Option<Vec<u64>> {
        let mut state = self.lock();
        while state.interrupted.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.interrupted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let terminated: Vec<u64> = state
            .interrupted
            .iter()
            .filter(|unique| state.parked.get(unique).is_none_or(|parked| is_terminating(parked.process)))
            .copied()
            .collect();
        if terminated.is_empty() {
            // The signal can become visible shortly after the interruption, or a later signal can terminate the
            // thread.
            drop(self.interrupted.wait_timeout(state, SIGNAL_CHECK_INTERVAL));
        }
        Some(terminated)
    }

    /// Makes [`next_terminated`](Self::next_terminated) return `None`.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.interrupted.notify_all();
        self.release();
    }
}

impl State {
    /// Makes a reservation. Returns `None` while a waiting request would block the mount, and `Some(false)` if the
    /// reservation was replaced or cancelled.
    fn reserve(&mut self, number: u64) -> Option<bool> {
        let Self { reservation, parked, .. } = self;
        let Some(reserved) = reservation.as_mut().filter(|reserved| reserved.number == number) else {
            return Some(false);
        };
        reserved.is_active = !parked.values().any(|parked| parked.blocks(&reserved.folder));
        reserved.is_active.then_some(true)
    }
}

impl ParkedRequest {
    /// Returns `true` if the kernel holds a lock for this request that it needs to find or mount the folder.
    fn blocks(&self, folder: &Path) -> bool {
        self.locks.iter().any(|locked| folder.starts_with(locked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{AccessKind, WantedAccess};

    fn parked(process: u32) -> ParkedRequest {
        let access = WantedAccess { path: "/a".into(), kind: AccessKind::Read };
        let asked = AskedAccess { access, file: None };
        ParkedRequest { bytes: vec![], process, asked, approved: vec![], locks: vec![] }
    }

    fn locking(folder: &str) -> ParkedRequest {
        ParkedRequest { locks: vec![folder.into()], ..parked(1) }
    }

    #[test]
    fn an_interruption_ends_the_wait_only_of_a_thread_that_ends() {
        let pending = Pending::default();
        assert_eq!([pending.park(2, parked(20)), pending.park(4, parked(40))], [ParkOutcome::Parked; 2]);
        pending.interrupt(2);
        pending.interrupt(4);
        assert_eq!(pending.next_terminated(|process| process == 40), Some(vec![4]));
        assert!(pending.take(4).is_some() && pending.take(4).is_none());
        assert_eq!(pending.next_terminated(|_| false), Some(vec![]));
        assert!(pending.take(2).is_some());
        pending.close();
        assert_eq!(pending.next_terminated(|_| true), None);
    }

    #[test]
    fn an_early_interruption_is_remembered() {
        let pending = Pending::default();
        pending.interrupt(6);
        assert_eq!(pending.park(6, parked(60)), ParkOutcome::Parked);
        assert_eq!(pending.next_terminated(|_| true), Some(vec![6]));
    }

    #[test]
    fn waiting_requests_are_bounded() {
        let pending = Pending::default();
        let park = |unique: usize| pending.park(unique.try_into().unwrap(), parked(1));
        assert!((0..MAX_COUNT).all(|unique| park(unique) == ParkOutcome::Parked));
        assert_eq!(park(MAX_COUNT), ParkOutcome::Full);
    }

    #[test]
    fn a_folder_is_reserved_when_nothing_holds_its_locks() {
        let pending = std::sync::Arc::new(Pending::default());
        let reserving = |folder: &str| {
            let (pending, number) = (pending.clone(), pending.request_reservation(folder.into()));
            std::thread::spawn(move || pending.wait_for_reservation(number))
        };
        pending.park(2, locking("/a"));
        pending.park(4, locking("/a/b/c"));
        pending.park(6, locking("/other"));
        let number = pending.request_reservation("/a/b".into());
        assert_eq!(pending.lock().reserve(number), None);
        let state = pending.clone();
        let reserved = std::thread::spawn(move || state.wait_for_reservation(number));
        pending.take(2);
        assert!(reserved.join().unwrap());
        // Requests that would block the mount are now held.
        for (unique, locked) in [(14, "/"), (16, "/a"), (18, "/a/b")] {
            assert_eq!(pending.park(unique, locking(locked)), ParkOutcome::Deferred, "{locked}");
        }
        assert_eq!(pending.park(8, locking("/a/b/c")), ParkOutcome::Parked);
        assert_eq!(pending.park(10, parked(1)), ParkOutcome::Parked);
        pending.release();
        let released =
            pending.next_resumable().unwrap().into_iter().map(|held| (held.unique, held.is_mounted));
        assert_eq!(released.collect::<Vec<_>>(), [14, 16, 18].map(|unique| (unique, true)));
        assert_eq!(pending.park(12, locking("/a")), ParkOutcome::Parked);
        let (first, second) = (reserving("/a/b"), reserving("/a/c"));
        assert!(!first.join().unwrap());
        pending.release();
        assert!(!second.join().unwrap());
        pending.close();
        assert!(pending.next_resumable().is_none());
    }

    #[test]
    fn a_request_is_not_held_for_long() {
        let pending = Pending::default();
        let number = pending.request_reservation("/a".into());
        assert!(pending.wait_for_reservation(number));
        assert_eq!(pending.park(2, locking("/")), ParkOutcome::Deferred);
        let began = Instant::now();
        let released = pending.next_resumable().unwrap();
        assert!(began.elapsed() >= MAX_DEFERRAL - Duration::from_millis(100));
        assert_eq!((released.len(), released[0].unique, released[0].is_mounted), (1, 2, false));
    }
}
