//! The memory that messages on their way may have: a part for each session and direction, and one pool for all of them.
//!
//! - Whoever reads takes a share before the bytes are there, and reads no more while there is none: a sender waits in its pipe.
//! - Short lines have a part of each session's own, so that what others hold never stops them.
//! - A line that needs the pool and gets no share of it within a bound is passed over and refused, so that no two wait for each
//!   other for ever.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest line that needs nothing of the pool: 64 KiB.
const SHORT: usize = 64 * 1024;

/// The memory for short lines of one session in one direction, in KiB.
const FOR_SHORT_KIB: usize = 256;

/// The time for which a long line waits for its share.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pool of all sessions.
#[derive(Debug, Clone)]
pub struct Memory {
    pool: Arc<Semaphore>,
    pool_kib: u32,
    session_kib: u32,
}

/// The memory of one session in one direction.
#[derive(Debug, Clone)]
pub struct Allowance {
    memory: Memory,
    short: Arc<Semaphore>,
    own: Arc<Semaphore>,
    /// The number of copies that are made of a line on its way, itself among them.
    copies: u32,
}

/// A share of it, given back on drop.
#[derive(Debug)]
pub struct Share {
    /// Kept for its drop.
    _short: Option<OwnedSemaphorePermit>,
    long: Option<[OwnedSemaphorePermit; 2]>,
    kib: u32,
}

/// No share in time: others hold the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl Memory {
    /// So much for all sessions together, and for each of them in each direction.
    #[must_use]
    pub fn new(all_mib: u32, session_mib: u32) -> Self {
        let (pool_kib, session_kib) = (all_mib.saturating_mul(1024), session_mib.saturating_mul(1024));
        Self { pool: Arc::new(Semaphore::new(pool_kib as usize)), pool_kib, session_kib }
    }

    /// The part of a new session in one direction.
    #[must_use]
    pub fn allowance(&self, copies: u32) -> Allowance {
        Allowance {
            memory: self.clone(),
            short: Arc::new(Semaphore::new(FOR_SHORT_KIB)),
            own: Arc::new(Semaphore::new(self.session_kib as usize)),
            copies,
        }
    }
}

impl Allowance {
    /// The longest line that there can be a share for.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.memory.session_kib as usize * 1024
    }

    /// Waits for a share of so many bytes.
    ///
    /// # Errors
    /// [`NoRoom`], for a long line.
    pub async fn take(&self, bytes: usize) -> Result<Share, NoRoom> {
        if bytes <= SHORT
            && let Ok(short) = self.short.clone().try_acquire_many_owned(kib(bytes))
        {
            return Ok(Share { _short: Some(short), long: None, kib: kib(bytes) });
        }
        let mut share = Share { _short: None, long: None, kib: 0 };
        while self.grow(&mut share, bytes).await.is_err() {
            if bytes > SHORT {
                return Err(NoRoom);
            }
        }
        Ok(share)
    }

    /// Makes a share larger.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub async fn grow(&self, share: &mut Share, bytes: usize) -> Result<(), NoRoom> {
        let wanted = kib(bytes).min(self.memory.session_kib);
        let had = if share.long.is_some() { share.kib } else { 0 };
        let more = wanted.saturating_sub(had);
        let of_pool = |kib: u32| kib.saturating_mul(self.copies).min(self.memory.pool_kib);
        let more_of_pool = of_pool(wanted).saturating_sub(of_pool(had));
        let acquire = async {
            // Neither semaphore is ever closed.
            let own = self.own.clone().acquire_many_owned(more).await.ok()?;
            let pool = self.memory.pool.clone().acquire_many_owned(more_of_pool).await.ok()?;
            Some([own, pool])
        };
        let Ok(Some([own, pool])) = tokio::time::timeout(PATIENCE, acquire).await else { return Err(NoRoom) };
        match &mut share.long {
            Some([had_own, had_pool]) => {
                had_own.merge(own);
                had_pool.merge(pool);
            }
            None => share.long = Some([own, pool]),
        }
        share._short = None;
        share.kib = wanted;
        Ok(())
    }
}

impl Share {
    /// The number of bytes that it is for.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kib as usize * 1024
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn a_session_that_holds_all_it_may_stops_itself_and_no_other() {
        let memory = Memory::new(6, 4);
        let (one, two) = (memory.allowance(1), memory.allowance(1));
        let held = one.take(3 * MIB).await.unwrap();
        assert_eq!(one.take(2 * MIB).await.unwrap_err(), NoRoom);
        drop(two.take(2 * MIB).await.unwrap());
        drop(held);
        drop(one.take(2 * MIB).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn short_lines_pass_while_others_hold_the_whole_pool() {
        let memory = Memory::new(2, 2);
        let (deaf, other) = (memory.allowance(1), memory.allowance(1));
        let _held = deaf.take(2 * MIB - 1024).await.unwrap();
        assert_eq!(other.take(MIB).await.unwrap_err(), NoRoom);
        for _ in 0..100 {
            drop(other.take(1000).await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_that_grow_beyond_the_pool_do_not_wait_for_each_other_for_ever() {
        let memory = Memory::new(4, 4);
        let allowances = [memory.allowance(1), memory.allowance(1)];
        let grow = async |allowance: &Allowance| {
            let mut share = allowance.take(2 * MIB - 2048).await?;
            tokio::task::yield_now().await;
            allowance.grow(&mut share, 3 * MIB).await
        };
        let (one, two) = tokio::join!(grow(&allowances[0]), grow(&allowances[1]));
        assert!(one.is_ok() != two.is_ok() || one.is_err(), "{one:?} {two:?}");
        drop(allowances[0].take(3 * MIB).await.unwrap());
    }

    #[tokio::test]
    async fn a_line_with_its_copies_never_needs_more_than_there_is() {
        let memory = Memory::new(8, 4);
        drop(memory.allowance(6).take(4 * MIB - 1).await.unwrap());
        assert_eq!(memory.allowance(6).longest(), 4 * MIB);
    }
}
