//! The clocks, which judging never sees.
//!
//! - The time that a permission lasts is counted by two clocks, and both must allow it: the wall clock, which people read
//!   and set, and the one that has run since the machine was started, asleep or not, which nobody sets.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use unsupported as system;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch, as the wall clock has it.
    pub wall_ms: u64,
    /// Milliseconds since the machine was started, asleep or not.
    pub boot_ms: u64,
}

/// Both clocks, and the start of the machine that the second one counts from.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Moment + Send + Sync>,
    boot: Arc<str>,
    /// The kernel's timers go by it.
    is_machines: bool,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).field("boot", &self.boot).finish()
    }
}

impl Clock {
    /// The clocks of this machine.
    ///
    /// # Errors
    /// When the kernel does not tell which start of the machine this is.
    pub fn of_machine() -> io::Result<Self> {
        let boot = system::boot_id()?;
        let now = || Moment { wall_ms: now_ms(), boot_ms: boot_ms() };
        Ok(Self { is_machines: true, ..Self::new(boot.trim(), now) })
    }

    /// Clocks that somebody else moves, and by which no alarm goes off.
    pub fn new(boot: &str, now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), boot: boot.into(), is_machines: false }
    }

    /// The moment that it is.
    #[must_use]
    pub fn now(&self) -> Moment {
        (self.now)()
    }

    /// The start of the machine, by a name that no other has.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }
}

/// Milliseconds since the machine was started, asleep or not.
#[must_use]
pub fn boot_ms() -> u64 {
    system::boot_ms()
}

/// A wait for a moment, by whichever clock reaches it first, that also ends when the wall clock is set.
#[derive(Debug)]
pub struct Alarm {
    goes_off: bool,
    timers: system::Timers,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// When the kernel has no timer to give.
    pub fn by(clock: &Clock) -> io::Result<Self> {
        Ok(Self { goes_off: clock.is_machines, timers: system::Timers::new()? })
    }

    /// Sets it. The wall clock is watched from here on.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn set(&self, at: Moment) -> io::Result<()> {
        self.timers.set(at)
    }

    /// Completes when the moment has come, or the wall clock was set since.
    pub async fn rings(&self) {
        if !self.goes_off {
            return std::future::pending().await;
        }
        self.timers.rung().await;
    }
}

/// A length in milliseconds.
#[must_use]
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn an_alarm_goes_off_by_whichever_clock_is_first() {
        const SOON: u64 = 30;
        let clock = Clock::of_machine().unwrap();
        let Moment { wall_ms, boot_ms } = clock.now();
        let later = 3_600_000;
        for at in [
            Moment { wall_ms: wall_ms + SOON, boot_ms: boot_ms + later },
            Moment { wall_ms: wall_ms + later, boot_ms: boot_ms + 2 * SOON },
            // What is over rings at once.
            Moment { wall_ms: 0, boot_ms: boot_ms + later },
        ] {
            let (alarm, began) = (Alarm::by(&clock).unwrap(), Instant::now());
            alarm.set(at).unwrap();
            alarm.rings().await;
            let now = clock.now();
            assert!(now.wall_ms >= at.wall_ms || now.boot_ms >= at.boot_ms, "{at:?} {now:?}");
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }
}
