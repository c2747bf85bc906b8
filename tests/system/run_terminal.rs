//! The terminal of `ironcurtain run`, with a user at the terminal and programs that control it.

mod job_control;
mod questions;

use crate::client::TIMEOUT;
use crate::machine::{Running, descendants, is_stopped, pid, running_below};
use crate::terminal::{Started, Terminal};
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Answer, Question};
use ironcurtain_protocol::{Reply, Request};
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns an `ironcurtain run` command with these options and this program.
pub fn run(ours: &Path, folder: &Path, options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("run").args(options).arg("--").args(program);
    command.current_dir(folder).env("IRONCURTAIN_HOME", ours).env("HOME", folder.parent().unwrap());
    command
}

/// A user at a terminal, in the folder `project`.
struct Desk {
    world: World,
    terminal: Terminal,
}

impl Desk {
    fn new() -> Self {
        let world = World::new();
        world.file("project/own", "own\n");
        world.file("notes.txt", "my notes\n");
        Self { world, terminal: Terminal::new(30, 100) }
    }

    fn run(&self, options: &[&str], program: &[&str]) -> Started {
        let command = run(&self.world.ours(), &self.world.path("project"), options, program);
        self.terminal.start(&command)
    }

    /// Answers the only open question, which the user has ignored so far.
    fn answer(&self, answer: impl FnOnce(&Question) -> Answer) {
        eventually("the question is open", TIMEOUT, || self.world.user.count() == 1);
        let asked = self.world.user.asked();
        let [question] = &asked[..] else { panic!("not one question: {asked:?}") };
        self.world.user.answer_late(answer(question));
    }

    /// Starts the user's shell.
    fn shell(&mut self) -> Started {
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-i"]).current_dir(self.world.path("project"));
        shell.env("IRONCURTAIN_HOME", self.world.ours()).env("HOME", &self.world.home.user_home);
        shell.env("RUN", programs().join("ironcurtain"));
        let child = self.terminal.start(&shell);
        self.terminal.shows("$ ");
        child
    }

    /// Stops the run with Ctrl-Z.
    fn stop(&mut self) {
        self.terminal.types("\x1a");
        self.terminal.shows("Stopped");
        self.terminal.shows("$ ");
    }

    /// Returns the processes of the only run that run this program.
    fn inside(&self, program: &str) -> Vec<Running> {
        eventually("the run is listed", TIMEOUT, || self.world.sessions().len() == 1);
        running_below(self.world.sessions()[0].server_pid.unwrap(), program)
    }
}

#[test]
fn a_program_has_a_terminal_of_the_users_size() {
    let mut desk = Desk::new();
    let script = "trap 'stty size; resized=1' WINCH; tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo whole; \
        : < /dev/tty && echo controlling; while [ -z \"$resized\" ]; do sleep 0.01; done; \
        read line; echo \"got $line\"; ls /proc/self/fd";
    let run = desk.run(&[], &["bash", "-c", script]);
    desk.terminal.shows("/dev/pts/0\r\n30 100\r\nwhole\r\ncontrolling\r\n");
    desk.terminal.resize(40, 120);
    desk.terminal.shows("40 120\r\n");
    desk.terminal.types("hello\n");
    // No descriptor above 2 is inherited. `ls` opens descriptor 3 itself.
    desk.terminal.shows("got hello\r\n0  1  2  3\r\n");
    assert_eq!(run.wait(), 0);
}

#[test]
fn ctrl_c_and_job_control_belong_to_the_programs_own_shell() {
    let mut desk = Desk::new();
    let before = desk.terminal.modes();
    let run = desk.run(&[], &["bash", "--norc", "--noprofile", "-i"]);
    desk.terminal.becomes_raw();
    desk.terminal.types("PS1='> '\n");
    desk.terminal.shows("> ");
    desk.terminal.types("sleep 1000; echo \"rc=$?\"\n");
    eventually("sleep runs", TIMEOUT, || {
        let supervisor = desk.world.sessions().first().and_then(|run| run.server_pid);
        let below = supervisor.map(descendants).unwrap_or_default();
        below.iter().any(|one| one.exe().ends_with("sleep"))
    });
    desk.terminal.types("\x03");
    desk.terminal.shows("> ");
    desk.terminal.types("echo \"rc=$?\"\n");
    desk.terminal.shows("rc=130");
    desk.terminal.types("sh -c 'trap \"echo again\" CONT; echo begun; while ! read a; do :; done'\n");
    desk.terminal.shows("begun\r\n");
    desk.terminal.types("\x1a");
    desk.terminal.shows("Stopped");
    desk.terminal.shows("> ");
    desk.terminal.types("fg\n");
    desk.terminal.shows("again\r\n");
    desk.terminal.types("\x03");
    desk.terminal.shows("> ");
    desk.terminal.types("exit 7\n");
    assert_eq!(run.wait(), 7);
    desk.terminal.has_modes(&before);
}

#[test]
fn ctrl_z_stops_the_run_and_fg_resumes_it() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    desk.terminal.types("\"$RUN\" run -- sh -c 'trap \"echo again\" CONT; echo ready; while ! read a; do :; done; echo \"got $a\"; exit 5'\n");
    desk.terminal.shows("\nready\r\n");
    let inside = desk.inside("/bin/sh");
    assert!(!inside.is_empty());
    for _ in 0..2 {
        desk.terminal.becomes_raw();
        desk.stop();
        assert!(inside.iter().all(|one| is_stopped(one.pid)));
        desk.terminal.types("echo outer $((40 + 2))\n");
        desk.terminal.shows("outer 42\r\n");
        desk.terminal.types("fg\n");
        desk.terminal.shows("again\r\n");
    }
    desk.terminal.types("a\n");
    desk.terminal.shows("got a\r\n");
    // In the background, the program continues until it reads input.
    desk.terminal.shows("$ ");
    desk.terminal.types("\"$RUN\" run -- sh -c 'echo first; cat; echo done' & \n");
    desk.terminal.shows("first");
    desk.terminal.types("\n");
    eventually("the background run stops", TIMEOUT, || {
        desk.terminal.types("jobs\n");
        desk.terminal.rest().contains("Stopped")
    });
    desk.terminal.types("fg\n");
    desk.terminal.becomes_raw();
    desk.terminal.types("typed\n\x04");
    desk.terminal.shows("done\r\n");
    desk.terminal.shows("$ ");
    desk.terminal.types("exit 3\n");
    assert_eq!(shell.wait(), 3);
}

#[test]
fn a_paused_run_keeps_the_terminal() {
    let mut desk = Desk::new();
    let run = desk.run(&[], &["sh", "-c", "echo ready; read a; echo \"got $a\"; read b"]);
    desk.terminal.shows("\nready\r\n");
    for _ in 0..3 {
        let inside = desk.inside("/bin/sh");
        let session = desk.world.sessions()[0].id.clone();
        assert_eq!(desk.world.request(Request::Pause { session: session.clone() }), Reply::Done);
        eventually("the program is stopped", TIMEOUT, || inside.iter().all(|one| is_stopped(one.pid)));
        assert_eq!(desk.world.request(Request::Resume { session }), Reply::Done);
        eventually("the program runs", TIMEOUT, || !inside.iter().any(|one| is_stopped(one.pid)));
    }
    desk.terminal.types("typed\n");
    desk.terminal.shows("got typed\r\n");
    // The program is stopped, but the process of `ironcurtain run` is not.
    assert!(!is_stopped(run.pid()) && desk.terminal.is_raw());
    desk.terminal.types("\n");
    assert_eq!(run.wait(), 0);
}

#[test]
fn redirected_streams_work_alongside_the_terminal() {
    let mut desk = Desk::new();
    let shell = desk.shell();
    // The program shares the terminal with the next process in the pipeline. That process receives the input.
    desk.terminal.types("\"$RUN\" run --quiet -- sh -c 'echo out; echo err >&2' | sed 's/^/piped /'\n");
    let shown = desk.terminal.shows("$ ");
    assert!(
        shown.contains("piped out\r\n") && shown.contains("err\r\n") && !shown.contains("piped err"),
        "{shown:?}"
    );
    assert!(!desk.terminal.is_raw());
    // A program that reads from its terminal receives the input.
    desk.terminal.types(
        "\"$RUN\" run --quiet -- sh -c 'read a < /dev/tty; echo \"from $a\"' < own | sed 's/^/piped /'\n",
    );
    desk.terminal.shows("piped /'\r\n");
    desk.terminal.becomes_raw();
    desk.terminal.types("keys\n");
    desk.terminal.shows("piped from keys\r\n");
    desk.terminal.shows("$ ");
    desk.terminal
        .types("\"$RUN\" run --quiet -- sh -c 'cat; test -t 0 || test -t 1 && echo terminal' < own\n");
    desk.terminal.shows("own\r\nterminal\r\n");
    // Ctrl-C reaches a program even though the user's terminal is not in raw mode. The program is not a shell, because a
    // shell that is about to start a program can miss a signal.
    desk.terminal.types("\"$RUN\" run --quiet -- perl -e '$| = 1; print \"begun\\n\"; sleep' < own | cat; echo \"over ${PIPESTATUS[0]}\"\n");
    desk.terminal.shows("begun\r\n");
    desk.terminal.types("\x03");
    desk.terminal.shows("$ ");
    desk.terminal.types("exit\n");
    shell.wait();
}

#[test]
fn all_output_arrives_before_the_run_is_over() {
    let mut desk = Desk::new();
    for _ in 0..3 {
        let run = desk.run(&["--quiet"], &["seq", "1", "50000"]);
        desk.terminal.shows("\n49999\r\n50000\r\n");
        assert_eq!(run.wait(), 0);
    }
}

/// Perl program that issues raw `ioctl` requests: it types a byte into the terminal (`TIOCSTI`), pastes (`TIOCLINUX`)
/// and reads the window size (`TIOCGWINSZ`).
const INJECT: &str = r#"
my $byte = "x";
print "sti ", (ioctl(STDIN, 0x5412, $byte) ? "done" : $!{EPERM} ? "EPERM" : $!), "\n";
my $paste = pack("C", 3);
print "linux ", (ioctl(STDIN, 0x541C, $paste) ? "done" : $!{EPERM} ? "EPERM" : $!{ENOTTY} ? "ENOTTY" : $!), "\n";
my $size = pack("S4", 0, 0, 0, 0);
print "size ", (ioctl(STDIN, 0x5413, $size) ? join(" ", (unpack("S4", $size))[0, 1]) : $!), "\n";
"#;

#[test]
fn a_program_cannot_type_into_its_terminal() {
    let mut desk = Desk::new();
    let run = desk.run(&[], &["perl", "-MErrno", "-e", INJECT]);
    desk.terminal.shows("sti EPERM\r\nlinux EPERM\r\nsize 30 100\r\n");
    assert_eq!(run.wait(), 0);
    // The same program works outside a sandbox.
    let mut perl = Command::new("perl");
    perl.args(["-MErrno", "-e", INJECT]);
    let outside = desk.terminal.start(&perl);
    desk.terminal.shows("linux ENOTTY\r\nsize 30 100\r\n");
    assert!(
        desk.terminal.all().contains("sti done"),
        "this kernel refuses TIOCSTI to everybody; the test needs one that does not"
    );
    assert_eq!(outside.wait(), 0);
}

#[test]
fn signals_reach_the_program_and_its_status_is_returned() {
    let mut desk = Desk::new();
    let before = desk.terminal.modes();
    for (signal, expected) in
        [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::USR1, 138)]
    {
        let run = desk.run(&["--quiet"], &["sleep", "1000"]);
        desk.terminal.becomes_raw();
        eventually("the run is listed", TIMEOUT, || desk.world.sessions().len() == 1);
        kill_process(pid(run.pid()), signal).unwrap();
        assert_eq!(run.wait(), expected, "{signal:?}");
        desk.terminal.has_modes(&before);
        eventually("the run is over", TIMEOUT, || desk.world.sessions().is_empty());
    }
    // A program may handle the signal itself.
    let run = desk.run(
        &["--quiet"],
        &["bash", "-c", "trap 'echo caught; exit 3' TERM; echo set; while :; do sleep 0.1; done"],
    );
    desk.terminal.shows("set\r\n");
    kill_process(pid(run.pid()), Signal::TERM).unwrap();
    desk.terminal.shows("caught\r\n");
    assert_eq!(run.wait(), 3);
    eventually("the run is over", TIMEOUT, || desk.world.sessions().is_empty());
    // Repeats the test without a terminal.
    let mut command = self::run(&desk.world.ours(), &desk.world.path("project"), &[], &["sleep", "1000"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the run is listed", TIMEOUT, || desk.world.sessions().len() == 1);
    kill_process(pid(run.id()), Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(143));
    let run = desk.run(&["--quiet"], &["/nonexistent/program"]);
    assert_eq!(run.wait(), 1);
    desk.terminal.has_modes(&before);
}
