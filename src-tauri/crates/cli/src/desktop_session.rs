//! The app in the person's desktop session, started from where there is no display.
//!
//! - An agent client hands its shim hardly any environment: which desktop the person has is asked of their systemd user
//!   manager, which every desktop tells (`systemctl --user import-environment`, `dbus-update-activation-environment`).
//! - The app gets that environment and nothing of ours, which an agent has chosen.

use ironcurtain_paths::OwnProgram;
use ironcurtain_protocol::{HOME_VARIABLE, Sockets};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use zbus::{Proxy, connection};

/// The time for which the bus is waited for: an agent waits behind this.
const BUS_BOUND: Duration = Duration::from_secs(2);

/// The time that the app may take before it listens: shorter than a shim waits.
const START_BOUND: Duration = Duration::from_secs(6);

/// Pause between two looks at whether it listens.
const PAUSE: Duration = Duration::from_millis(20);

/// The variables that name a display.
const DISPLAYS: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];

/// Variables, each with its value.
type Environment = Vec<(OsString, OsString)>;

/// Why there is no app to ask.
#[derive(Debug, thiserror::Error)]
pub enum NoApp {
    /// There is nowhere to show it.
    #[error("you have no desktop session")]
    NoDesktop,
    /// It could not be started.
    #[error("`{0}` could not be started: {1}")]
    NotStarted(PathBuf, io::Error),
    /// It ended, or did not listen.
    #[error("`{0}` was started and {1}")]
    NotListening(PathBuf, String),
}

/// Starts the app that lies in this folder in the person's desktop session, and waits until it listens.
///
/// # Errors
/// [`NoApp`]: nothing of it runs.
pub async fn start_app(programs: &Path, sockets: &Sockets, allow_root: bool) -> Result<(), NoApp> {
    let environment = environment().await.ok_or(NoApp::NoDesktop)?;
    let path = programs.join("ironcurtain-desktop");
    let failed = |error| NoApp::NotStarted(path.clone(), error);
    let program = OwnProgram::open(&path).map_err(failed)?;
    let mut command = program.command();
    command.arg("--background").args(allow_root.then_some("--allow-root"));
    command.env_clear().envs(environment).current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let until = Instant::now() + START_BOUND;
    loop {
        if matches!(sockets.connect(), Ok(Some(_))) {
            return Ok(());
        }
        match child.try_wait() {
            Ok(None) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Ok(Some(status)) => return Err(NoApp::NotListening(path, format!("ended with {status}"))),
            // It may be telling the person why.
            Ok(None) | Err(_) => {
                let how = format!("did not listen within {} s", START_BOUND.as_secs());
                return Err(NoApp::NotListening(path, how));
            }
        }
    }
}

/// The environment of the person's desktop session: this process's own where that has a display.
async fn environment() -> Option<Environment> {
    let own: Environment = std::env::vars_os().collect();
    if has_display(&own) {
        return Some(own);
    }
    let mut found = of_user_manager().await?;
    // Both have to mean the same files.
    found.retain(|(name, _)| name != HOME_VARIABLE);
    found.extend(std::env::var_os(HOME_VARIABLE).map(|home| (HOME_VARIABLE.into(), home)));
    has_display(&found).then_some(found)
}

fn has_display(environment: &Environment) -> bool {
    environment.iter().any(|(name, value)| DISPLAYS.iter().any(|d| name == d) && !value.is_empty())
}

/// The environment of the person's systemd user manager; nothing where none answers in time.
async fn of_user_manager() -> Option<Environment> {
    let variables = tokio::time::timeout(BUS_BOUND, ask_user_manager()).await.ok()?.ok()?;
    let pair = |line: String| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
    Some(variables.into_iter().filter_map(pair).collect())
}

/// The property `Environment` of `org.freedesktop.systemd1.Manager` (`org.freedesktop.systemd1(5)`).
async fn ask_user_manager() -> zbus::Result<Vec<String>> {
    let bus = match std::env::var_os("DBUS_SESSION_BUS_ADDRESS") {
        Some(_) => connection::Builder::session(),
        None => connection::Builder::address(usual_bus().as_str()),
    };
    let bus = bus.build().await?;
    let manager = "org.freedesktop.systemd1.Manager";
    let proxy = Proxy::new(&bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1", manager).await?;
    proxy.get_property("Environment").await
}

/// The address of the bus where nothing names one (`pam_systemd(8)`, `systemd.special(7)`: `dbus.socket`).
fn usual_bus() -> String {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
        PathBuf::from(format!("/run/user/{user}"))
    });
    format!("unix:path={}", runtime.join("bus").display())
}
