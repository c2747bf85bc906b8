//! Watching what a sandbox can write, as a launcher does: from before it can until it has ended.

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

/// The name of the one sandbox.
const NAME: &str = "escape";

/// A watcher at work.
pub(crate) struct Watched {
    work: JoinHandle<Vec<Finding>>,
    /// Its end is the sandbox's.
    stop: PipeWriter,
}

/// Begins, and has `spec` close what is to be closed.
pub(crate) fn watch(spec: &mut Spec, rules: AutostartRules) -> Result<Watched, Box<dyn Error>> {
    let mut watcher = Watcher::new(spec.state_dir.as_ref())?;
    watcher.begin(NAME, rules)?;
    let roots = match &spec.view {
        View::Roots { session_dir, .. } => vec![session_dir.clone()],
        View::HostRead { session_dir, allow_write, .. } => {
            allow_write.iter().chain(session_dir).cloned().collect()
        }
    };
    for root in roots {
        spec.closed.extend(watcher.open(NAME, &root)?);
    }
    for mount in spec.mounts.iter_mut().filter(|mount| mount.access == MountAccess::ReadWrite) {
        mount.closed = watcher.open(NAME, &mount.path)?;
    }
    let (stopped, stop) = io::pipe()?;
    let work = thread::spawn(move || {
        let mut found = Vec::new();
        loop {
            let mut polled = [
                PollFd::new(&watcher, PollFlags::IN),
                PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            ];
            // Interrupted, it looks once more.
            let _ = poll(&mut polled, None);
            let [_, ended] = polled.map(|polled| !polled.revents().is_empty());
            found.extend(watcher.read().into_iter().map(|(_, finding)| finding));
            if ended {
                let (last, journal) = watcher.finish(NAME);
                journal.into_iter().for_each(FinishedJournal::forget);
                found.extend(last);
                return found;
            }
        }
    });
    Ok(Watched { work, stop })
}

impl Watched {
    /// The findings, now that the sandbox has ended.
    pub(crate) fn end(self) -> Result<Vec<Finding>, Box<dyn Error>> {
        drop(self.stop);
        self.work.join().map_err(|_| "the watcher gave up".into())
    }
}
