//! The window's own process, as the trusted process starts and ends it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The argument by which this program becomes the window.
pub(crate) const ARGUMENT: &str = "--window";

/// The variables by which the toolkit has its page driven from outside. By two of them the engine listens on a port, and whoever
/// connects there presses buttons for the person, another user of the machine too.
const DRIVEN_BY: [&str; 3] =
    ["TAURI_WEBVIEW_AUTOMATION", "WEBKIT_INSPECTOR_SERVER", "WEBKIT_INSPECTOR_HTTP_SERVER"];

/// A window's process that was started, and shows nothing before it is told to.
pub struct WindowProcess {
    pub(super) process: Process,
    pub(super) channel: UnixStream,
}

/// A process that ends, at the latest, when nobody holds this any more.
pub(super) struct Process(Child);

impl WindowProcess {
    /// Starts it: this program again, as it is in memory, whatever lies at its path by now.
    ///
    /// # Errors
    /// The operating system's answer.
    pub fn start() -> io::Result<Self> {
        let (channel, theirs) = UnixStream::pair()?;
        let mut command = command(&std::env::current_exe()?, cfg!(debug_assertions));
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ok(Self { process: Process(command.spawn()?), channel })
    }
}

/// The command that starts it. Only in a build for tests is its page driven from outside.
fn command(this: &Path, is_for_tests: bool) -> Command {
    let program = if cfg!(target_os = "linux") { Path::new("/proc/self/exe") } else { this };
    let mut command = Command::new(program);
    command.arg0(this).arg(ARGUMENT);
    if !is_for_tests {
        for name in DRIVEN_BY {
            command.env_remove(name);
        }
    }
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_driven_from_outside_in_a_build_for_tests_alone() {
        let withheld = |is_for_tests| {
            let command = command(Path::new("/usr/bin/ironcurtain-desktop"), is_for_tests);
            let changed =
                command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)));
            changed.collect::<Vec<_>>()
        };
        let mut names = DRIVEN_BY.map(|name| (name.into(), None));
        names.sort();
        assert_eq!(withheld(false), names);
        assert_eq!(withheld(true), []);
    }
}
