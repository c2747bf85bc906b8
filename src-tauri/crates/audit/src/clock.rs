//! Wall clock and boot clock.
//!
//! - A grant expires by whichever of two clocks is first: the wall clock, which users can set, or the time since boot
//!   (including sleep), which cannot be set.

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

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch, according to the wall clock.
    pub wall_ms: u64,
    /// Milliseconds since boot, including sleep.
    pub boot_ms: u64,
}

/// Both clocks, and the boot to which the second one refers.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Moment + Send + Sync>,
    boot: Arc<str>,
    /// Set if kernel timers use this clock.
    is_machines: bool,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).field("boot", &self.boot).finish()
    }
}

impl Clock {
    /// Returns the clocks of this machine.
    ///
    /// # Errors
    /// Returns an error if the kernel does not report the boot id.
    pub fn of_machine() -> io::Result<Self> {
        let boot = system::boot_id()?;
        let now = || Moment { wall_ms: now_ms(), boot_ms: boot_ms() };
        Ok(Self { is_machines: true, ..Self::new(boot.trim(), now) })
    }

    /// Creates clocks that a caller controls. Alarms do not use them.
    pub fn new(boot: &str, now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), boot: boot.into(), is_machines: false }
    }

    /// Returns the current moment.
    #[must_use]
    pub fn now(&self) -> Moment {
        (self.now)()
    }

    /// Returns the unique id of this boot.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }
}

/// Returns the milliseconds since boot, including sleep.
#[must_use]
pub fn boot_ms() -> u64 {
    system::boot_ms()
}

/// A timer for a moment on either clock. It also fires when the wall clock is set.
#[derive(Debug)]
pub struct Alarm {
    goes_off: bool,
    timers: system::Timers,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    /// Returns an error if the kernel provides no timer.
    pub fn by(clock: &Clock) -> io::Result<Self> {
        Ok(Self { goes_off: clock.is_machines, timers: system::Timers::new()? })
    }

    /// Sets the alarm. From then on, setting the wall clock fires it too.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn set(&self, at: Moment) -> io::Result<()> {
        self.timers.set(at)
    }

    /// Completes at the moment, or after the wall clock was set.
    pub async fn rings(&self) {
        if !self.goes_off {
            return std::future::pending().await;
        }
        self.timers.rung().await;
    }
}

/// Returns a duration in milliseconds.
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
        let clock = Clock::of_machine().unwrap();
        let Moment { wall_ms, boot_ms } = clock.now();
        let later = 3_600_000;
        for at in [
            Moment { wall_ms: wall_ms + SOON, boot_ms: boot_ms + later },
            Moment { wall_ms: wall_ms + later, boot_ms: boot_ms + 2 * SOON },
            // A past moment fires at once.
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
