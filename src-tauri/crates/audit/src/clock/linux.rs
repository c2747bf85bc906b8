//! Clocks and timers of the Linux kernel.

use super::Moment;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::io;
use tokio::net::unix::pipe;

pub(super) fn boot_id() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
}

pub(super) fn boot_ms() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    let (seconds, millis) =
        (u64::try_from(tv_sec).unwrap_or(0), u64::try_from(tv_nsec / 1_000_000).unwrap_or(0));
    seconds.saturating_mul(1000).saturating_add(millis)
}

/// One kernel timer per clock.
#[derive(Debug)]
pub(super) struct Timers {
    wall: pipe::Receiver,
    boot: pipe::Receiver,
}

impl Timers {
    pub(super) fn new() -> io::Result<Self> {
        let timer = |clock| -> io::Result<pipe::Receiver> {
            let timer = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            pipe::Receiver::from_owned_fd_unchecked(timer)
        };
        Ok(Self { wall: timer(TimerfdClockId::Realtime)?, boot: timer(TimerfdClockId::Boottime)? })
    }

    pub(super) fn set(&self, at: Moment) -> io::Result<()> {
        let once = |ms: u64| {
            // A time of zero would disarm the timer.
            let ms = ms.max(1);
            let value = Timespec {
                tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(ms % 1000 * 1_000_000).unwrap_or(0),
            };
            Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value }
        };
        let watched = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&self.wall, watched, &once(at.wall_ms))?;
        timerfd_settime(&self.boot, TimerfdTimerFlags::ABSTIME, &once(at.boot_ms))?;
        Ok(())
    }

    pub(super) async fn fired(&self) {
        tokio::select! {
            () = fired(&self.wall) => {}
            () = fired(&self.boot) => {}
        }
    }
}

/// Completes when the timer fires or the clock is set.
async fn fired(timer: &pipe::Receiver) {
    loop {
        if timer.readable().await.is_err() {
            // This fails only while the runtime is shutting down.
            return std::future::pending().await;
        }
        match timer.try_read(&mut [0; 8]) {
            Err(nothing) if nothing.kind() == io::ErrorKind::WouldBlock => {}
            // Reading fails with `ECANCELED` if the clock was set.
            Ok(_) | Err(_) => return,
        }
    }
}
