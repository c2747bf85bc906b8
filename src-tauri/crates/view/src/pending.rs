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
const CHECK: Duration = Duration::from_millis(50);

/// Maximum number of waiting requests. Additional requests are denied.
const MAX_COUNT: usize = 4096;

/// Maximum time for which a request is held while a folder is being mounted. A mount waits this long if it needs a lock
/// that the kernel holds for the request.
const MAX_HOLD: Duration = Duration::from_millis(500);

/// Maximum number of stored early interruptions.
const MAX_EARLY: usize = 256;

/// Request that is waiting for permission.
#[derive(Debug)]
pub(crate) struct Parked {
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
struct Reserved {
    folder: PathBuf,
    number: u64,
    /// `false` while a waiting request would block the mount.
    is_made: bool,
}

/// Outcome of [`Pending::park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parking {
    Parked,
    /// Too many requests are waiting.
    Full,
    /// A folder is being mounted, and the request is held in the meantime.
    Held,
}

/// Request that was held while a folder was mounted.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) unique: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) approved: Vec<AskedAccess>,
    /// `false` if the folder is not mounted yet.
    pub(crate) is_mounted: bool,
}

/// All waiting requests of a view.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<Waiting>,
    interrupted: Condvar,
    /// Notified when a request stops waiting, or a reservation is cancelled.
    left: Condvar,
    /// Notified when a request is held, or a reservation ends.
    held: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    parked: HashMap<u64, Parked>,
    reservation: Option<Reserved>,
    /// Number of the newest reservation.
    reservations: u64,
    interrupted: Vec<u64>,
    early: VecDeque<u64>,
    /// Held requests, each with the time since which it has been held.
    held: VecDeque<(Instant, u64, Parked)>,
    has_ended: bool,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request wait, if possible.
    pub(crate) fn park(&self, unique: u64, parked: Parked) -> Parking {
        let mut waiting = self.lock();
        if waiting.parked.len() + waiting.held.len() >= MAX_COUNT {
            return Parking::Full;
        }
        if waiting.reservation.as_ref().is_some_and(|wanted| wanted.is_made && parked.blocks(&wanted.folder))
        {
            waiting.held.push_back((Instant::now(), unique, parked));
            self.held.notify_one();
            return Parking::Held;
        }
        waiting.parked.insert(unique, parked);
        if let Some(at) = waiting.early.iter().position(|early| *early == unique) {
            waiting.early.remove(at);
            waiting.interrupted.push(unique);
            self.interrupted.notify_one();
        }
        Parking::Parked
    }

    /// Takes a waiting request, or returns `None` if it is no longer waiting.
    pub(crate) fn take(&self, unique: u64) -> Option<Parked> {
        let mut waiting = self.lock();
        waiting.interrupted.retain(|interrupted| *interrupted != unique);
        let parked = waiting.parked.remove(&unique);
        self.left.notify_all();
        parked
    }

    /// Requests the reservation of a folder, replacing any earlier one, and returns the reservation's number.
    pub(crate) fn begin_reservation(&self, folder: PathBuf) -> u64 {
        let mut waiting = self.lock();
        waiting.reservations += 1;
        let number = waiting.reservations;
        waiting.reservation = Some(Reserved { folder, number, is_made: false });
        self.left.notify_all();
        self.held.notify_one();
        number
    }

    /// Waits until no request blocks mounting the folder, then reserves it. Returns `false` if the reservation was
    /// replaced or [`released`](Self::release).
    pub(crate) fn make_reservation(&self, number: u64) -> bool {
        let mut waiting = self.lock();
        loop {
            if let Some(is_made) = waiting.reserve(number) {
                return is_made;
            }
            waiting = self.left.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until held requests can continue, and returns them. Returns `None` once the view has closed.
    pub(crate) fn released(&self) -> Option<Vec<Held>> {
        let mut waiting = self.lock();
        loop {
            if waiting.has_ended {
                return None;
            }
            let is_mounted = !waiting.reservation.as_ref().is_some_and(|wanted| wanted.is_made);
            let left = |(since, ..): &(Instant, _, _)| MAX_HOLD.saturating_sub(since.elapsed());
            let first = waiting.held.front().map(left);
            let released: Vec<_> = match first {
                Some(_) if is_mounted => waiting.held.drain(..).collect(),
                Some(left) if left.is_zero() => waiting.held.pop_front().into_iter().collect(),
                Some(_) | None => Vec::new(),
            };
            if !released.is_empty() {
                let held = |(_, unique, parked): (_, _, Parked)| {
                    let Parked { bytes, approved, .. } = parked;
                    Held { unique, bytes, approved, is_mounted }
                };
                return Some(released.into_iter().map(held).collect());
            }
            waiting = match first {
                Some(left) => self.held.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.held.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Cancels the reservation.
    pub(crate) fn release(&self) {
        self.lock().reservation = None;
        self.left.notify_all();
        self.held.notify_one();
    }

    /// Records that a request's thread received a signal.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut waiting = self.lock();
        if !waiting.parked.contains_key(&unique) {
            waiting.early.push_back(unique);
            if waiting.early.len() > MAX_EARLY {
                waiting.early.pop_front();
            }
            return;
        }
        if !waiting.interrupted.contains(&unique) {
            waiting.interrupted.push(unique);
            self.interrupted.notify_one();
        }
    }

    /// Removes an early interruption of this request. Returns `true` if there was one.
    pub(crate) fn take_early(&self, unique: u64) -> bool {
        let mut waiting = self.lock();
        let at = waiting.early.iter().position(|early| *early == unique);
        at.and_then(|at| waiting.early.remove(at)).is_some()
    }

    /// Blocks until a request is interrupted. Returns the requests whose thread is about to exit according to
    /// `is_ending`, or `None` after the view has closed.
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
            // The signal can become visible shortly after the interruption, or a later signal can terminate the
            // thread.
            drop(self.interrupted.wait_timeout(waiting, CHECK));
        }
        Some(ended)
    }

    /// Makes [`ended`](Self::ended) return `None`.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.interrupted.notify_all();
        self.release();
    }
}

impl Waiting {
    /// Makes a reservation. Returns `None` while a waiting request would block the mount, and `Some(false)` if the
    /// reservation was replaced or cancelled.
    fn reserve(&mut self, number: u64) -> Option<bool> {
        let Self { reservation, parked, .. } = self;
        let Some(wanted) = reservation.as_mut().filter(|wanted| wanted.number == number) else {
            return Some(false);
        };
        wanted.is_made = !parked.values().any(|parked| parked.blocks(&wanted.folder));
        wanted.is_made.then_some(true)
    }
}

impl Parked {
    /// Returns `true` if the kernel holds a lock for this request that it needs to find or mount the folder.
    fn blocks(&self, folder: &Path) -> bool {
        self.locks.iter().any(|locked| folder.starts_with(locked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{AccessKind, WantedAccess};

    fn parked(process: u32) -> Parked {
        let access = WantedAccess { path: "/a".into(), kind: AccessKind::Read };
        let asked = AskedAccess { access, file: None };
        Parked { bytes: vec![], process, asked, approved: vec![], locks: vec![] }
    }

    fn locking(folder: &str) -> Parked {
        Parked { locks: vec![folder.into()], ..parked(1) }
    }

    #[test]
    fn an_interruption_ends_the_wait_only_of_a_thread_that_ends() {
        let pending = Pending::default();
        assert_eq!([pending.park(2, parked(20)), pending.park(4, parked(40))], [Parking::Parked; 2]);
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
        assert_eq!(pending.park(6, parked(60)), Parking::Parked);
        assert_eq!(pending.ended(|_| true), Some(vec![6]));
    }

    #[test]
    fn waiting_requests_are_bounded() {
        let pending = Pending::default();
        let park = |unique: usize| pending.park(unique.try_into().unwrap(), parked(1));
        assert!((0..MAX_COUNT).all(|unique| park(unique) == Parking::Parked));
        assert_eq!(park(MAX_COUNT), Parking::Full);
    }

    #[test]
    fn a_folder_is_reserved_when_nothing_holds_its_locks() {
        let pending = std::sync::Arc::new(Pending::default());
        let reserving = |folder: &str| {
            let (pending, number) = (pending.clone(), pending.begin_reservation(folder.into()));
            std::thread::spawn(move || pending.make_reservation(number))
        };
        pending.park(2, locking("/a"));
        pending.park(4, locking("/a/b/c"));
        pending.park(6, locking("/other"));
        let number = pending.begin_reservation("/a/b".into());
        assert_eq!(pending.lock().reserve(number), None);
        let waiting = pending.clone();
        let reserved = std::thread::spawn(move || waiting.make_reservation(number));
        pending.take(2);
        assert!(reserved.join().unwrap());
        // Requests that would block the mount are now held.
        for (unique, locked) in [(14, "/"), (16, "/a"), (18, "/a/b")] {
            assert_eq!(pending.park(unique, locking(locked)), Parking::Held, "{locked}");
        }
        assert_eq!(pending.park(8, locking("/a/b/c")), Parking::Parked);
        assert_eq!(pending.park(10, parked(1)), Parking::Parked);
        pending.release();
        let released = pending.released().unwrap().into_iter().map(|held| (held.unique, held.is_mounted));
        assert_eq!(released.collect::<Vec<_>>(), [14, 16, 18].map(|unique| (unique, true)));
        assert_eq!(pending.park(12, locking("/a")), Parking::Parked);
        let (first, second) = (reserving("/a/b"), reserving("/a/c"));
        assert!(!first.join().unwrap());
        pending.release();
        assert!(!second.join().unwrap());
        pending.end();
        assert!(pending.released().is_none());
    }

    #[test]
    fn a_request_is_not_held_for_long() {
        let pending = Pending::default();
        let number = pending.begin_reservation("/a".into());
        assert!(pending.make_reservation(number));
        assert_eq!(pending.park(2, locking("/")), Parking::Held);
        let began = Instant::now();
        let released = pending.released().unwrap();
        assert!(began.elapsed() >= MAX_HOLD - Duration::from_millis(100));
        assert_eq!((released.len(), released[0].unique, released[0].is_mounted), (1, 2, false));
    }
}
