//! A private screen: an X server, a session bus, a window manager, and tools for input and inspection.

mod input;
mod sway;

use crate::accessible::Accessibility;
pub(crate) use crate::accessible::Control;
use crate::bus::Bus;
use ironcurtain_testkit::wait;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Timeout of each wait. The value allows for busy machines. A passing test needs far less time.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two queries of the screen. Queries are expensive: listing windows starts a program, and listing
/// controls makes the app answer hundreds of messages.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Screen {
    /// Child processes, which are killed in reverse order.
    children: Vec<Child>,
    home: tempfile::TempDir,
    display: String,
    bus: String,
    /// Name of the Wayland display, or `None` on X11.
    wayland: Option<String>,
    /// `true` to double the text size.
    large_text: bool,
    session: OnceLock<Bus>,
    accessibility: OnceLock<Accessibility>,
}

impl Screen {
    /// Starts an X server with openbox.
    pub(crate) fn start() -> Self {
        Self::under("openbox")
    }

    /// Starts an X server with a small screen, openbox and doubled text size.
    pub(crate) fn start_small_with_large_text() -> Self {
        let mut screen = Self::empty();
        screen.large_text = true;
        screen.on_x("1024x768x24", "openbox", &[])
    }

    /// Starts an X server with a compositor: `picom` with openbox, or the window manager with this name.
    pub(crate) fn composited(by: &str) -> Self {
        if by != "picom" {
            let arguments: &[&str] = if by == "mutter" { &["--x11"] } else { &[] };
            return Self::empty().on_x("1280x800x24", by, arguments);
        }
        let mut screen = Self::start();
        screen.spawn("picom", &["--backend", "xrender", "--config", "/dev/null"]);
        screen
    }

    /// Starts an X server with this window manager.
    pub(crate) fn under(manager: &str) -> Self {
        let screen = Self::empty();
        let settings = screen.home().join("i3");
        std::fs::write(&settings, "font pango:monospace 8\n").expect("i3's settings");
        let arguments: &[&str] = match manager {
            "i3" => &["-c", settings.to_str().expect("a UTF-8 path")],
            "xfwm4" => &["--compositor=off"],
            "mutter" => &["--x11"],
            _ => &[],
        };
        screen.on_x("1280x800x24", manager, arguments)
    }

    fn on_x(self, size: &str, manager: &str, arguments: &[&str]) -> Self {
        let mut screen = self;
        let xvfb = ["-displayfd", "1", "-screen", "0", size, "-nolisten", "tcp", "-noreset"];
        screen.display = format!(":{}", screen.first_line("Xvfb", &xvfb));
        // The first key makes the X server switch to xdotool's keyboard. A running window manager then registers its
        // key bindings again, and misses keys pressed in the meantime.
        screen.key("shift");
        screen.start_bus();
        screen.spawn(manager, arguments);
        until("the window manager", || {
            screen.read("xprop", &["-root", "_NET_SUPPORTING_WM_CHECK"]).contains("window id").then_some(())
        });
        screen
    }

    fn empty() -> Self {
        // The directory is not in `/tmp`, because every sandbox has its own `/tmp`.
        let home = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let runtime = home.path().join("run");
        for own in [&runtime, &home.path().join("tmp")] {
            std::fs::create_dir(own).expect("a directory of its own");
            std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o700)).expect("its mode");
        }
        Self {
            children: vec![],
            home,
            display: String::new(),
            bus: String::new(),
            wayland: None,
            large_text: false,
            session: OnceLock::new(),
            accessibility: OnceLock::new(),
        }
    }

    fn start_bus(&mut self) {
        // Without an explicit address, the socket would remain in `/tmp` after the bus is killed.
        let address = format!("--address=unix:path={}", self.home().join("run/bus").display());
        let bus = ["--session", "--nofork", "--nopidfile", "--print-address=1", &address];
        self.bus = self.first_line("dbus-daemon", &bus);
    }

    /// Returns the name of the X display.
    pub(crate) fn display(&self) -> &str {
        &self.display
    }

    /// Returns a command with the environment that a login sets for every program. This environment names no display.
    pub(crate) fn login_command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.command(program);
        let of_the_desktop = [
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "GDK_BACKEND",
            "DBUS_SESSION_BUS_ADDRESS",
            "DBUS_SYSTEM_BUS_ADDRESS",
        ];
        for name in of_the_desktop {
            command.env_remove(name);
        }
        command
    }

    /// Returns a command with this screen's environment and without the test's own variables.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a PATH"))
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .env("TMPDIR", self.home.path().join("tmp"))
            .env("IRONCURTAIN_HOME", self.home.path().join("ironcurtain"))
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus)
            .env("DBUS_SYSTEM_BUS_ADDRESS", &self.bus)
            .env("GSETTINGS_BACKEND", "memory")
            .env("LANG", "C.UTF-8")
            .current_dir(self.home.path());
        if !self.display.is_empty() {
            command.env("GDK_BACKEND", "x11").env("DISPLAY", &self.display);
        }
        if self.large_text {
            command.env("GDK_DPI_SCALE", "2");
        }
        if let Some(display) = &self.wayland {
            command.env("GDK_BACKEND", "wayland").env("WAYLAND_DISPLAY", display);
        }
        command
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts a program that runs until the screen is dropped.
    pub(crate) fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let child = self.command(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.children.push(child.unwrap_or_else(|error| panic!("{program} is needed: {error}")));
    }

    /// Like [`Screen::spawn`], but waits for the first line of output and returns it.
    pub(crate) fn first_line(&mut self, program: &str, arguments: &[&str]) -> String {
        let child =
            self.command(program).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a readable line");
        self.children.push(child);
        assert!(!line.trim().is_empty(), "{program} did not start");
        line.trim().to_owned()
    }

    /// Like [`Screen::spawn`], but returns the program's standard input.
    pub(crate) fn spawn_with_stdin(
        &mut self,
        program: &str,
        arguments: &[&str],
    ) -> (ChildStdin, BufReader<ChildStdout>) {
        let child =
            self.command(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
        let ends = (child.stdin.take().expect("its input"), child.stdout.take().expect("its output"));
        self.children.push(child);
        (ends.0, BufReader::new(ends.1))
    }

    /// Returns a program's output, even if the program fails.
    pub(crate) fn read(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Waits for a visible window with a matching title and returns its id.
    pub(crate) fn window(&self, title: &str) -> String {
        until(&format!("the window {title}"), || {
            let found = self.xdotool(&["search", "--onlyvisible", "--name", title]);
            found.lines().last().filter(|id| !id.is_empty()).map(str::to_owned)
        })
    }

    /// Moves the keyboard focus to a window, as a user does.
    pub(crate) fn activate(&self, window: &str) {
        self.xdotool(&["windowactivate", window]);
        self.wait_for_focus(window);
    }

    /// Waits until a window is in front and has the keyboard focus. A window can be in front before it has the focus,
    /// and keys pressed before that go to another window.
    pub(crate) fn wait_for_focus(&self, window: &str) {
        until("the focus", || {
            let active = self.xdotool(&["getactivewindow"]) == window;
            (active && self.xdotool(&["getwindowfocus"]) == window).then_some(())
        });
    }

    /// Returns a connection to the session bus.
    pub(crate) fn session_bus(&self) -> &Bus {
        self.session.get_or_init(|| Bus::connect(&self.bus))
    }

    fn accessibility(&self) -> &Accessibility {
        self.accessibility.get_or_init(|| Accessibility::connect(self.session_bus()))
    }

    /// Returns all controls that a screen reader finds in windows with a matching title.
    pub(crate) fn controls(&self, title: &str) -> Vec<Control> {
        self.accessibility().controls(title)
    }

    /// Returns the names of all controls in windows with a matching title, one per line.
    pub(crate) fn text(&self, title: &str) -> String {
        self.accessibility().names(title).join("\n") + "\n"
    }

    /// Returns the first control with this name and role. An empty `role` matches any role.
    pub(crate) fn find(&self, title: &str, role: &str, name: &str) -> Option<Control> {
        self.accessibility().find(title, role, name)
    }

    /// Waits for a control with this role and name and returns it.
    pub(crate) fn control(&self, title: &str, role: &str, name: &str) -> Control {
        until(&format!("the {role} {name}"), || self.find(title, role, name))
    }

    /// Activates a control as a screen reader does. Returns `false` if it does not exist or refuses.
    pub(crate) fn try_press(&self, title: &str, role: &str, name: &str) -> bool {
        self.accessibility().press(title, role, name)
    }

    /// Waits for a control and activates it as a screen reader does.
    pub(crate) fn press(&self, title: &str, role: &str, name: &str) {
        until(&format!("press the {role} {name}"), || self.try_press(title, role, name).then_some(()));
    }

    /// Saves a picture of the screen in the folder `IRONCURTAIN_PICTURES`.
    pub(crate) fn picture(&self, name: &str) {
        self.picture_of("root", name);
    }

    /// Like [`Screen::picture`], but saves only one window.
    pub(crate) fn picture_of(&self, window: &str, name: &str) {
        if let Some(folder) = std::env::var_os("IRONCURTAIN_PICTURES") {
            let file = PathBuf::from(folder).join(format!("{name}.png"));
            self.read("import", &["-window", window, file.to_str().expect("a UTF-8 path")]);
        }
    }
}

/// Returns `true` if a title contains this text. `^` matches the title's start, and `$` its end.
pub(crate) fn is_titled(title: &str, wanted: &str) -> bool {
    match (wanted.strip_prefix('^'), wanted.strip_suffix('$')) {
        (Some(_), Some(_)) => title == &wanted[1..wanted.len() - 1],
        (Some(start), None) => title.starts_with(start),
        (None, Some(end)) => title.ends_with(end),
        (None, None) => title.contains(wanted),
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // Fails only if the process has already exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn helper_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/desktop").join(script)
}

/// Waits until `look` returns a value, and returns that value.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait::until(what, TIMEOUT, || {
        let seen = look();
        if seen.is_none() {
            std::thread::sleep(PAUSE);
        }
        seen
    })
}
