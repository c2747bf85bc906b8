//! Questions from a remote machine, shown on the desktop that is attached to it. Both machines run the real daemon, and
//! the real `ironcurtain attach` and `ironcurtain relay` connect them.

mod background;
mod between;
mod desktops;
mod pairing;
mod peer;
mod permitted;
mod transports;

use crate::client::{Client, TIMEOUT};
use crate::scripted_user::{Next, ScriptedUser};
use crate::test_home::TestHome;
use crate::world::{World, eventually, is_root, programs};
use ironcurtain_consent::{Lifetime, NoFrontEnd, Reach};
use ironcurtain_daemon::{Daemon, DaemonOptions, start};
use ironcurtain_protocol::{GrantView, PromptLocation, Reply, Request, StatusView};
use ironcurtain_testkit::wait::until;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Denial reason of calls that were pending when the connection was lost.
const LOST: &str = "the connection to the desktop that answers questions was lost";

/// Error message of `ironcurtain pair` when no desktop is waiting for a code.
const NOT_WAITING: &str = "no desktop is waiting for a code";

/// Remote machine whose daemon has no local user to ask.
struct Remote {
    place: TestHome,
    daemon: Daemon,
    runtime: Option<Runtime>,
}

impl Remote {
    fn new() -> Self {
        Self::of(TestHome::new(|_| {}))
    }

    fn of(place: TestHome) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let options = DaemonOptions { home: place.home.clone(), programs: programs(), allow_root: is_root() };
        let daemon = runtime.block_on(start(options, Arc::new(NoFrontEnd))).unwrap();
        Self { place, daemon, runtime: Some(runtime) }
    }

    fn request(&self, request: Request) -> Reply {
        self.runtime.as_ref().unwrap().block_on(self.daemon.request(request))
    }

    fn status(&self) -> StatusView {
        match self.request(Request::Status) {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    fn grants(&self) -> Vec<GrantView> {
        match self.request(Request::Grants) {
            Reply::Grants(grants) => grants,
            other => panic!("{other:?}"),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.place.home.audit().join("audit.jsonl")).unwrap()
    }

    fn connect(&self) -> Client {
        Client::connect(&programs(), &self.place.ours(), "filesystem")
    }

    /// Returns the command that runs the relay on this machine.
    fn relay(&self) -> Vec<String> {
        relay(&self.place.ours())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let runtime = self.runtime.take().unwrap();
        runtime.block_on(async {
            self.daemon.request(Request::Shutdown).await;
            self.daemon.ended().await;
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Runs `ironcurtain` on a machine. Returns what it prints, or its error.
fn run(home: &Path, words: &[&str]) -> Result<String, String> {
    let mut ironcurtain = Command::new(programs().join("ironcurtain"));
    let output = ironcurtain.args(words).env("IRONCURTAIN_HOME", home).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Types the desktop's code on a remote machine once `ironcurtain pair` accepts a code. Returns the code that the
/// command prints, or its error.
#[track_caller]
fn pair(remote: &Path, code: &str) -> Result<String, String> {
    let typed = until("a pairing waits for the code", TIMEOUT, || match run(remote, &["pair", code]) {
        Err(refused) if refused.contains(NOT_WAITING) => None,
        done => Some(done),
    });
    typed.map(|said| said.trim().rsplit(' ').next().unwrap().to_owned())
}

fn relay(home: &Path) -> Vec<String> {
    let program = programs().join("ironcurtain");
    let words = [
        "env".to_owned(),
        format!("IRONCURTAIN_HOME={}", home.display()),
        program.display().to_string(),
        "relay".to_owned(),
    ];
    words.to_vec()
}

/// A running `ironcurtain attach`.
struct Attach {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Attach {
    /// Starts `ironcurtain attach` on a desktop, with a user who types nothing.
    fn start(desktop: &Path, host: &str, command: &[String]) -> Self {
        Self::waiting(desktop, host, command).0
    }

    /// Starts `ironcurtain attach` on a desktop, with a user who types the codes on both machines.
    fn pairing(desktop: &Path, host: &str, command: &[String], remote: &Path) -> Self {
        let (attach, stdin) = Self::waiting(desktop, host, command);
        attach.enters_codes(stdin, remote)
    }

    /// Starts `ironcurtain attach` on a desktop. The user types into the returned stream.
    fn waiting(desktop: &Path, host: &str, command: &[String]) -> (Self, ChildStdin) {
        let mut attach = Command::new(programs().join("ironcurtain"));
        attach.args(["attach", host, "--"]).args(command).env("IRONCURTAIN_HOME", desktop);
        Self::spawn(attach)
    }

    /// Runs a command from the guide on a desktop, with a user who types the codes on both machines. `bin` is the first
    /// folder of `PATH`.
    fn typed(desktop: &Path, words: &[&str], bin: &Path, remote: &Path) -> Self {
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut attach = Command::new(programs().join("ironcurtain"));
        attach.args(words).env("IRONCURTAIN_HOME", desktop).env("PATH", path);
        let (attach, stdin) = Self::spawn(attach);
        attach.enters_codes(stdin, remote)
    }

    fn enters_codes(self, mut stdin: ChildStdin, remote: &Path) -> Self {
        let code = pair(remote, &self.code()).unwrap();
        writeln!(stdin, "{code}").unwrap();
        self
    }

    fn spawn(mut attach: Command) -> (Self, ChildStdin) {
        attach.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = attach.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (lines, keep) = (BufReader::new(child.stderr.take().unwrap()).lines(), said.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                keep.lock().unwrap().push(line);
            }
        });
        (Self { child, said }, stdin)
    }

    /// Waits for the desktop's code.
    #[track_caller]
    fn code(&self) -> String {
        self.says("ironcurtain pair ", 1);
        let said = self.said();
        let code = said.iter().find_map(|line| line.split_once("ironcurtain pair ")?.1.get(..6));
        code.unwrap().to_owned()
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn times(&self, words: &str) -> usize {
        self.said().iter().filter(|line| line.contains(words)).count()
    }

    /// Waits until `ironcurtain attach` has attached `count` times.
    #[track_caller]
    fn attached(&self, count: usize) {
        self.says("attached to", count);
    }

    #[track_caller]
    fn says(&self, words: &str, count: usize) {
        let deadline = std::time::Instant::now() + TIMEOUT;
        while self.times(words) < count {
            assert!(std::time::Instant::now() < deadline, "no `{words}` in {:#?}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until `ironcurtain attach` gives up, and asserts the reason.
    #[track_caller]
    fn gives_up(mut self, because: &str) {
        let status = until("attach gives up", TIMEOUT, || self.child.try_wait().unwrap());
        assert!(!status.success(), "{:?}", self.said());
        self.says(because, 1);
    }

    /// Returns the process ids of the programs that carry the connection, such as the relay.
    fn transport(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let pids = std::fs::read_to_string(children).unwrap();
        pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Attach {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Attaches a desktop to a remote machine as `devbox`.
fn attach(desktop: &World, remote: &Remote) -> Attach {
    let (ours, relay) = (desktop.ours(), remote.relay());
    let attach = if desktop.home.remotes().exists() {
        Attach::start(&ours, "devbox", &relay)
    } else {
        Attach::pairing(&ours, "devbox", &relay, &remote.place.ours())
    };
    attach.attached(1);
    attach
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn file(remote: &Remote, name: &str) -> PathBuf {
    remote.place.file(name, "remote content")
}

#[test]
fn the_desktop_is_asked_and_the_remote_machine_grants_and_enforces() {
    let (desktop, remote) = (World::new(), Remote::new());
    let _attach = attach(&desktop, &remote);
    assert_eq!(remote.status().prompt_location, PromptLocation::Desktop);
    let (first, other) = (file(&remote, "docs/first.txt"), file(&remote, "docs/other.txt"));
    let mut agent = remote.connect();
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    assert_eq!(agent.read(&first).ok(), "remote content");
    let asked = desktop.user.asked();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.host.as_deref(), Some("devbox"));
    assert!(question.client.name.starts_with("devbox: "), "{}", question.client.name);
    assert!(question.client.chain.is_empty() && !question.fits_a_batch);
    // The grant exists only on the remote machine. It covers the next call, but no other file.
    assert_eq!((remote.grants().len(), desktop.grants().len()), (1, 0));
    agent.read(&first).ok();
    assert_eq!(desktop.user.count(), 0);
    desktop.user.will(Next::Deny);
    agent.read(&other).refused("the user denied this call");
    assert_eq!(desktop.user.asked().len(), 1);
    assert!(desktop.log().contains("a question of devbox: read "), "{}", desktop.log());
    assert!(remote.log().contains("answers questions from now on"));
}

#[test]
fn a_lost_connection_denies_pending_calls_and_is_opened_again() {
    let (desktop, remote) = (World::new(), Remote::new());
    let attach = attach(&desktop, &remote);
    let (first, other) = (file(&remote, "docs/first.txt"), file(&remote, "docs/other.txt"));
    let mut agent = remote.connect();
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    agent.read(&first).ok();
    desktop.user.will(Next::Ignore);
    let pending = agent.begin_call("read_text_file", serde_json::json!({ "path": other }));
    eventually("the question is shown", TIMEOUT, || desktop.user.count() == 2);
    attach.transport().into_iter().for_each(kill);
    agent.outcome(pending).refused(LOST);
    eventually("the dialog is closed", TIMEOUT, || desktop.user.withdrawn().len() == 1);
    // The session continues with its existing grants.
    assert_eq!(agent.read(&first).ok(), "remote content");
    attach.attached(2);
    assert_eq!(attach.times("ironcurtain pair "), 1, "{:?}", attach.said());
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(agent.read(&other).ok(), "remote content");
    drop(attach);
    eventually("the desktop is detached", TIMEOUT, || {
        remote.status().prompt_location == PromptLocation::Nobody
    });
    agent.read(&other).refused("");
}

#[test]
fn the_desktop_limits_the_questions_of_a_remote_machine() {
    // The remote machine allows 1000 questions per minute. The desktop has the default limit.
    let place = TestHome::new(|home| std::fs::write(home.home.config.join("config.json"), "{}").unwrap());
    let (desktop, remote) = (World::of(place, programs(), ScriptedUser::default()), Remote::new());
    let _attach = attach(&desktop, &remote);
    let mut agent = remote.connect();
    for n in 0..5 {
        agent.read(&file(&remote, &format!("docs/{n}.txt"))).refused("the user denied this call");
    }
    agent.read(&file(&remote, "docs/6.txt")).refused("too many questions");
    assert_eq!(desktop.user.asked().len(), 5);
}

#[test]
fn lockdown_on_the_desktop_denies_remote_questions() {
    let (desktop, remote) = (World::new(), Remote::new());
    let _attach = attach(&desktop, &remote);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.request(Request::Lockdown { on: true, end_servers: false });
    agent.read(&path).refused("lockdown");
    assert_eq!(desktop.user.count(), 0);
    desktop.request(Request::Lockdown { on: false, end_servers: false });
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
}
