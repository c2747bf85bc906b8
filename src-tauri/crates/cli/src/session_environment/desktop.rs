//! Finds the user's display through the systemd user manager, logind and the runtime directory.

use super::{Variables, is_own_socket};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zbus::{Connection, OwnedObjectPath, Proxy, connection};

/// Timeout for querying each bus. Short, because an agent is waiting for the result.
const BUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Socket of the system bus (D-Bus specification, "Well-known Message Bus Instances").
const SYSTEM_BUS: &str = "unix:path=/run/dbus/system_bus_socket";

/// Highest Wayland socket number to try, as in `wl_display_add_socket_auto(3)`.
const MAX_WAYLAND: u32 = 32;

/// Display of the user's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Desktop {
    /// Name of the Wayland compositor's socket in the runtime directory.
    Wayland(OsString),
    /// X display name.
    X11(String),
}

/// Graphical session reported by logind (`org.freedesktop.login1(5)`).
#[derive(Debug, PartialEq, Eq)]
struct Login {
    kind: String,
    display: String,
    is_remote: bool,
}

impl Desktop {
    /// Finds the display without the user manager.
    pub(super) async fn find(runtime: Option<&Path>) -> Option<Self> {
        let login = tokio::time::timeout(BUS_TIMEOUT, graphical_login()).await.ok().and_then(Result::ok);
        Self::detect(login, runtime)
    }

    fn detect(login: Option<Login>, runtime: Option<&Path>) -> Option<Self> {
        match login {
            Some(login) if login.kind == "x11" && !login.display.is_empty() && !login.is_remote => {
                Some(Self::X11(login.display))
            }
            Some(login) if login.is_remote => None,
            // Compositors without a `wayland` session in logind are common, such as those started on a console.
            Some(_) | None => wayland_socket(runtime?).map(Self::Wayland),
        }
    }

    /// Returns the environment variable for the display, with its value.
    pub(super) fn variable(self) -> (&'static str, OsString) {
        match self {
            Self::Wayland(socket) => ("WAYLAND_DISPLAY", socket),
            Self::X11(display) => ("DISPLAY", display.into()),
        }
    }
}

/// Returns the environment of the systemd user manager, which every desktop updates (`systemctl --user
/// import-environment`).
pub(super) async fn user_manager(bus: &str) -> Option<Variables> {
    let ask = async {
        let bus = connection::Builder::address(bus).build().await?;
        let manager = "org.freedesktop.systemd1.Manager";
        let proxy =
            Proxy::new(&bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1", manager).await?;
        proxy.get_property::<Vec<String>>("Environment").await
    };
    let variables = tokio::time::timeout(BUS_TIMEOUT, ask).await.ok()?.ok()?;
    let pair = |line: String| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
    Some(variables.into_iter().filter_map(pair).collect())
}

/// Queries logind for the user's graphical session.
async fn graphical_login() -> zbus::Result<Login> {
    let bus = connection::Builder::address(SYSTEM_BUS).build().await?;
    let user = rustix::process::geteuid().as_raw();
    let manager = login1(&bus, "/org/freedesktop/login1", "Manager").await?;
    let user: OwnedObjectPath = manager.call("GetUser", &(user,)).await?;
    let user = login1(&bus, user.as_str(), "User").await?;
    let (_, session): (String, OwnedObjectPath) = user.get_property("Display").await?;
    let session = login1(&bus, session.as_str(), "Session").await?;
    Ok(Login {
        kind: session.get_property("Type").await?,
        display: session.get_property("Display").await?,
        is_remote: session.get_property("Remote").await?,
    })
}

async fn login1<'a>(bus: &Connection, path: &'a str, interface: &str) -> zbus::Result<Proxy<'a>> {
    Proxy::new(bus, "org.freedesktop.login1", path, format!("org.freedesktop.login1.{interface}")).await
}

/// Returns the first Wayland socket in the runtime directory.
fn wayland_socket(runtime: &Path) -> Option<OsString> {
    let names = (0..=MAX_WAYLAND).map(|number| format!("wayland-{number}"));
    names.map(PathBuf::from).find(|name| is_own_socket(&runtime.join(name))).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn login(kind: &str, display: &str, is_remote: bool) -> Option<Login> {
        Some(Login { kind: kind.into(), display: display.into(), is_remote })
    }

    #[test]
    fn display_comes_from_logind_or_a_socket_of_the_user() {
        let runtime = tempfile::tempdir().unwrap();
        let runtime = runtime.path();
        assert_eq!(Desktop::detect(None, Some(runtime)), None);
        std::fs::write(runtime.join("wayland-0"), "no socket").unwrap();
        assert_eq!(Desktop::detect(login("wayland", "", false), Some(runtime)), None);
        let _socket = UnixListener::bind(runtime.join("wayland-1")).unwrap();
        let wayland = Some(Desktop::Wayland("wayland-1".into()));
        assert_eq!(Desktop::detect(login("wayland", "", false), Some(runtime)), wayland);
        assert_eq!(Desktop::detect(login("tty", "", false), Some(runtime)), wayland);
        assert_eq!(Desktop::detect(None, Some(runtime)), wayland);
        assert_eq!(
            Desktop::detect(login("x11", ":0", false), Some(runtime)),
            Some(Desktop::X11(":0".into()))
        );
    }

    #[test]
    fn remote_login_has_no_display_here() {
        let runtime = tempfile::tempdir().unwrap();
        let _socket = UnixListener::bind(runtime.path().join("wayland-0")).unwrap();
        assert_eq!(Desktop::detect(login("x11", "localhost:10", true), Some(runtime.path())), None);
    }
}
