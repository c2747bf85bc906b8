//! Wall clock and boot clock.
//!
//! - A grant expires by the wall clock or by the boot clock, whichever comes first. The boot clock counts the time
//!   since boot, including sleep. Users can set the wall clock but not the boot clock.

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

/// Returns the wall-clock time in milliseconds since the Unix epoch.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Point in time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Wall-clock time, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// Time since boot including sleep, in milliseconds.
    pub boot_ms: u64,
}

/// Wall clock and boot clock, with the id of the current boot.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Moment + Send + Sync>,
    boot: Arc<str>,
    /// `true` if these are the machine's own clocks. Only these clocks trigger alarms.
    is_system: bool,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).field("boot", &self.boot).finish()
    }
}

impl Clock {
    /// Returns this machine's clocks.
    ///
    /// # Errors
    /// Returns an error if the kernel does not report the boot id.
    pub fn system() -> io::Result<Self> {
        let boot = system::boot_id()?;
        let now = || Moment { wall_ms: now_ms(), boot_ms: boot_ms() };
        Ok(Self { is_system: true, ..Self::new(boot.trim(), now) })
    }

    /// Creates clocks that a test controls. They do not trigger alarms.
    pub fn new(boot: &str, now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), boot: boot.into(), is_system: false }
    }

    /// Returns the current time on both clocks.
    #[must_use]
    pub fn now(&self) -> Moment {
        (self.now)()
    }

    /// Returns the kernel's unique id for the current boot.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }
}

/// Returns the time since boot including sleep, in milliseconds.
#[must_use]
pub fn boot_ms() -> u64 {
    system::boot_ms()
}

/// Timer that fires at a given time on either clock, or when the wall clock is set.
#[derive(Debug)]
pub struct Alarm {
    is_enabled: bool,
    timers: system::Timers,
}

impl Alarm {
    /// Creates an alarm that does not fire until [`Alarm::set`] is called.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot create a timer.
    pub fn new(clock: &Clock) -> io::Result<Self> {
        Ok(Self { is_enabled: clock.is_system, timers: system::Timers::new()? })
    }

    /// Sets the time at which the alarm fires. From then on, the alarm also fires when the wall clock is set.
    ///
    /// # Errors
    /// Returns an error if the kernel rejects the time.
    pub fn set(&self, at: Moment) -> io::Result<()> {
        self.timers.set(at)
    }

    /// Completes when the alarm fires. Never completes for clocks that a test controls.
    pub async fn fired(&self) {
        if !self.is_enabled {
            return std::future::pending().await;
        }
        self.timers.fired().await;
    }
}

/// Converts a duration to milliseconds, saturating at `u64::MAX`.
#[must_use]
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn alarm_fires_by_the_first_clock() {
        const SOON: u64 = 30;
        let clock = Clock::system().unwrap();
        let Moment { wall_ms, boot_ms } = clock.now();
        let later = 3_600_000;
        for at in [
            Moment { wall_ms: wall_ms + SOON, boot_ms: boot_ms + later },
            Moment { wall_ms: wall_ms + later, boot_ms: boot_ms + 2 * SOON },
            // An alarm that is set to a time in the past fires at once.
            Moment { wall_ms: 0, boot_ms: boot_ms + later },
        ] {
            let (alarm, began) = (Alarm::new(&clock).unwrap(), Instant::now());
            alarm.set(at).unwrap();
            alarm.fired().await;
            let now = clock.now();
            assert!(now.wall_ms >= at.wall_ms || now.boot_ms >= at.boot_ms, "{at:?} {now:?}");
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }
}
