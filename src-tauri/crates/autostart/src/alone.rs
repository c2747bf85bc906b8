//! Watches the folders of a sandbox that has no session, on a separate thread.
//!
//! - Findings are neither recorded nor shown to the user, but returned to the caller as sentences.

use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::autostart::{AutostartRules, Finding, Watcher};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between checks for findings.
const LOOK: Duration = Duration::from_millis(50);

/// Handle to the watcher of one sandbox. Dropping it without calling [`LoneWatch::finish`] still runs the final check.
#[derive(Debug)]
pub struct LoneWatch {
    stop: Sender<()>,
    found: JoinHandle<Vec<Finding>>,
}

impl LoneWatch {
    /// Starts watching folders, which must not be writable yet. Also returns, for each folder, the paths in it that
    /// must be read-only.
    ///
    /// # Errors
    /// Returns an error if no watcher is available or a folder cannot be scanned.
    pub fn begin(
        state: &Path,
        name: &str,
        rules: AutostartRules,
        roots: &[CanonicalPath],
    ) -> io::Result<(Self, BTreeMap<CanonicalPath, Vec<String>>)> {
        let mut watcher = Watcher::new(state)?;
        watcher.begin(name, rules)?;
        let mut closed = BTreeMap::new();
        for root in roots {
            closed.insert(root.clone(), watcher.open(name, root.as_str())?);
        }
        let (stop, stopped) = channel();
        let name = name.to_owned();
        let look = move || {
            let mut found = Vec::new();
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                found.extend(watcher.read().into_iter().map(|(_, finding)| finding));
            }
            let (last, journal) = watcher.finish(&name);
            found.extend(last);
            journal.into_iter().for_each(|journal| journal.forget());
            found
        };
        let found = std::thread::Builder::new().name("autostart".to_owned()).spawn(look)?;
        Ok((Self { stop, found }, closed))
    }

    /// Runs the final check and returns one sentence per finding. All of the sandbox's processes must have exited.
    #[must_use]
    pub fn finish(self) -> Vec<String> {
        let Self { stop, found } = self;
        drop(stop);
        let found = found.join().unwrap_or_default();
        found.iter().map(in_words).collect()
    }
}

fn in_words(finding: &Finding) -> String {
    match finding {
        Finding::Quarantined { path, moved_to, .. } => {
            format!("it created `{path}`, which other programs run; the file was moved to `{moved_to}`")
        }
        Finding::Restored { path, .. } => format!("it changed `{path}`; the change was reverted"),
        Finding::Left { path, .. } => format!("it left `{path}`, which other programs may run"),
        Finding::Unfinished { reason } => format!("the check for autostart files is incomplete: {reason}"),
    }
}
