//! Memory budget for messages in transit: an allowance per session and direction, and one pool shared by all.
//!
//! - A reader acquires a share before it reads. Without a share it stops reading, which blocks the sender on its pipe.
//! - Each session has its own reserve for short lines so that other sessions cannot block them.
//! - INVARIANT: a long line takes a single share from the pool for long lines, and no further share after that, so
//!   that two lines cannot deadlock. If no share becomes available in time, the line is skipped and refused, because
//!   a slow reader may hold the memory indefinitely.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum length of a short line: 64 KiB. Short lines use the session's own reserve first.
const MAX_SHORT_LEN: usize = 64 * 1024;

/// Maximum length of a medium line: 1 MiB. Longer lines share the larger part of the pool.
pub const MAX_MEDIUM_LEN: usize = 1024 * 1024;

/// Reserve for short lines, per session and direction, in KiB.
const SHORT_RESERVE_KIB: usize = 256;

/// Maximum time for which a medium or long line waits for its share.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);

/// Memory pool shared by all sessions.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
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
    budget: MemoryBudget,
    short: Arc<Semaphore>,
    session: Arc<Semaphore>,
    /// Number of copies of each line in transit, including the original.
    copies: u32,
}

/// Part of an allowance. Dropping it returns the memory.
#[derive(Debug)]
pub struct Share {
    permits: Permits,
    /// Number of bytes that the share covers.
    bytes: usize,
}

#[derive(Debug)]
enum Permits {
    Short {
        /// Permit from the session's reserve, released on drop.
        _session: OwnedSemaphorePermit,
    },
    Medium {
        session: OwnedSemaphorePermit,
        /// Permit from the shared pool, released on drop.
        _pool: OwnedSemaphorePermit,
    },
    Long {
        session: OwnedSemaphorePermit,
        pool: OwnedSemaphorePermit,
    },
}

/// Error returned when no share becomes available in time, because other lines hold the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExhausted;

impl MemoryBudget {
    /// Creates a pool of `total_mib` MiB. Each session may hold `session_mib` MiB in each direction.
    #[must_use]
    pub fn new(total_mib: u32, session_mib: u32) -> Self {
        let quarter = total_mib.saturating_mul(1024) / 4;
        let pool = |kib: u32| Pool { free: Arc::new(Semaphore::new(kib as usize)), kib };
        let session_kib = session_mib.saturating_mul(1024);
        Self { medium: pool(quarter), long: pool(quarter * 3), session_kib }
    }

    /// Returns the number of pool bytes in use, and the size of the pool.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        let pools = [&self.medium, &self.long];
        let total: u64 = pools.iter().map(|pool| u64::from(pool.kib)).sum();
        let free: u64 = pools.iter().map(|pool| pool.free.available_permits() as u64).sum();
        (total.saturating_sub(free) * 1024, total * 1024)
    }

    /// Creates the allowance of a new session in one direction. `copies` is the number of copies of each line in
    /// transit, including the original.
    #[must_use]
    pub fn allowance(&self, copies: u32) -> Allowance {
        Allowance {
            budget: self.clone(),
            short: Arc::new(Semaphore::new(SHORT_RESERVE_KIB)),
            session: Arc::new(Semaphore::new(self.session_kib as usize)),
            copies,
        }
    }
}

impl Allowance {
    /// Creates another allowance from the same pool, for lines with this number of copies.
    #[must_use]
    pub fn with_copies(&self, copies: u32) -> Self {
        self.budget.allowance(copies)
    }

    /// Returns the maximum length of a line that can get a share.
    #[must_use]
    pub fn max_line_len(&self) -> usize {
        self.budget.session_kib as usize * 1024
    }

    /// Waits for a share of `bytes` bytes.
    ///
    /// # Errors
    /// Returns [`BudgetExhausted`] if a medium or long line gets no share in time.
    pub async fn acquire(&self, bytes: usize) -> Result<Share, BudgetExhausted> {
        if bytes <= MAX_SHORT_LEN
            && let Ok(session) = self.short.clone().try_acquire_many_owned(kib(bytes))
        {
            return Ok(Share { permits: Permits::Short { _session: session }, bytes });
        }
        loop {
            match self.acquire_from_pool(None, bytes).await {
                // A short line waits as long as necessary.
                None if bytes <= MAX_SHORT_LEN => {}
                permits => return permits.map(|permits| Share { permits, bytes }).ok_or(BudgetExhausted),
            }
        }
    }

    /// Returns a share of `bytes` bytes if one is immediately available. Always returns `None` for a long line.
    #[must_use]
    pub fn try_acquire(&self, bytes: usize) -> Option<Share> {
        if bytes <= MAX_SHORT_LEN
            && let Ok(session) = self.short.clone().try_acquire_many_owned(kib(bytes))
        {
            return Some(Share { permits: Permits::Short { _session: session }, bytes });
        }
        let session =
            self.session.clone().try_acquire_many_owned(kib(bytes).min(self.budget.session_kib)).ok()?;
        let wanted = kib(MAX_MEDIUM_LEN).saturating_mul(self.copies).min(self.budget.medium.kib);
        let pool = self.budget.medium.free.clone().try_acquire_many_owned(wanted).ok()?;
        (bytes <= MAX_MEDIUM_LEN)
            .then_some(Share { permits: Permits::Medium { session, _pool: pool }, bytes })
    }

    /// Grows a share to `bytes` bytes. On failure, the old share is also released.
    ///
    /// # Errors
    /// Returns [`BudgetExhausted`] if no larger share becomes available in time.
    pub async fn grow(&self, share: Share, bytes: usize) -> Result<Share, BudgetExhausted> {
        let permits = self.acquire_from_pool(Some(share.permits), bytes).await.ok_or(BudgetExhausted)?;
        Ok(Share { permits, bytes })
    }

    async fn acquire_from_pool(&self, current: Option<Permits>, bytes: usize) -> Option<Permits> {
        let wanted = kib(bytes).min(self.budget.session_kib);
        let acquire = async {
            // Never fails, because the semaphores are never closed.
            let more =
                |held: usize| self.session.clone().acquire_many_owned(wanted.saturating_sub(held as u32));
            Some(match current {
                Some(Permits::Long { mut session, pool }) => {
                    session.merge(more(session.num_permits()).await.ok()?);
                    Permits::Long { session, pool }
                }
                Some(Permits::Medium { mut session, _pool }) if bytes <= MAX_MEDIUM_LEN => {
                    session.merge(more(session.num_permits()).await.ok()?);
                    Permits::Medium { session, _pool }
                }
                None | Some(Permits::Short { .. }) if bytes <= MAX_MEDIUM_LEN => {
                    let session = more(0).await.ok()?;
                    Permits::Medium {
                        session,
                        _pool: self.acquire_from(&self.budget.medium, MAX_MEDIUM_LEN).await?,
                    }
                }
                Some(Permits::Medium { mut session, _pool }) => {
                    session.merge(more(session.num_permits()).await.ok()?);
                    Permits::Long {
                        session,
                        pool: self.acquire_from(&self.budget.long, self.max_line_len()).await?,
                    }
                }
                None | Some(Permits::Short { .. }) => {
                    let session = more(0).await.ok()?;
                    Permits::Long {
                        session,
                        pool: self.acquire_from(&self.budget.long, self.max_line_len()).await?,
                    }
                }
            })
        };
        tokio::time::timeout(ACQUIRE_TIMEOUT, acquire).await.ok()?
    }

    /// Acquires a permit for a line of this length and its copies from one part of the pool.
    async fn acquire_from(&self, pool: &Pool, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = kib(bytes).saturating_mul(self.copies).min(pool.kib);
        pool.free.clone().acquire_many_owned(wanted).await.ok()
    }

    /// Shrinks the share of a complete line to `bytes` bytes.
    pub fn shrink(&self, share: &mut Share, bytes: usize) {
        share.bytes = bytes;
        if let Permits::Long { session, pool } = &mut share.permits {
            let needed = kib(bytes) as usize;
            drop(session.split(session.num_permits().saturating_sub(needed)));
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
        let budget = MemoryBudget::new(16, 4);
        let (one, two) = (budget.allowance(1), budget.allowance(1));
        let permits = one.acquire(3 * MIB).await.unwrap();
        assert_eq!(one.acquire(2 * MIB).await.unwrap_err(), BudgetExhausted);
        drop(two.acquire(2 * MIB).await.unwrap());
        drop(permits);
        drop(one.acquire(2 * MIB).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn short_lines_pass_while_the_pool_is_exhausted() {
        let budget = MemoryBudget::new(4, 3);
        let (deaf, other) = (budget.allowance(1), budget.allowance(1));
        let _held = deaf.acquire(3 * MIB - 1024).await.unwrap();
        assert_eq!(other.acquire(2 * MIB).await.unwrap_err(), BudgetExhausted);
        for _ in 0..100 {
            drop(other.acquire(1000).await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn growing_lines_all_make_progress() {
        let budget = MemoryBudget::new(8, 6);
        let lines: Vec<_> = (0..20)
            .map(|_| {
                let allowance = budget.allowance(1);
                tokio::spawn(async move {
                    let mut share = allowance.acquire(500).await?;
                    for bytes in [80_000, 400_000, MIB, 2 * MIB, 4 * MIB, 6 * MIB - 1] {
                        share = allowance.grow(share, bytes).await?;
                        tokio::task::yield_now().await;
                    }
                    allowance.shrink(&mut share, 5 * MIB);
                    Ok::<_, BudgetExhausted>(())
                })
            })
            .collect();
        for line in lines {
            line.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_complete_line_holds_only_the_memory_it_needs() {
        let budget = MemoryBudget::new(16, 8);
        let allowance = budget.allowance(1);
        let mut permits = allowance.acquire(7 * MIB).await.unwrap();
        assert_eq!(budget.long.free.available_permits(), 12 * 1024 - 8 * 1024 - 1);
        allowance.shrink(&mut permits, 2 * MIB);
        assert_eq!(budget.long.free.available_permits(), 12 * 1024 - 2 * 1024 - 1);
        assert_eq!((permits.bytes(), allowance.max_line_len()), (2 * MIB, 8 * MIB));
        assert_eq!(budget.used(), (2 * 1024 * 1024 + 1024, 16 * 1024 * 1024));
        drop(permits);
        assert_eq!(budget.used().0, 0);
        // With all of its copies, this line would exceed the pool.
        drop(budget.allowance(6).acquire(4 * MIB - 1).await.unwrap());
    }
}
