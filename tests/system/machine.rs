//! A user's machine whose daemon runs in its own process, which tests can kill.

use crate::client::{Client, TIMEOUT};
use crate::test_home::{Prepared, TestHome};
use crate::world::{eventually, is_root, programs};
use ironcurtain_config::home::Home;
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
    place: TestHome,
}

impl Machine {
    /// Creates a machine with prepared files, without starting the daemon.
    pub fn new(prepare: impl FnOnce(&Prepared)) -> Self {
        let place = TestHome::new(prepare);
        Self { home: place.home.clone(), daemon: None, said: Arc::default(), place }
    }

    /// Starts a daemon that asks on a terminal, and waits until it is listening.
    pub fn start(&mut self) {
        self.spawn();
        self.listens();
    }

    /// Starts the daemon without the capabilities that exempt root from file permissions.
    pub fn start_without_mode_exemption(&mut self) {
        let bounded = "setpriv --bounding-set=-dac_override,-dac_read_search ";
        self.start_via(if is_root() { bounded } else { "" });
    }

    /// Starts the daemon with the boot-time clock `seconds` ahead and the wall clock unchanged.
    pub fn start_with_clock_offset(&mut self, seconds: u64) {
        self.start_with_clock_offset_via(seconds, "");
    }

    /// Like [`Machine::start_with_clock_offset`], with the command prefix `by`.
    pub fn start_with_clock_offset_via(&mut self, seconds: u64, by: &str) {
        let as_person = if is_root() { "" } else { "--map-current-user " };
        self.start_via(&format!("unshare {as_person}--time --boottime {seconds} {by}"));
    }

    /// Starts the daemon with the command prefix `by`.
    pub fn start_via(&mut self, by: &str) {
        self.spawn_by(by);
        self.listens();
    }

    /// Starts the daemon with the descriptor limit of a login session.
    pub fn start_with_login_descriptor_limit(&mut self) {
        self.start_via("prlimit --nofile=1024: ");
    }

    /// Starts the daemon without waiting for it.
    pub fn spawn(&mut self) {
        self.spawn_by("");
    }

    fn listens(&self) {
        eventually("the daemon listens", TIMEOUT, || UnixStream::connect(&self.home.socket).is_ok());
    }

    fn spawn_by(&mut self, by: &str) {
        // The shell ignores SIGXFSZ and the program inherits that, so exceeding the file size limit is an error
        // instead of a fatal signal.
        let root = if is_root() { " --allow-root" } else { "" };
        let script = format!("trap '' XFSZ; exec {by}\"$0\" daemon --ask terminal{root}");
        let mut daemon = Command::new("sh")
            .args(["-c", &script])
            .arg(programs().join("ironcurtain"))
            .env("IRONCURTAIN_HOME", self.ours())
            .env("HOME", &self.home.user_home)
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

    /// Kills the daemon. Returns its former descendants.
    pub fn kill(&mut self) -> Vec<Running> {
        let mut daemon = self.daemon.take().unwrap();
        let below = descendants(daemon.id());
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        below
    }

    /// Suspends all threads of the daemon.
    pub fn freeze(&self) {
        suspend(self.pid());
    }

    /// Returns the only session's id, as `ironcurtain sessions` shows it.
    pub fn only_session(&self) -> String {
        let shown = self.command(&["sessions", "--json"]).stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
        let sessions = shown["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{shown}");
        sessions[0]["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the daemon exits on its own. Returns its exit status.
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

    pub fn connect_non_reading(&self) -> Client {
        Client::connect_non_reading(&programs(), &self.ours(), "hostile")
    }

    /// Waits until the terminal shows `words`, then discards the output so far.
    pub fn wait_for_output(&self, words: &str) {
        eventually(words, TIMEOUT, || {
            let mut said = self.said.lock().unwrap();
            let found = said.contains(words);
            if found {
                said.clear();
            }
            found
        });
    }

    /// Types a line on the terminal.
    pub fn types(&mut self, line: &str) {
        let stdin = self.daemon.as_mut().unwrap().stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Runs the `ironcurtain` command as the user.
    pub fn command(&self, arguments: &[&str]) -> Output {
        Command::new(programs().join("ironcurtain"))
            .args(arguments)
            .env("IRONCURTAIN_HOME", self.ours())
            .env("HOME", &self.home.user_home)
            .output()
            .unwrap()
    }

    /// Asserts that `ironcurtain audit verify` accepts the log.
    #[track_caller]
    pub fn verify(&self) {
        let verified = self.command(&["audit", "verify"]);
        let said = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(verified.status.success() && said.starts_with("The audit log is intact"), "{said}");
    }

    pub fn file(&self, below: &str, content: &str) -> PathBuf {
        self.place.file(below, content)
    }

    /// Sets the maximum size of files that the daemon writes. `None` removes the limit.
    pub fn limit_file_size(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid(self.pid())), Resource::Fsize, limit).unwrap();
    }

    pub fn ours(&self) -> PathBuf {
        self.place.ours()
    }

    /// Returns the folder for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.place.temporary()
    }

    /// Asserts that all processes in `below` have exited, and that no process, mount or temporary file of this
    /// machine remains.
    #[track_caller]
    pub fn assert_clean(&self, below: &[Running]) {
        assert!(!below.is_empty() || self.daemon.is_none());
        let base = self.place.base();
        eventually("every process has ended", TIMEOUT, || {
            below.iter().all(|p| !p.is_alive()) && processes_naming(base).is_empty()
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

/// A process, identified by its id and start time, because ids are reused.
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

    pub fn command_line(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default()
    }

    pub fn exe(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).unwrap_or_default()
    }
}

/// Returns `true` if the process is in an uninterruptible wait that even SIGKILL does not end.
pub fn is_uninterruptible(process: &Running) -> bool {
    process.is_alive() && stat(process.pid).is_some_and(|(state, ..)| state == "D")
}

/// Returns the control groups of a trusted process's sandboxes, or none if the machine does not delegate control
/// groups.
pub fn sandbox_groups(trusted: u32) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point =
        table.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let groups = std::fs::read_to_string(format!("/proc/{trusted}/cgroup")).unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let (Some(point), Some(own)) = (point, own) else { return vec![] };
    let own = Path::new(point).join(own);
    let around = if own.ends_with("trusted") { own.parent().unwrap() } else { return vec![] };
    let entries = std::fs::read_dir(around).unwrap().map(|entry| entry.unwrap().path());
    let name = format!("sandbox-{trusted}-");
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&name)).collect()
}

/// Returns all descendants of a process.
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

/// Returns the processes below a process that run a program, given by its path.
pub fn running_below(of: u32, program: &str) -> Vec<Running> {
    let program = Path::new(program).canonicalize().unwrap();
    descendants(of).into_iter().filter(|one| one.exe() == program).collect()
}

/// Returns `true` if there is a shell below a process, and all of them are stopped.
pub fn are_shells_stopped(below: u32) -> bool {
    let shells = running_below(below, "/bin/sh");
    !shells.is_empty() && shells.iter().all(|shell| is_stopped(shell.pid))
}

pub fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// Returns the processes whose command line or environment contains this path.
fn processes_naming(base: &Path) -> Vec<u32> {
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

/// Returns a process's state, parent and start time.
fn stat(pid: u32) -> Option<(String, u32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.first()?.to_string(), fields.get(1)?.parse().ok()?, fields.get(19)?.to_string()))
}

/// Suspends a process and waits until all its threads are stopped, because `kill` returns earlier.
pub fn suspend(process: u32) {
    kill_process(pid(process), Signal::STOP).unwrap();
    eventually("every thread is stopped", TIMEOUT, || is_stopped(process));
}

/// Returns `true` if every thread of the process is stopped.
pub fn is_stopped(process: u32) -> bool {
    let is_stopped = |thread: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat"));
        // A thread that has exited counts as stopped.
        stat.ok().is_none_or(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 'Z'])))
    };
    std::fs::read_dir(format!("/proc/{process}/task")).unwrap().all(is_stopped)
}
