//! Tests served views: a sandboxed shell works on files that are opened only with permission.

mod escape;
mod folders;
mod hostile;
mod mounting;
mod posix;
mod random;
mod reading;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver},
    },
    thread,
    time::Instant,
};

use ironcurtain_sandbox::{
    KillHandle, LaunchedRun, Mount, MountAccess, SandboxEvent, SandboxExit, Spec, View,
    client::ControlClient,
    file_access::{AccessAnswer, FileAccess, FromView, PermittedAccess, ToView},
    launch_run,
    run_link::RunLink,
};

use crate::harness::{Fixture, TIMEOUT, eventually, supervisor};

/// Decides whether to allow an access. `None` leaves the question unanswered.
type Decide = dyn Fn(&str, FileAccess) -> Option<bool> + Send;

/// Returns the answer to a question. `None` leaves the question unanswered.
type AnswerAccess = dyn Fn(&str, FileAccess) -> Option<AccessAnswer> + Send;

/// Sandboxed shell with a served view of the test directory.
struct Shell {
    fixture: Fixture,
    stdin: Option<File>,
    stdout: BufReader<File>,
    view: UnixStream,
    control: ControlClient,
    asked: Arc<Mutex<Vec<(String, FileAccess)>>>,
    reads: Arc<Mutex<Vec<String>>>,
    applied: Receiver<u64>,
    reserved: Receiver<u64>,
    ended: Receiver<SandboxExit>,
    kill: KillHandle,
    supervisor: u32,
    _link: RunLink,
}

impl Shell {
    /// Starts a shell. Questions for which `decide` returns `None` stay unanswered.
    fn start(fixture: Fixture, mounts: &[&str], decide: Box<Decide>) -> Self {
        let once = |allowed| if allowed { AccessAnswer::Once } else { AccessAnswer::Denied };
        Self::answered(fixture, mounts, Box::new(move |path, access| decide(path, access).map(once)))
    }

    /// Starts a shell whose questions are answered by `answer`.
    fn answered(fixture: Fixture, mounts: &[&str], answer: Box<AnswerAccess>) -> Self {
        let place_path = fixture.dir.path().to_str().unwrap().to_owned();
        let spec = Spec {
            view: View::Served {
                session_dir: None,
                folders: vec![place_path.clone()],
                hidden: vec![fixture.path("secret"), fixture.path("secret.txt")],
                programs: vec![],
                sockets: vec![],
            },
            cwd: Some(place_path.clone()),
            home: Some(place_path),
            mounts: mounts.iter().map(|path| Mount::new(*path, MountAccess::ReadWrite)).collect(),
            state_dir: state(&fixture),
            ..fixture.spec(&["/bin/sh"])
        };
        let (stdin_theirs, stdin) = std::io::pipe().unwrap();
        let (stdout, stdout_theirs) = std::io::pipe().unwrap();
        let streams = [stdin_theirs.into(), stdout_theirs.try_clone().unwrap().into(), stdout_theirs.into()];
        let (end, ended) = mpsc::channel();
        let (link, inner) = RunLink::pair().unwrap();
        link.begin(None).unwrap();
        let launched =
            launch_run(&spec, &supervisor(), streams, inner, move |how| _ = end.send(how)).unwrap();
        let LaunchedRun { control, view, kill, pid, .. } = launched;
        let mut control = ControlClient::new(control, TIMEOUT).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (apply, applied) = mpsc::channel();
        let (reserve, reserved) = mpsc::channel();
        let reads = Arc::new(Mutex::new(Vec::new()));
        let (reading, noted, noted_reads) = (view.try_clone().unwrap(), asked.clone(), reads.clone());
        thread::spawn(move || {
            for line in BufReader::new(&reading).lines() {
                match serde_json::from_str(&line.unwrap()).unwrap() {
                    FromView::Ask { id, path, access, .. } => {
                        let answer = answer(&path, access);
                        noted.lock().unwrap().push((path.clone(), access));
                        if let Some(AccessAnswer::Permitted) = answer {
                            tell(&reading, &ToView::Permit(PermittedAccess { path, access }));
                        }
                        if let Some(answer) = answer {
                            tell(&reading, &ToView::Answer { id, answer });
                        }
                    }
                    FromView::Withdraw { .. } => {}
                    FromView::Read { path } => noted_reads.lock().unwrap().push(path),
                    // Ignores the error: not every test waits for the reservation.
                    FromView::Reserved { number } => _ = reserve.send(number),
                    FromView::Applied { version, complete } => {
                        assert!(complete);
                        // Ignores the error: not every test waits for the permissions.
                        let _ = apply.send(version);
                    }
                }
            }
        });
        assert_eq!(control.event().unwrap(), SandboxEvent::Started);
        let stdin = Some(File::from(std::os::fd::OwnedFd::from(stdin)));
        let stdout = BufReader::new(File::from(std::os::fd::OwnedFd::from(stdout)));
        Self {
            fixture,
            stdin,
            stdout,
            view,
            control,
            asked,
            reads,
            applied,
            reserved,
            ended,
            kill,
            supervisor: pid,
            _link: link,
        }
    }

    /// Starts a shell in which every question is answered with Allow.
    fn allowed(fixture: Fixture) -> Self {
        Self::start(fixture, &[], Box::new(|_, _| Some(true)))
    }

    /// Starts a shell in a directory that is granted except for `mounts`.
    fn granted(fixture: Fixture, mounts: &[&str]) -> Self {
        Self::answered(fixture, mounts, Box::new(|_, _| Some(AccessAnswer::Permitted)))
    }

    /// Runs a command and returns its output, followed by a line with the exit status.
    fn run(&mut self, command: &str) -> String {
        writeln!(self.stdin.as_ref().unwrap(), "{command}; echo \"status $?\"").unwrap();
        let mut output = String::new();
        while !output.lines().last().is_some_and(|line| line.contains("status ")) {
            assert_ne!(self.stdout.read_line(&mut output).unwrap(), 0, "the shell has exited: {output}");
        }
        output
    }

    fn asked(&self) -> Vec<(String, FileAccess)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Returns the files that were reported as read below readable folders.
    fn reads(&self) -> Vec<String> {
        self.reads.lock().unwrap().clone()
    }

    /// Replaces the permissions and waits until they are in force.
    fn permit(&self, version: u64, permitted: Vec<PermittedAccess>) {
        self.permit_all(version, permitted, vec![]);
    }

    /// Replaces the permissions and readable folders, and waits until they are in force.
    fn permit_all(&self, version: u64, permitted: Vec<PermittedAccess>, readable: Vec<String>) {
        let kept = readable.clone();
        tell(&self.view, &ToView::Permissions { version, permitted, readable, kept });
        assert_eq!(self.applied.recv_timeout(TIMEOUT).unwrap(), version);
    }

    fn path(&self, name: &str) -> String {
        self.fixture.path(name)
    }

    fn permission(&self, name: &str, access: FileAccess) -> PermittedAccess {
        PermittedAccess { path: self.path(name), access }
    }
}

fn tell(view: &UnixStream, message: &ToView) {
    let mut line = serde_json::to_vec(message).unwrap();
    line.push(b'\n');
    (&mut &*view).write_all(&line).unwrap();
}

/// Returns a state folder outside the served place.
fn state(fixture: &Fixture) -> String {
    format!("{}.state", fixture.dir.path().display())
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Ignores the error: the folder does not exist if no sandbox was created.
        let _ = fs::remove_dir_all(state(&self.fixture));
    }
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    for name in ["notes.txt", "docs/a", "docs/b", "secret/key", "work/own"] {
        fixture.file(name);
    }
    fixture
}

#[test]
fn file_metadata_needs_no_permission_and_is_accurate() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
    assert_eq!(shell.run("ls"), "docs\nnotes.txt\nsession\nwork\nstatus 0\n");
    assert_eq!(
        shell.run("ls docs; [ -f notes.txt ] && find . -type f | sort"),
        format!("a\nb\n./docs/a\n./docs/b\n./notes.txt\n./work/own\nstatus 0\n")
    );
    assert_eq!(shell.run("stat -c %s notes.txt"), "9\nstatus 0\n");
    let hidden = shell.run("ls secret 2>&1; cat secret/key 2>&1");
    assert_eq!(hidden.matches("No such file or directory").count(), 2, "{hidden}");
    assert_eq!(shell.asked(), []);
}

#[test]
fn a_read_waits_for_the_answer_and_then_succeeds() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|path, _| Some(path.ends_with("notes.txt"))));
    assert_eq!(shell.run("cat notes.txt"), "notes.txtstatus 0\n");
    assert_eq!(shell.asked(), [(shell.path("notes.txt"), FileAccess::Read)]);
    // Tests a path in a different folder, a relative path, and a path through a folder's descriptor.
    let denied = shell.run("cd docs && cat ./a 2>&1");
    assert!(denied.contains("Permission denied") && denied.ends_with("status 1\n"), "{denied}");
    assert_eq!(shell.run("cat ../notes.txt; cd .."), "notes.txtstatus 0\n");
    assert_eq!(shell.asked().len(), 2);
}

#[test]
fn a_permission_is_used_without_asking_until_it_is_revoked() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
    shell.permit(1, vec![shell.permission("docs/a", FileAccess::Read)]);
    assert_eq!(shell.run("cat docs/a"), "docs/astatus 0\n");
    // The descriptor stays open while the permission is revoked.
    assert_eq!(shell.run("exec 7< docs/a"), "status 0\n");
    assert_eq!(shell.asked(), []);
    shell.permit(2, vec![]);
    let held = shell.run("cat <&7 2>&1");
    assert!(held.contains("Input/output error"), "{held}");
    let again = shell.run("cat docs/a 2>&1");
    assert!(again.contains("Permission denied"), "{again}");
    assert_eq!(shell.asked(), [(shell.path("docs/a"), FileAccess::Read)]);
}

#[test]
fn writing_creates_the_real_file_only_after_the_answer() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|path, _| Some(!path.contains("no"))));
    assert_eq!(shell.run("echo new > docs/new && cat docs/new"), "new\nstatus 0\n");
    assert_eq!(fs::read_to_string(shell.path("docs/new")).unwrap(), "new\n");
    let denied = shell.run("echo x > docs/no 2>&1; ls docs");
    assert_eq!(
        (denied.ends_with("a\nb\nnew\nstatus 0\n"), fs::exists(shell.path("docs/no")).unwrap()),
        (true, false)
    );
    assert_eq!(shell.run("mkdir -p x/y && echo deep > x/y/z && cat x/y/z"), "deep\nstatus 0\n");
    assert_eq!(fs::read_to_string(shell.path("x/y/z")).unwrap(), "deep\n");
    assert_eq!(shell.run("echo more >> docs/a; cat docs/a"), "docs/amore\nstatus 0\n");
    assert_eq!(shell.run("mv docs/b docs/c && rm docs/c; ls docs"), "a\nnew\nstatus 0\n");
    assert!(!fs::exists(shell.path("docs/b")).unwrap());
}

#[test]
fn the_mounted_folder_needs_no_permission() {
    let fixture = fixture();
    let work = fixture.path("work");
    let mut shell = Shell::start(fixture, &[&work], Box::new(|_, _| Some(false)));
    assert_eq!(
        shell.run("cd work; cat own; echo 1 > made; cat made; ls"),
        "work/own1\nmade\nown\nstatus 0\n"
    );
    let outside = shell.run("cat ../notes.txt 2>&1");
    assert!(outside.contains("Permission denied"), "{outside}");
    assert_eq!(shell.asked().len(), 1);
}

#[test]
fn a_signal_ends_the_wait() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| None));
    let began = Instant::now();
    assert_eq!(shell.run("timeout 1 cat notes.txt"), "status 124\n");
    assert_eq!(shell.run("timeout -s KILL 1 cat notes.txt 2>/dev/null"), "status 137\n");
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    // A waiting request does not block other programs.
    assert_eq!(shell.run("(timeout 2 cat notes.txt &) ; ls docs"), "a\nb\nstatus 0\n");
}

#[test]
fn the_sandbox_ends_although_programs_wait() {
    let mut shell = waiting();
    shell.stdin = None;
    assert_eq!(shell.ended.recv_timeout(TIMEOUT).unwrap().signal, None);
    all_programs_end(&mut shell);
}

/// Starts programs that need permission, and waits until they request it.
fn waiting() -> Shell {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| None));
    assert_eq!(shell.run("for i in 1 2 3 4; do cat notes.txt & cat docs/a & done"), "status 0\n");
    let began = Instant::now();
    while shell.asked.lock().unwrap().len() < 2 {
        assert!(began.elapsed() < TIMEOUT);
        thread::yield_now();
    }
    shell
}

/// Waits until no program in the sandbox has the shell's output open.
fn all_programs_end(shell: &mut Shell) {
    let mut stdout = shell.stdout.get_ref().try_clone().unwrap();
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        // Ignores the error: the test may already have failed.
        let _ = ended.send(());
    });
    end.recv_timeout(TIMEOUT).unwrap();
}

#[test]
fn killing_the_supervisor_ends_programs_that_wait() {
    let mut shell = waiting();
    shell.kill.kill();
    assert_eq!(shell.ended.recv_timeout(TIMEOUT).unwrap().signal, Some(9));
    all_programs_end(&mut shell);
}

#[test]
fn killing_the_process_that_serves_files_ends_the_sandbox() {
    let mut shell = waiting();
    signal(&view_process(&shell), "KILL");
    assert_eq!(shell.ended.recv_timeout(TIMEOUT).unwrap().signal, None);
    all_programs_end(&mut shell);
}

/// Returns the id of the process that serves a shell's files.
fn view_process(shell: &Shell) -> String {
    let children = format!("/proc/{0}/task/{0}/children", shell.supervisor);
    let children = fs::read_to_string(children).unwrap();
    let is_view = |pid: &&str| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').any(|word| word == "--view")
    };
    children.split_whitespace().find(is_view).unwrap().to_owned()
}

fn signal(process: &str, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, process]).status().unwrap().success());
}

#[test]
fn git_works_on_served_files() {
    let fixture = fixture();
    let repository = fixture.path("docs");
    let git = |arguments: &[&str]| {
        let status =
            Command::new("git").current_dir(&repository).args(arguments).stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "first"]);
    let mut shell = Shell::start(fixture, &[], Box::new(|_, _| Some(true)));
    assert_eq!(shell.run("cd docs; git -c safe.directory='*' status --short"), "status 0\n");
    assert_eq!(shell.run("echo 2 >> a; git -c safe.directory='*' status --short"), " M a\nstatus 0\n");
}
