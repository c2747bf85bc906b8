//! Stdio program that an agent client launches in place of an MCP server.
//!
//! - Never parses the MCP conversation. The daemon receives the client's own pipes (`SCM_RIGHTS`). If standard input
//!   or output is not a pipe or socket, the shim copies bytes.
//! - Reads nothing from standard input until the daemon has answered, so no input can be lost.
//! - Without a daemon or session, answers every request with an error that tells the user how to fix the problem.

mod arguments;
mod connect;
mod launch;
mod refuse;
mod relay;

use arguments::{Invocation, ShimOptions};
use connect::NoDaemonError;
use ironcurtain_protocol::{FrameError, Hello, Purpose, ShimHello, StdioMode, VERSION, Welcome, read_frame};
use launch::{DaemonExit, Launched};
use relay::SessionEnd;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Run(wanted)) => run(&wanted),
        Ok(Invocation::Print(text)) => {
            // Ignores the error, which could not be reported anywhere.
            let _ = writeln!(io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            let _ = writeln!(io::stderr(), "ironcurtain-shim: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(wanted: &ShimOptions) -> ExitCode {
    let mut ticket = None;
    loop {
        ticket = match open_session(wanted, ticket) {
            Ok((stream, StdioMode::HandedOver)) => match relay::wait(&stream) {
                SessionEnd::Over(status) => return status,
                SessionEnd::Moved(ticket) => Some(ticket),
            },
            Ok((stream, StdioMode::Relayed)) => return relay::copy(stream),
            Err(problem) => {
                connect::wait_for_input();
                return refuse::answer_requests(&problem.to_string());
            }
        };
    }
}

/// Failure to open a session, worded for the user.
#[derive(Debug, thiserror::Error)]
enum NoSessionError {
    #[error(transparent)]
    Connect(#[from] NoDaemonError),
    /// The daemon refused the session, with this message.
    #[error("{0}")]
    Refused(String),
    #[error("failed to open a session with IronCurtain: {0}")]
    HelloNotSent(io::Error),
    #[error("IronCurtain did not answer: {0}")]
    NoAnswer(FrameError),
    /// The daemon that was just started exited before answering.
    #[error(transparent)]
    Exited(DaemonExit),
}

impl NoSessionError {
    /// Returns `true` if the daemon closed the connection before answering, for example because it was killed. Such a
    /// daemon has read no client input.
    fn is_hang_up(&self) -> bool {
        match self {
            Self::HelloNotSent(_) | Self::NoAnswer(FrameError::Ended | FrameError::Io(_)) => true,
            Self::Exited(exit) => exit.is_kill(),
            Self::Connect(_) | Self::Refused(_) | Self::NoAnswer(_) => false,
        }
    }
}

/// Opens a session. If the connection closes before the answer, retries once with another daemon.
fn open_session(
    wanted: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), NoSessionError> {
    match try_session(wanted, ticket.clone()) {
        Err(problem) if problem.is_hang_up() => try_session(wanted, ticket),
        opened => opened,
    }
}

/// Connects, sends the hello message and waits for the welcome. With a ticket, connects to the daemon that now has the
/// session.
fn try_session(
    wanted: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), NoSessionError> {
    let (stream, launched) =
        if ticket.is_some() { connect::to_next_daemon()? } else { connect::to_daemon()? };
    match handshake(&stream, wanted, ticket) {
        Ok(stdio) => Ok((stream, stdio)),
        // The daemon that was just started may have exited because of an error in its files.
        Err(problem @ (NoSessionError::HelloNotSent(_) | NoSessionError::NoAnswer(_))) => {
            Err(launched.and_then(Launched::exit_reason).map_or(problem, NoSessionError::Exited))
        }
        Err(problem) => Err(problem),
    }
}

fn handshake(
    stream: &UnixStream,
    wanted: &ShimOptions,
    resume: Option<String>,
) -> Result<StdioMode, NoSessionError> {
    let stdio = relay::stdio_mode();
    let ShimOptions { server, profile, label } = wanted.clone();
    let shim = ShimHello { server, profile, label, stdio, resume };
    let hello = Hello { version: VERSION, purpose: Purpose::Session(shim) };
    connect::send_hello(stream, &hello, stdio).map_err(NoSessionError::HelloNotSent)?;
    // Must not read past the line, because in relay mode the conversation follows on the same stream.
    let welcome = read_frame::<Welcome>(&mut connect::ByteByByte(stream).buffered());
    match welcome.map_err(NoSessionError::NoAnswer)? {
        Welcome::Accepted { .. } => Ok(stdio),
        Welcome::Refused(refusal) => Err(NoSessionError::Refused(refusal.message)),
    }
}
