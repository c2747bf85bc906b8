//! Memory budget for messages in transit: an allowance per session and direction, and one pool shared by all.
//!
//! - A reader acquires a share before it reads. Without a share it stops reading, which blocks the sender on its pipe.
//! - Each session has its own reserve for short lines, so that other sessions cannot block them.
//! - INVARIANT: a long line takes a single share from the pool for long lines, and no further share after that, so
//!   that two lines cannot deadlock. If no share becomes available in time, the line is skipped and refused, because
//!   a slow reader may hold the memory indefinitely.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum length of a short line: 64 KiB. Short lines use the session's own reserve first.
const SHORT: usize = 64 * 1024;

/// Maximum length of a medium line: 1 MiB. Longer lines share the larger part of the pool.
pub const MEDIUM: usize = 1024 * 1024;

/// Reserve for short lines, per session and direction, in KiB.
const FOR_SHORT_KIB: usize = 256;

/// Maximum time for which a medium or long line waits for its share.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Memory pool shared by all sessions.
#[derive(Debug, Clone)]
pub struct Memory {
    medium: Pool,
    long: Pool,
    session_kib: u32,
}

/// Part of the pool, for medium or for long lines.
#[derive(Debug, Clone)]
struct Pool {
    free: Arc<Semaphore>,
    kib: u32,
}

/// Memory allowance of one session in one direction.
#[derive(Debug, Clone)]
pub struct Allowance {
    memory: Memory,
    short: Arc<Semaphore>,
    own: Arc<Semaphore>,
    /// Number of copies of each line in transit, including the original.
    copies: u32,
}

/// Part of an allowance. Dropping it returns the memory.
#[derive(Debug)]
pub struct Share {
    held: Held,
    /// Number of bytes that the share covers.
    bytes: usize,
}

#[derive(Debug)]
enum Held {
    Short {
        /// Permit from the session's reserve, released on drop.
        _own: OwnedSemaphorePermit,
    },
    Medium {
        own: OwnedSemaphorePermit,
        /// Permit from the shared pool, released on drop.
        _pool: OwnedSemaphorePermit,
    },
    Long {
        own: OwnedSemaphorePermit,
        pool: OwnedSemaphorePermit,
    },
}

/// Error returned when no share becomes available in time, because other lines hold the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl Memory {
    /// Creates a pool of `all_mib` MiB. Each session may hold `session_mib` MiB in each direction.
    #[must_use]
    pub fn new(all_mib: u32, session_mib: u32) -> Self {
        let quarter = all_mib.saturating_mul(1024) / 4;
        let pool = |kib: u32| Pool { free: Arc::new(Semaphore::new(kib as usize)), kib };
        let session_kib = session_mib.saturating_mul(1024);
        Self { medium: pool(quarter), long: pool(quarter * 3), session_kib }
    }

    /// Returns the number of pool bytes in use, and the size of the pool.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        let pools = [&self.medium, &self.long];
        let all: u64 = pools.iter().map(|pool| u64::from(pool.kib)).sum();
        let free: u64 = pools.iter().map(|pool| pool.free.available_permits() as u64).sum();
        (all.saturating_sub(free) * 1024, all * 1024)
    }

    /// Creates the allowance of a new session in one direction. `copies` is the number of copies of each line in
    /// transit, including the original.
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
    /// Creates another allowance from the same pool, for lines with this number of copies.
    #[must_use]
    pub fn another(&self, copies: u32) -> Self {
        self.memory.allowance(copies)
    }

    /// Returns the maximum length of a line that can get a share.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.memory.session_kib as usize * 1024
    }

    /// Waits for a share of `bytes` bytes.
    ///
    /// # Errors
    /// Returns [`NoRoom`] if a medium or long line gets no share in time.
    pub async fn take(&self, bytes: usize) -> Result<Share, NoRoom> {
        if bytes <= SHORT
            && let Ok(own) = self.short.clone().try_acquire_many_owned(kib(bytes))
        {
            return Ok(Share { held: Held::Short { _own: own }, bytes });
        }
        loop {
            match self.long_or_medium(None, bytes).await {
                // A short line waits as long as necessary.
                None if bytes <= SHORT => {}
                held => return held.map(|held| Share { held, bytes }).ok_or(NoRoom),
            }
        }
    }

    /// Returns a share of `bytes` bytes if one is immediately available. Always returns `None` for a long line.
    #[must_use]
    pub fn take_now(&self, bytes: usize) -> Option<Share> {
        if bytes <= SHORT
            && let Ok(own) = self.short.clone().try_acquire_many_owned(kib(bytes))
        {
            return Some(Share { held: Held::Short { _own: own }, bytes });
        }
        let own = self.own.clone().try_acquire_many_owned(kib(bytes).min(self.memory.session_kib)).ok()?;
        let wanted = kib(MEDIUM).saturating_mul(self.copies).min(self.memory.medium.kib);
        let pool = self.memory.medium.free.clone().try_acquire_many_owned(wanted).ok()?;
        (bytes <= MEDIUM).then_some(Share { held: Held::Medium { own, _pool: pool }, bytes })
    }

    /// Grows a share to `bytes` bytes. On failure, the old share is also released.
    ///
    /// # Errors
    /// Returns [`NoRoom`] if no larger share becomes available in time.
    pub async fn grow(&self, share: Share, bytes: usize) -> Result<Share, NoRoom> {
        let held = self.long_or_medium(Some(share.held), bytes).await.ok_or(NoRoom)?;
        Ok(Share { held, bytes })
    }

    async fn long_or_medium(&self, had: Option<Held>, bytes: usize) -> Option<Held> {
        let wanted = kib(bytes).min(self.memory.session_kib);
        let acquire = async {
            // Never fails, because the semaphores are never closed.
            let more = |had: usize| self.own.clone().acquire_many_owned(wanted.saturating_sub(had as u32));
            Some(match had {
                Some(Held::Long { mut own, pool }) => {
                    own.merge(more(own.num_permits()).await.ok()?);
                    Held::Long { own, pool }
                }
                Some(Held::Medium { mut own, _pool }) if bytes <= MEDIUM => {
                    own.merge(more(own.num_permits()).await.ok()?);
                    Held::Medium { own, _pool }
                }
                None | Some(Held::Short { .. }) if bytes <= MEDIUM => {
                    let own = more(0).await.ok()?;
                    Held::Medium { own, _pool: self.of(&self.memory.medium, MEDIUM).await? }
                }
                Some(Held::Medium { mut own, _pool }) => {
                    own.merge(more(own.num_permits()).await.ok()?);
                    Held::Long { own, pool: self.of(&self.memory.long, self.longest()).await? }
                }
                None | Some(Held::Short { .. }) => {
                    let own = more(0).await.ok()?;
                    Held::Long { own, pool: self.of(&self.memory.long, self.longest()).await? }
                }
            })
        };
        tokio::time::timeout(TIMEOUT, acquire).await.ok()?
    }

    /// Acquires a permit for a line of this length and its copies from one part of the pool.
    async fn of(&self, pool: &Pool, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = kib(bytes).saturating_mul(self.copies).min(pool.kib);
        pool.free.clone().acquire_many_owned(wanted).await.ok()
    }

    /// Shrinks the share of a complete line to `bytes` bytes.
    pub fn settle(&self, share: &mut Share, bytes: usize) {
        share.bytes = bytes;
        if let Held::Long { own, pool } = &mut share.held {
            let needed = kib(bytes) as usize;
            drop(own.split(own.num_permits().saturating_sub(needed)));
            drop(pool.split(pool.num_permits().saturating_sub(needed * self.copies as usize)));
        }
    }
}

impl Share {
    /// Returns the number of bytes that the share covers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
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
    async fn a_session_at_its_limit_blocks_only_itself() {
        let memory = Memory::new(16, 4);
        let (one, two) = (memory.allowance(1), memory.allowance(1));
        let held = one.take(3 * MIB).await.unwrap();
        assert_eq!(one.take(2 * MIB).await.unwrap_err(), NoRoom);
        drop(two.take(2 * MIB).await.unwrap());
        drop(held);
        drop(one.take(2 * MIB).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn short_lines_pass_while_the_pool_is_exhausted() {
        let memory = Memory::new(4, 3);
        let (deaf, other) = (memory.allowance(1), memory.allowance(1));
        let _held = deaf.take(3 * MIB - 1024).await.unwrap();
        assert_eq!(other.take(2 * MIB).await.unwrap_err(), NoRoom);
        for _ in 0..100 {
            drop(other.take(1000).await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn growing_lines_all_make_progress() {
        let memory = Memory::new(8, 6);
        let lines: Vec<_> = (0..20)
            .map(|_| {
                let allowance = memory.allowance(1);
                tokio::spawn(async move {
                    let mut share = allowance.take(500).await?;
                    for bytes in [80_000, 400_000, MIB, 2 * MIB, 4 * MIB, 6 * MIB - 1] {
                        share = allowance.grow(share, bytes).await?;
                        tokio::task::yield_now().await;
                    }
                    allowance.settle(&mut share, 5 * MIB);
                    Ok::<_, NoRoom>(())
                })
            })
            .collect();
        for line in lines {
            line.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_complete_line_holds_only_the_memory_it_needs() {
        let memory = Memory::new(16, 8);
        let allowance = memory.allowance(1);
        let mut held = allowance.take(7 * MIB).await.unwrap();
        assert_eq!(memory.long.free.available_permits(), 12 * 1024 - 8 * 1024 - 1);
        allowance.settle(&mut held, 2 * MIB);
        assert_eq!(memory.long.free.available_permits(), 12 * 1024 - 2 * 1024 - 1);
        assert_eq!((held.bytes(), allowance.longest()), (2 * MIB, 8 * MIB));
        assert_eq!(memory.used(), (2 * 1024 * 1024 + 1024, 16 * 1024 * 1024));
        drop(held);
        assert_eq!(memory.used().0, 0);
        // With all of its copies, this line would exceed the pool.
        drop(memory.allowance(6).take(4 * MIB - 1).await.unwrap());
    }
}
