//! `attach`: lets the user answer a remote machine's questions on this desktop.
//!
//! - Only connects the two trusted processes. They encrypt all data that passes through this process.
//! - Reconnects automatically until the user stops it or the remote machine refuses the desktop.

use crate::arguments::AttachArguments;
use crate::connection::{CodeSender, LinkedConnection};
use crate::text_lines::TextLines;
use anyhow::{Context, bail};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{AttachNote, Purpose};
use ironcurtain_remote::PairedKeys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Delay before the first reconnection attempt. Doubles with each attempt, up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Interval for checking that a pairing is still waiting for a code.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Program and first argument on the remote machine.
const RELAY: [&str; 2] = ["ironcurtain", "relay"];

/// Outcome of one connection.
struct ConnectionEnd {
    reason: String,
    is_final: bool,
    /// Time for which the desktop was attached.
    attached: Duration,
}

/// Attaches to a remote machine, or forgets the pairing with it.
pub fn perform(options: AttachArguments) -> anyhow::Result<ExitCode> {
    let AttachArguments { host, forget, command } = options;
    if forget {
        if !PairedKeys::new(Home::from_env()?.remotes()).remove(&host)? {
            bail!("this desktop is not paired with `{host}`");
        }
        print_line(&format!("forgot {host}; `ironcurtain attach {host}` pairs again"));
        return Ok(ExitCode::SUCCESS);
    }
    let command = if command.is_empty() { transport(&host)? } else { command };
    let (mut pause, mut typed) = (MIN_PAUSE, TypedCode::default());
    loop {
        let end = connect(&host, &command, &mut typed);
        if typed.discard() {
            // The prompt does not end with a line break.
            let _ = writeln!(io::stderr());
        }
        let end = end?;
        if end.is_final {
            bail!("{}", end.reason);
        }
        // A shorter connection does not reset the delay, because the remote machine can close a connection at any
        // time.
        if end.attached >= MAX_PAUSE {
            pause = MIN_PAUSE;
        }
        print_line(&format!("{host}: {}; connecting again in {} s", end.reason, pause.as_secs()));
        thread::sleep(pause);
        pause = pause.saturating_mul(2).min(MAX_PAUSE);
    }
}

/// Returns the command that runs the relay on a remote machine, in a container or in a WSL distribution.
fn transport(host: &str) -> anyhow::Result<Vec<String>> {
    let (program, options, name): (_, &[_], _) = if let Some(name) = host.strip_prefix("docker:") {
        ("docker", &["exec", "-i"], name)
    } else if let Some(name) = host.strip_prefix("wsl:") {
        ("wsl.exe", &["-d"], name)
    } else {
        // Detects a lost connection even if the network fails silently.
        ("ssh", &["-T", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "--"], host)
    };
    if name.is_empty() || name.starts_with('-') {
        bail!("invalid host `{host}`");
    }
    let words = [program].into_iter().chain(options.iter().copied()).chain([name]).chain(RELAY);
    Ok(words.map(str::to_owned).collect())
}

/// Connects once. Returns when the connection has ended.
fn connect(host: &str, command: &[String], typed: &mut TypedCode) -> anyhow::Result<ConnectionEnd> {
    let (ours, theirs) = UnixStream::pair()?;
    let purpose = Purpose::Attach { host: host.to_owned() };
    let mut linked = match LinkedConnection::open(purpose, ours.into()) {
        Ok(linked) => linked,
        // The app may be restarting.
        Err(problem) => {
            return Ok(ConnectionEnd {
                reason: problem.to_string(),
                is_final: false,
                attached: Duration::ZERO,
            });
        }
    };
    let _transport = start(command, theirs)?;
    let mut attached_at = None::<Instant>;
    let connection_end = |reason, is_final, attached_at: Option<Instant>| {
        let attached = attached_at.map(|attached_at| attached_at.elapsed()).unwrap_or_default();
        Ok(ConnectionEnd { reason, is_final, attached })
    };
    loop {
        match linked.next() {
            Ok(AttachNote::Code { code }) => {
                prompt(host, &code)?;
                typed.send_to(linked.code_sender()?);
            }
            Ok(AttachNote::Attached) => {
                attached_at = Some(Instant::now());
                print_line(&format!("attached to {host}: its questions are asked on this desktop"));
            }
            Ok(AttachNote::Ended { why: reason, is_final }) => {
                return connection_end(reason, is_final, attached_at);
            }
            Err(problem) => return connection_end(problem.to_string(), false, attached_at),
        }
    }
}

/// Program that connects to the remote machine. Dropping it terminates the program.
struct Transport(Child);

impl Drop for Transport {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &[String], link: UnixStream) -> anyhow::Result<Transport> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let input = OwnedFd::from(link.try_clone()?);
    let child = Command::new(program).args(arguments).stdin(input).stdout(OwnedFd::from(link)).spawn();
    child.map(Transport).with_context(|| format!("failed to start `{program}`"))
}

/// Shows the desktop's code and asks for the remote machine's code. Neither code passes through the connection,
/// because its other end is not verified yet.
fn prompt(host: &str, code: &str) -> io::Result<()> {
    print_line(&format!("pairing with {host}; run this on {host}, in a session of your own:"));
    print_line(&format!("  ironcurtain pair {code}"));
    let mut out = io::stderr();
    write!(out, "Code that it prints: ")?;
    out.flush()
}

/// Code that the user types. A thread reads the code so that the end of a pairing is shown at once. The thread reads
/// only during a pairing, because ssh may read the user's password from the same terminal.
#[derive(Default)]
struct TypedCode {
    /// Pairing that is waiting for the code.
    to: Arc<Mutex<Option<CodeSender>>>,
    reader: Option<JoinHandle<()>>,
}

impl TypedCode {
    /// Sends the next line that the user types to this pairing.
    fn send_to(&mut self, pairing: CodeSender) {
        *lock_sender(&self.to) = Some(pairing);
        let to = self.to.clone();
        self.reader = Some(thread::spawn(move || {
            while lock_sender(&to).is_some() {
                if is_typed() {
                    let mut line = String::new();
                    // At EOF, the line is empty, so the pairing is refused.
                    let _ = io::stdin().lock().read_line(&mut line);
                    if let Some(mut pairing) = lock_sender(&to).take() {
                        // Ignores the error: the pairing has ended, and the reason is shown.
                        let _ = pairing.send(line.trim().to_owned());
                    }
                }
            }
        }));
    }

    /// Stops reading. Returns `true` if the user typed no code.
    fn discard(&mut self) -> bool {
        let is_waiting = lock_sender(&self.to).take().is_some();
        // Fails only if the thread panicked.
        self.reader.take().map(JoinHandle::join);
        is_waiting
    }
}

/// Waits briefly for input. Returns `true` if a line or EOF is available.
fn is_typed() -> bool {
    let stdin = io::stdin();
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&TICK)) {
        Ok(ready) => ready > 0,
        Err(problem) => problem != rustix::io::Errno::INTR,
    }
}

fn lock_sender(to: &Mutex<Option<CodeSender>>) -> MutexGuard<'_, Option<CodeSender>> {
    to.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line for the user. A failure to write to standard error cannot be reported.
fn print_line(text: &str) {
    let mut line = TextLines::default();
    line.quoting(format_args!("ironcurtain: {text}"));
    let _ = io::stderr().write_all(line.as_str().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_argument_and_never_an_option() {
        let words = |host: &str| transport(host).map(|words| words.join(" "));
        let ssh = "ssh -T -o ServerAliveInterval=10 -o ServerAliveCountMax=3 -- u@devbox ironcurtain relay";
        assert_eq!(words("u@devbox").unwrap(), ssh);
        assert_eq!(words("docker:box").unwrap(), "docker exec -i box ironcurtain relay");
        assert_eq!(words("wsl:Debian").unwrap(), "wsl.exe -d Debian ironcurtain relay");
        for hostile in ["-oProxyCommand=id", "", "docker:--privileged", "wsl:"] {
            assert!(words(hostile).is_err(), "{hostile}");
        }
    }
}
