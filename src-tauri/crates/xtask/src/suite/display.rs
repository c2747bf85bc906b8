//! A display of its own for tests: Xvfb, a session bus, and a home that is thrown away.

use crate::process;
use anyhow::Context;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A home for programs that will think they run on a person's desktop.
pub(crate) struct Display {
    home: PathBuf,
}

impl Display {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let home = std::env::temp_dir().join(format!("ironcurtain-display-{}", std::process::id()));
        let run = home.join("run");
        fs::create_dir_all(&run).with_context(|| format!("`{}` could not be made", run.display()))?;
        for dir in [&home, &run] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self { home })
    }

    /// The same command, on the display.
    pub(crate) fn around(&self, command: &Command) -> Command {
        let mut inside = process::command("xvfb-run");
        inside.args(["-a", "-s", "-screen 0 1280x800x24", "dbus-run-session", "--"]);
        inside.arg(command.get_program()).args(command.get_args());
        if let Some(dir) = command.get_current_dir() {
            inside.current_dir(dir);
        }
        let run = self.home.join("run");
        inside.env("HOME", &self.home).env("XDG_RUNTIME_DIR", run).env("GDK_BACKEND", "x11");
        inside.env_remove("WAYLAND_DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS");
        // These are looked for in the home, which is another one now.
        for (name, dir) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if let (None, Some(home)) = (std::env::var_os(name), std::env::var_os("HOME")) {
                inside.env(name, PathBuf::from(home).join(dir));
            }
        }
        inside
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of its temporary directory.
        let _ = fs::remove_dir_all(&self.home);
    }
}
