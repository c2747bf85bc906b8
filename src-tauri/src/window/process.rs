//! Starts and stops the window's process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Command-line argument that makes this program run as the window's process.
pub(crate) const ARGUMENT: &str = "--window";

/// Environment variables that let other programs control the page. Two of them make the engine listen on a port that
/// every user of the machine can connect to.
const DRIVEN_BY: [&str; 3] =
    ["TAURI_WEBVIEW_AUTOMATION", "WEBKIT_INSPECTOR_SERVER", "WEBKIT_INSPECTOR_HTTP_SERVER"];

/// Running window process. It shows nothing until the window is requested.
pub struct WindowProcess {
    pub(super) process: Process,
    pub(super) channel: UnixStream,
}

/// Child process, killed on drop.
pub(super) struct Process(Child);

impl WindowProcess {
    /// Starts this program again from the running executable, so that replacing the file has no effect.
    ///
    /// # Errors
    /// Returns an I/O error if the process cannot be started.
    pub fn start() -> io::Result<Self> {
        let (channel, theirs) = UnixStream::pair()?;
        let mut command = command(&std::env::current_exe()?, cfg!(debug_assertions));
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ok(Self { process: Process(command.spawn()?), channel })
    }
}

/// Returns the command that starts the process. Only test builds let other programs control the page.
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
        // Ignores the error: the process has exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_builds_let_other_programs_drive_the_page() {
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
