//! Watches a sandbox's writable folders like a launcher: from before the sandbox starts until it exits.

use std::{
    error::Error,
    io::{self, PipeWriter},
    os::fd::AsFd,
    thread::{self, JoinHandle},
};

use ironcurtain_sandbox::{
    MountAccess, Spec, View,
    autostart::{AutostartRules, Finding, FinishedJournal, Watcher},
};
use rustix::event::{PollFd, PollFlags, poll};

/// Name of the only sandbox.
const NAME: &str = "escape";

/// Watcher that runs until [`Watched::end`].
pub(crate) struct Watched {
    work: JoinHandle<Vec<Finding>>,
    /// Held because dropping it stops the watcher.
    stop: PipeWriter,
}

/// Starts watching and adds the paths that must be read-only to `spec`.
pub(crate) fn watch(spec: &mut Spec, rules: AutostartRules) -> Result<Watched, Box<dyn Error>> {
    let mut watcher = Watcher::new(spec.state_dir.as_ref())?;
    watcher.add_sandbox(NAME, rules)?;
    let roots = match &spec.view {
        View::Roots { session_dir, .. } => vec![session_dir.clone()],
        View::HostRead { session_dir, allow_write, .. } => {
            allow_write.iter().chain(session_dir).cloned().collect()
        }
        View::Served { session_dir, .. } => session_dir.iter().cloned().collect(),
    };
    for root in roots {
        spec.read_only.extend(watcher.open_root(NAME, &root)?);
    }
    for mount in spec.mounts.iter_mut().filter(|mount| mount.access == MountAccess::ReadWrite) {
        mount.read_only = watcher.open_root(NAME, &mount.path)?;
    }
    let (stopped, stop) = io::pipe()?;
    let work = thread::spawn(move || {
        let mut found = Vec::new();
        loop {
            let mut polled = [
                PollFd::new(&watcher, PollFlags::IN),
                PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            ];
            // Ignores the error: an interrupted poll only causes one more check.
            let _ = poll(&mut polled, None);
            let [_, ended] = polled.map(|polled| !polled.revents().is_empty());
            found.extend(watcher.process_events().into_iter().map(|(_, finding)| finding));
            if ended {
                let (last, journal) = watcher.finish(NAME);
                journal.into_iter().for_each(FinishedJournal::delete);
                found.extend(last);
                return found;
            }
        }
    });
    Ok(Watched { work, stop })
}

impl Watched {
    /// Stops watching and returns all findings. Call this after the sandbox has exited.
    pub(crate) fn end(self) -> Result<Vec<Finding>, Box<dyn Error>> {
        drop(self.stop);
        self.work.join().map_err(|_| "the watcher panicked".into())
    }
}
