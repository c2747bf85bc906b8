//! One screen: X server, session bus, window manager, and the tools that press and read.

use ironcurtain_testkit::wait;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Bound of every wait. Generous: a busy machine is slow, and a pass does not wait for it.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

pub(crate) struct Screen {
    /// Killed last first.
    children: Vec<Child>,
    home: tempfile::TempDir,
    display: String,
    bus: String,
}

/// A control as a screen reader finds it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct Control {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) states: Vec<String>,
    /// x, y, width, height on the screen.
    pub(crate) place: [i32; 4],
}

impl Control {
    pub(crate) fn is(&self, state: &str) -> bool {
        self.states.iter().any(|one| one == state)
    }
}

impl Screen {
    pub(crate) fn start() -> Self {
        // Not in `/tmp`, of which every sandbox has its own.
        let home = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let runtime = home.path().join("run");
        for own in [&runtime, &home.path().join("tmp")] {
            std::fs::create_dir(own).expect("a directory of its own");
            std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o700)).expect("its mode");
        }
        let mut screen = Self { children: vec![], home, display: String::new(), bus: String::new() };
        let xvfb = ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"];
        screen.display = format!(":{}", screen.first_line("Xvfb", &xvfb));
        // Where nothing says where its socket goes, it stays in `/tmp` when the bus is killed.
        let address = format!("--address=unix:path={}", runtime.join("bus").display());
        let bus = ["--session", "--nofork", "--nopidfile", "--print-address=1", &address];
        screen.bus = screen.first_line("dbus-daemon", &bus);
        screen.spawn("openbox", &[]);
        until("the window manager", || {
            screen.read("xprop", &["-root", "_NET_SUPPORTING_WM_CHECK"]).contains("window id").then_some(())
        });
        screen
    }

    /// A command with this screen's environment and nothing of ours.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a PATH"))
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .env("TMPDIR", self.home.path().join("tmp"))
            .env("IRONCURTAIN_HOME", self.home.path().join("ironcurtain"))
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus)
            .env("GSETTINGS_BACKEND", "memory")
            .env("LANG", "C.UTF-8")
            .env("GDK_BACKEND", "x11")
            .current_dir(self.home.path());
        command
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts a program that lives as long as the screen.
    pub(crate) fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let child = self.command(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.children.push(child.unwrap_or_else(|error| panic!("{program} is needed: {error}")));
    }

    /// Starts a program that lives as long as the screen, and waits for the first line it writes.
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

    /// The output of a program, whether or not it succeeds.
    pub(crate) fn read(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn xdotool(&self, arguments: &[&str]) -> String {
        self.read("xdotool", arguments)
    }

    pub(crate) fn key(&self, key: &str) {
        self.xdotool(&["key", "--clearmodifiers", key]);
    }

    pub(crate) fn click(&self, control: &Control) {
        let [x, y, width, height] = control.place;
        let (x, y) = ((x + width / 2).to_string(), (y + height / 2).to_string());
        self.xdotool(&["mousemove", &x, &y, "click", "1"]);
    }

    /// The window whose title matches, once it can be seen.
    pub(crate) fn window(&self, title: &str) -> String {
        until(&format!("the window {title}"), || {
            let found = self.xdotool(&["search", "--onlyvisible", "--name", title]);
            found.lines().last().filter(|id| !id.is_empty()).map(str::to_owned)
        })
    }

    /// Gives a window the keyboard, as the person does.
    pub(crate) fn activate(&self, window: &str) {
        self.xdotool(&["windowactivate", window]);
        self.is_focused(window);
    }

    /// Waits until a window is in front and has the keyboard. It is in front first: a key in between goes to another one.
    pub(crate) fn is_focused(&self, window: &str) {
        until("the focus", || {
            let active = self.xdotool(&["getactivewindow"]) == window;
            (active && self.xdotool(&["getwindowfocus"]) == window).then_some(())
        });
    }

    /// Everything a screen reader finds in the windows whose title matches.
    pub(crate) fn controls(&self, title: &str) -> Vec<Control> {
        let lines = self.helper("accessible.py", &["list", title]);
        lines.lines().map(|line| serde_json::from_str(line).expect("a control")).collect()
    }

    /// The control of that role and name, once it is there.
    pub(crate) fn control(&self, title: &str, role: &str, name: &str) -> Control {
        until(&format!("the {role} {name}"), || {
            self.controls(title).into_iter().find(|one| one.role == role && one.name == name)
        })
    }

    /// Presses a control, as a screen reader does.
    pub(crate) fn press(&self, title: &str, role: &str, name: &str) {
        until(&format!("press the {role} {name}"), || {
            (self.helper("accessible.py", &["press", title, role, name]) == "done").then_some(())
        });
    }

    pub(crate) fn helper(&self, script: &str, arguments: &[&str]) -> String {
        let path = helper_path(script);
        let mut all = vec![path.to_str().expect("a plain path")];
        all.extend(arguments);
        self.read("/usr/bin/python3", &all)
    }

    /// Saves a picture of the screen where `IRONCURTAIN_PICTURES` says, for people to look at.
    pub(crate) fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("IRONCURTAIN_PICTURES") {
            let file = PathBuf::from(folder).join(format!("{name}.png"));
            self.read("import", &["-window", "root", file.to_str().expect("a plain path")]);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn helper_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/desktop").join(script)
}

/// Waits for something that can be seen.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait::until(what, BOUND, look)
}
