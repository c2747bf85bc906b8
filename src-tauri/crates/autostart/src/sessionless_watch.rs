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
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Handle to the watcher of one sandbox. Dropping it without calling [`SessionlessWatch::finish`] still runs the final
/// check.
#[derive(Debug)]
pub struct SessionlessWatch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Finding>>,
}

impl SessionlessWatch {
    /// Starts watching folders, which must not be writable yet. Also returns, for each folder, the paths in it that
    /// must be read-only.
    ///
    /// # Errors
    /// Returns an error if no watcher is available or a folder cannot be scanned.
    pub fn start(
        state: &Path,
        name: &str,
        rules: AutostartRules,
        roots: &[CanonicalPath],
    ) -> io::Result<(Self, BTreeMap<CanonicalPath, Vec<String>>)> {
        let mut watcher = Watcher::new(state)?;
        watcher.add_sandbox(name, rules)?;
        let mut read_only_paths = BTreeMap::new();
        for root in roots {
            read_only_paths.insert(root.clone(), watcher.open_root(name, root.as_str())?);
        }
        let (stop, stopped) = channel();
        let name = name.to_owned();
        let watch = move || {
            let mut findings = Vec::new();
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                findings.extend(watcher.process_events().into_iter().map(|(_, finding)| finding));
            }
            let (final_findings, journal) = watcher.finish(&name);
            findings.extend(final_findings);
            journal.into_iter().for_each(|journal| journal.delete());
            findings
        };
        let thread = std::thread::Builder::new().name("autostart".to_owned()).spawn(watch)?;
        Ok((Self { stop, thread }, read_only_paths))
    }

    /// Runs the final check and returns one sentence per finding. All of the sandbox's processes must have exited.
    #[must_use]
    pub fn finish(self) -> Vec<String> {
        let Self { stop, thread } = self;
        drop(stop);
        let findings = thread.join().unwrap_or_default();
        findings.iter().map(describe).collect()
    }
}

fn describe(finding: &Finding) -> String {
    match finding {
        Finding::Quarantined { path, moved_to, .. } => {
            format!("it created `{path}`, which other programs run; the file was moved to `{moved_to}`")
        }
        Finding::Restored { path, .. } => format!("it changed `{path}`; the change was reverted"),
        Finding::AutostartFile { path, .. } => format!("it left `{path}`, which other programs may run"),
        Finding::Unfinished { reason } => format!("the check for autostart files is incomplete: {reason}"),
    }
}
