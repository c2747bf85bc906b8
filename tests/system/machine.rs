//! One person's machine with the trusted process as a real program, to be killed.

use crate::client::{BOUND, Client};
use crate::test_home::{Place, Prepared};
use crate::world::{eventually, is_root, programs};
use ironcurtain_daemon::Home;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

pub struct Machine {
    pub home: Home,
    daemon: Option<Child>,
    said: Arc<Mutex<String>>,
    place: Place,
}

impl Machine {
    /// A machine whose files are prepared; nothing runs yet.
    pub fn new(prepare: impl FnOnce(&Prepared)) -> Self {
        let place = Place::new(prepare);
        Self { home: place.home.clone(), daemon: None, said: Arc::default(), place }
    }

    /// Starts the trusted process, which asks on a terminal, and waits until it listens.
    pub fn start(&mut self) {
        self.spawn();
        self.listens();
    }

    /// Starts the trusted process as one that the modes of files hinder, which they do not hinder root.
    pub fn start_minding_modes(&mut self) {
        let bounded = "setpriv --bounding-set=-dac_override,-dac_read_search ";
        self.start_by(if is_root() { bounded } else { "" });
    }

    /// Starts the trusted process where the clock that nobody sets has run on for so many seconds, and the wall clock has not.
    pub fn start_later(&mut self, seconds: u64) {
        self.start_later_by(seconds, "");
    }

    /// The same by way of a command that starts it.
    pub fn start_later_by(&mut self, seconds: u64, by: &str) {
        let as_person = if is_root() { "" } else { "--map-current-user " };
        self.start_by(&format!("unshare {as_person}--time --boottime {seconds} {by}"));
    }

    /// Starts the trusted process by way of a command.
    pub fn start_by(&mut self, by: &str) {
        self.spawn_by(by);
        self.listens();
    }

    /// Starts the trusted process with the number of descriptors that a login session gives a program.
    pub fn start_with_usual_descriptors(&mut self) {
        self.start_by("prlimit --nofile=1024: ");
    }

    /// Starts the trusted process.
    pub fn spawn(&mut self) {
        self.spawn_by("");
    }

    fn listens(&self) {
        eventually("the daemon listens", BOUND, || UnixStream::connect(&self.home.socket).is_ok());
    }

    fn spawn_by(&mut self, by: &str) {
        // Ignored by the shell, so ignored by the program: a limit on file sizes is an error, not a death.
        let root = if is_root() { " --allow-root" } else { "" };
        let script = format!("trap '' XFSZ; exec {by}\"$0\" daemon --ask terminal{root}");
        let mut daemon = Command::new("sh")
            .args(["-c", &script])
            .arg(programs().join("ironcurtain"))
            .env("IRONCURTAIN_HOME", self.ours())
            .env("HOME", &self.home.person)
            .env("TMPDIR", self.place.temporary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = daemon.stdout.take().unwrap();
        let said = self.said.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n) = stdout.read(&mut piece) {
                if n == 0 {
                    return;
                }
                said.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..n]));
            }
        });
        self.daemon = Some(daemon);
    }

    /// Kills the trusted process, and gives what ran below it.
    pub fn kill(&mut self) -> Vec<Running> {
        let mut daemon = self.daemon.take().unwrap();
        let below = descendants(daemon.id());
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        below
    }

    /// Stops the trusted process where it is.
    pub fn freeze(&self) {
        kill_process(pid(self.pid()), Signal::STOP).unwrap();
    }

    /// The id of the only session, by the command's word.
    pub fn only_session(&self) -> String {
        let shown = self.command(&["sessions", "--json"]).stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
        let sessions = shown["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{shown}");
        sessions[0]["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the trusted process has ended by itself.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.daemon.take().unwrap().wait().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().id()
    }

    pub fn client(&self) -> Client {
        Client::start(&programs(), &self.ours(), "hostile")
    }

    pub fn connect(&self) -> Client {
        Client::connect(&programs(), &self.ours(), "hostile")
    }

    pub fn connect_deaf(&self) -> Client {
        Client::connect_deaf(&programs(), &self.ours(), "hostile")
    }

    /// Waits until the terminal shows this, and forgets what it showed.
    pub fn wait_until_said(&self, words: &str) {
        eventually(words, BOUND, || {
            let mut said = self.said.lock().unwrap();
            let found = said.contains(words);
            if found {
                said.clear();
            }
            found
        });
    }

    /// The person types a line.
    pub fn types(&mut self, line: &str) {
        let stdin = self.daemon.as_mut().unwrap().stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Runs the person's own command.
    pub fn command(&self, arguments: &[&str]) -> Output {
        Command::new(programs().join("ironcurtain"))
            .args(arguments)
            .env("IRONCURTAIN_HOME", self.ours())
            .env("HOME", &self.home.person)
            .output()
            .unwrap()
    }

    /// The log is whole, by the command's word.
    #[track_caller]
    pub fn verify(&self) {
        let verified = self.command(&["audit", "verify"]);
        let said = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(verified.status.success() && said.starts_with("The audit log is intact"), "{said}");
    }

    pub fn file(&self, below: &str, content: &str) -> PathBuf {
        self.place.file(below, content)
    }

    /// No file of the trusted process may grow beyond this.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid(self.pid())), Resource::Fsize, limit).unwrap();
    }

    pub fn ours(&self) -> PathBuf {
        self.place.ours()
    }

    /// The folder for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.place.temporary()
    }

    /// Nothing runs or is mounted for this machine, none of these processes is left, and no temporary file.
    #[track_caller]
    pub fn is_clean(&self, below: &[Running]) {
        assert!(!below.is_empty() || self.daemon.is_none());
        let base = self.place.base();
        eventually("every process has ended", BOUND, || {
            below.iter().all(|p| !p.is_alive()) && naming(base).is_empty()
        });
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(base.to_str().unwrap()), "{mounts}");
        let left: Vec<_> = std::fs::read_dir(self.place.temporary()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// One process, not to be mistaken for a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub pid: u32,
    began: String,
}

impl Running {
    pub fn is_alive(&self) -> bool {
        running(self.pid).is_some_and(|now| now == *self)
    }

    pub fn kill(&self) {
        kill_process(pid(self.pid), Signal::KILL).unwrap();
    }

    pub fn exe(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).unwrap_or_default()
    }
}

/// Everything that a process has started, directly or not.
pub fn descendants(of: u32) -> Vec<Running> {
    let all: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, stat(pid)?.1))).collect();
    let mut found = vec![of];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found[1..].iter().filter_map(|pid| running(*pid)).collect()
}

pub fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// Processes whose command line or environment names a directory.
fn naming(base: &Path) -> Vec<u32> {
    let base = base.to_str().unwrap().as_bytes().to_vec();
    let names = |pid: u32, file: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(base.len()).any(|w| w == base)
    };
    pids().filter(|pid| names(*pid, "cmdline") || names(*pid, "environ")).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
}

fn running(pid: u32) -> Option<Running> {
    let (state, _, began) = stat(pid)?;
    (state != "Z").then_some(Running { pid, began })
}

/// State, parent and start time.
fn stat(pid: u32) -> Option<(String, u32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.first()?.to_string(), fields.get(1)?.parse().ok()?, fields.get(19)?.to_string()))
}
