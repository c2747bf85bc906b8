//! Receives file events from the kernel.

use std::{fs::File, io::Read, os::fd::AsRawFd};

use crate::sys::{Outcome, c, check, descriptor};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["watch", path] => watch(path),
        _ => return None,
    })
}

/// Prints the first events in a directory. Another process must continuously cause events there.
fn watch(path: &str) -> Outcome {
    const EVENTS: usize = 20;
    let path = c(path)?;
    // SAFETY: `inotify_init1` takes no pointers.
    let queue = descriptor(unsafe { libc::inotify_init1(libc::IN_CLOEXEC) })?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    check(unsafe { libc::inotify_add_watch(queue.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) })?;
    let mut queue = File::from(queue);
    for _ in 0..EVENTS {
        let mut ready = libc::pollfd { fd: queue.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one structure that outlives the call.
        if check(unsafe { libc::poll(&raw mut ready, 1, 2000) })? == 0 {
            return Err("nothing happened".into());
        }
        let mut event = [0; 4096];
        let length = queue.read(&mut event)?;
        println!("{}", String::from_utf8_lossy(event.get(..length).unwrap_or_default()));
    }
    Ok(())
}
