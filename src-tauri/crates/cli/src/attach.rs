//! `attach`: answers the questions of a remote machine on this desktop.
//!
//! - Only connects the two trusted processes; everything that it carries is encrypted between them.
//! - Reconnects automatically until the user stops it or the remote machine refuses the desktop.

use crate::arguments::AttachArguments;
use crate::connection::Linked;
use crate::lines::TextLines;
use anyhow::{Context, bail};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{AttachNote, Purpose};
use ironcurtain_remote::PairedKeys;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

/// Pause before the first attempt to connect again. Doubles with each attempt, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Program and first argument on the remote machine.
const RELAY: [&str; 2] = ["ironcurtain", "relay"];

/// End of one connection.
struct ConnectionEnd {
    why: String,
    is_final: bool,
    was_attached: bool,
}

/// Attaches to a remote machine, or forgets it.
pub fn perform(options: AttachArguments) -> anyhow::Result<ExitCode> {
    let AttachArguments { host, forget, command } = options;
    if forget {
        if !PairedKeys::new(Home::from_env()?.remotes()).remove(&host)? {
            bail!("this desktop is not paired with `{host}`");
        }
        tell(&format!("forgot {host}; `ironcurtain attach {host}` pairs again"));
        return Ok(ExitCode::SUCCESS);
    }
    let command = if command.is_empty() { transport(&host)? } else { command };
    let mut pause = FIRST_PAUSE;
    loop {
        let ended = connect(&host, &command)?;
        if ended.is_final {
            bail!("{}", ended.why);
        }
        if ended.was_attached {
            pause = FIRST_PAUSE;
        }
        tell(&format!("{host}: {}; connecting again in {} s", ended.why, pause.as_secs()));
        std::thread::sleep(pause);
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
        // The connection is noticed as lost even if the network fails silently.
        ("ssh", &["-T", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "--"], host)
    };
    if name.is_empty() || name.starts_with('-') {
        bail!("invalid host `{host}`");
    }
    let words = [program].into_iter().chain(options.iter().copied()).chain([name]).chain(RELAY);
    Ok(words.map(str::to_owned).collect())
}

/// Connects once. Returns when the connection has ended.
fn connect(host: &str, command: &[String]) -> anyhow::Result<ConnectionEnd> {
    let (ours, theirs) = UnixStream::pair()?;
    let purpose = Purpose::Attach { host: host.to_owned() };
    let mut linked = match Linked::open(purpose, ours.into()) {
        Ok(linked) => linked,
        // The app may be starting again.
        Err(problem) => {
            return Ok(ConnectionEnd { why: problem.to_string(), is_final: false, was_attached: false });
        }
    };
    let _transport = start(command, theirs)?;
    let mut was_attached = false;
    loop {
        match linked.next() {
            Ok(AttachNote::Code { code }) => {
                if is_confirmed(host, &code)? {
                    linked.confirm(code)?;
                } else {
                    let why = format!("not paired with {host}: the codes were not confirmed");
                    return Ok(ConnectionEnd { why, is_final: true, was_attached });
                }
            }
            Ok(AttachNote::Attached) => {
                was_attached = true;
                tell(&format!("attached to {host}: its questions are asked on this desktop"));
            }
            Ok(AttachNote::Ended { why, is_final }) => {
                return Ok(ConnectionEnd { why, is_final, was_attached });
            }
            Err(problem) => {
                return Ok(ConnectionEnd { why: problem.to_string(), is_final: false, was_attached });
            }
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

/// Asks the user whether the remote machine shows the same code. This program must not show both codes: the remote one
/// would come from the connection whose other end is to be verified.
fn is_confirmed(host: &str, code: &str) -> anyhow::Result<bool> {
    tell(&format!("pairing with {host}; the code on this desktop is {code}"));
    tell(&format!("now run `ironcurtain status` on {host}, in a session of your own"));
    let mut out = io::stderr();
    write!(out, "Does it show the same code? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Prints a line for the user. A failure to write to standard error cannot be reported.
fn tell(text: &str) {
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
