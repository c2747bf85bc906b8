//! A host process that an attack must not kill, change or slow down.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{scene::Scene, tools::Tools};

/// Timeout for an answer from the process.
const TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

pub(crate) struct Victim {
    child: Child,
    said: BufReader<ChildStdout>,
    /// Address of the secret in the process's memory.
    pub(crate) address: String,
    /// Scheduling parameters of the process at its start.
    terms: Vec<String>,
    /// Command that removes the process's files if the process is killed.
    forget: Command,
}

impl Victim {
    pub(crate) fn start(tools: &Tools, scene: &Scene) -> Self {
        let mut child = Command::new(&tools.probe)
            .args(["victim", &scene.secret, &scene.path("denied"), &scene.queue()])
            .env("VICTIM", &scene.secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        said.read_line(&mut address).unwrap();
        let mut words = address.split_whitespace().map(str::to_owned);
        let (Some(address), Some(messages), Some(semaphores), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            panic!("the victim did not start: {address}")
        };
        let mut forget = Command::new(&tools.probe);
        forget.args(["forget-victim", &scene.queue(), &messages, &semaphores]);
        let terms = terms(child.id());
        Self { child, said, address, terms, forget }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Describes the harm done to the process, or returns `None` if there was none.
    pub(crate) fn harm(&mut self) -> Option<String> {
        let now = terms(self.child.id());
        if now != self.terms {
            let changed = now.iter().zip(&self.terms).find(|(now, before)| now != before);
            return Some(format!("the victim is run otherwise: {changed:?}"));
        }
        let mut answer = String::new();
        let asked = writeln!(self.child.stdin.as_mut()?, "state");
        match asked.and_then(|()| self.answers()).and_then(|()| self.said.read_line(&mut answer)) {
            Ok(_) if answer == "intact\n" => None,
            Ok(_) => Some(format!("the victim is harmed: {answer:?}")),
            Err(problem) => Some(format!("the victim is harmed: {problem}")),
        }
    }

    /// Waits for an answer from the process. The answer may have arrived just before the process was stopped.
    fn answers(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(self.said.get_ref(), PollFlags::IN)];
        match poll(&mut polled, Some(&TIMEOUT))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // The process cleans up at the end of its input, unless it was stopped or killed.
        drop(self.child.stdin.take());
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
        if !self.child.wait().unwrap().success() {
            self.forget.status().unwrap();
        }
    }
}

/// Returns a process's state, scheduling parameters and limits, which other processes can change.
fn terms(pid: u32) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = read("status");
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let stat = read("stat");
    // The fields after the name in parentheses start with the state. Indexes 15 and 16 are the priority and the
    // niceness.
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<&str> = after.split(' ').collect();
    let field = |place: usize| fields.get(place).copied().unwrap_or_default().to_owned();
    let state = if matches!(field(0).as_str(), "R" | "S" | "D") { "alive".to_owned() } else { field(0) };
    let io = io_priority(pid);
    vec![
        state,
        field(15),
        field(16),
        field(38),
        line("Cpus_allowed:"),
        line("TracerPid:"),
        read("limits"),
        read("oom_score_adj"),
        read("coredump_filter"),
        io,
    ]
}

/// Returns a process's I/O priority, which only the `ionice` program shows.
fn io_priority(pid: u32) -> String {
    let said = Command::new("ionice").args(["-p", &pid.to_string()]).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}
