//! A terminal with a program, and a user who types and reads.

use crate::client::TIMEOUT;
use ironcurtain_testkit::wait::{eventually, until};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub struct Terminal {
    own: File,
    /// The session of the program started last.
    session: RefCell<Arc<Mutex<Option<Leader>>>>,
    shown: Arc<Mutex<Vec<u8>>>,
    /// Number of output bytes that the test has already matched.
    seen: usize,
}

/// Script of the session leader. It outlives the program, because the terminal is reset when its session ends.
const LEADER: &str = r#"
trap : INT QUIT HUP
sh -c 'echo $$ > "$0/pid"; exec "$@"' "$@"
echo $? > "$1/code"
mv "$1/code" "$1/status"
exec sleep 1000
"#;

/// Leader of a terminal's session. Dropping it ends the session.
struct Leader(Child);

/// A program on a terminal. Dropping it ends the session.
pub struct Started {
    session: Arc<Mutex<Option<Leader>>>,
    notes: TempDir,
}

/// Opens the user's side of a new terminal.
pub fn open() -> OwnedFd {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&own).unwrap();
    unlockpt(&own).unwrap();
    own
}

/// Opens a program's side of a terminal.
pub fn program_side(terminal: impl AsFd) -> OwnedFd {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    ioctl_tiocgptpeer(terminal, flags).unwrap()
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> Self {
        let own = open();
        let mut reading = File::from(own.try_clone().unwrap());
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let noted = Arc::downgrade(&shown);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let read = reading.read(&mut piece);
                let Some(shown) = noted.upgrade() else { return };
                match read {
                    Ok(count) => shown.lock().unwrap().extend(&piece[..count]),
                    // No process has the terminal open right now.
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        let terminal = Self { own: own.into(), session: RefCell::default(), shown, seen: 0 };
        terminal.resize(rows, columns);
        terminal
    }

    /// Starts a program in the terminal's foreground. The session of the previous program ends first, because only
    /// root can take a terminal from a session.
    pub fn start(&self, program: &Command) -> Started {
        self.session.borrow().lock().unwrap().take();
        let notes = tempfile::tempdir().unwrap();
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "sh", "-c", LEADER, "leader"]).arg(notes.path());
        leader.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            leader.env(name, value.unwrap());
        }
        leader.env("TERM", "xterm-256color").env("PS1", "$ ");
        if let Some(folder) = program.get_current_dir() {
            leader.current_dir(folder);
        }
        let other = || program_side(&self.own);
        let leader = leader.stdin(other()).stdout(other()).stderr(other()).spawn().unwrap();
        let session = Arc::new(Mutex::new(Some(Leader(leader))));
        self.session.replace(session.clone());
        Started { session, notes }
    }

    pub fn types(&mut self, text: &str) {
        self.own.write_all(text.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.own, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
            .unwrap();
    }

    /// Waits until the terminal shows this text after the previously matched text. Returns the output between the two
    /// texts.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> String {
        let found = || {
            let shown = self.shown.lock().unwrap();
            let rest = String::from_utf8_lossy(&shown[self.seen..]).into_owned();
            rest.find(text).map(|at| rest[..at].to_owned())
        };
        let deadline = std::time::Instant::now() + TIMEOUT;
        let between = loop {
            if let Some(between) = found() {
                break between;
            }
            assert!(std::time::Instant::now() < deadline, "`{text}` is not shown: {}", self.all());
            std::thread::sleep(Duration::from_millis(2));
        };
        self.seen += between.len() + text.len();
        between
    }

    /// Waits until the terminal shows these texts after the previously matched text, in any order. Returns the output up
    /// to the end of the last one.
    #[track_caller]
    pub fn shows_all(&mut self, texts: &[&str]) -> String {
        let deadline = std::time::Instant::now() + TIMEOUT;
        loop {
            let rest = self.rest();
            let ends = texts.iter().map(|text| rest.find(text).map(|at| at + text.len()));
            if let Some(ends) = ends.collect::<Option<Vec<_>>>() {
                let end = ends.into_iter().max().unwrap_or(0);
                self.seen += end;
                return rest[..end].to_owned();
            }
            assert!(std::time::Instant::now() < deadline, "{texts:?} are not shown: {}", self.all());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns all output so far.
    pub fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Returns the output after the last matched text.
    pub fn rest(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()[self.seen..]).into_owned()
    }

    pub fn modes(&self) -> Termios {
        tcgetattr(&self.own).unwrap()
    }

    pub fn is_raw(&self) -> bool {
        !self.modes().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the terminal has these modes.
    #[track_caller]
    pub fn has_modes(&self, expected: &Termios) {
        let same = |one: &Termios, other: &Termios| {
            (one.input_modes, one.output_modes, one.local_modes)
                == (other.input_modes, other.output_modes, other.local_modes)
        };
        eventually("the terminal's modes are restored", TIMEOUT, || same(&self.modes(), expected));
    }

    #[track_caller]
    pub fn becomes_raw(&self) {
        eventually("the terminal is raw", TIMEOUT, || self.is_raw());
    }
}

impl Started {
    /// Waits until the program has started and returns its process id.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        until("the program runs", TIMEOUT, || self.note("pid"))
    }

    /// Returns the exit status, or 128 plus the signal number. Returns `None` while the program is running.
    pub fn status(&self) -> Option<u32> {
        self.note("status")
    }

    /// Waits until the program has exited and returns the exit status.
    #[track_caller]
    pub fn wait(&self) -> u32 {
        until("the program exits", TIMEOUT, || self.status())
    }

    fn note(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.notes.path().join(name)).ok()?.trim().parse().ok()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.session.lock().unwrap().take();
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
