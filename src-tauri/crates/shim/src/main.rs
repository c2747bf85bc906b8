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
use connect::ConnectDaemonError;
use ironcurtain_protocol::{FrameError, Hello, Purpose, ShimHello, StdioMode, VERSION, Welcome, read_frame};
use launch::{DaemonExit, LaunchedDaemon};
use relay::SessionEnd;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Run(options)) => run(&options),
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

fn run(options: &ShimOptions) -> ExitCode {
    let mut ticket = None;
    loop {
        ticket = match open_session(options, ticket) {
            Ok((stream, StdioMode::HandedOver)) => match relay::wait(&stream) {
                SessionEnd::Closed(status) => return status,
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
enum OpenSessionError {
    #[error(transparent)]
    Connect(#[from] ConnectDaemonError),
    /// The daemon refused the session. Contains its message.
    #[error("{0}")]
    Refused(String),
    #[error("failed to open a session with IronCurtain: {0}")]
    SendHello(io::Error),
    #[error("IronCurtain did not answer: {0}")]
    NoAnswer(FrameError),
    /// The daemon that was just started exited before answering.
    #[error(transparent)]
    Exited(DaemonExit),
}

impl OpenSessionError {
    /// Returns `true` if the daemon closed the connection before answering, for example because it was killed. Such a
    /// daemon has read no client input.
    fn is_connection_closed(&self) -> bool {
        match self {
            Self::SendHello(_) | Self::NoAnswer(FrameError::Closed | FrameError::Io(_)) => true,
            Self::Exited(exit) => exit.is_kill(),
            Self::Connect(_) | Self::Refused(_) | Self::NoAnswer(_) => false,
        }
    }
}

/// Opens a session. If the connection closes before the answer, retries once with another daemon.
fn open_session(
    options: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), OpenSessionError> {
    match try_session(options, ticket.clone()) {
        Err(problem) if problem.is_connection_closed() => try_session(options, ticket),
        opened => opened,
    }
}

/// Connects, sends the hello message and waits for the welcome. With a ticket, connects to the daemon that now has the
/// session.
fn try_session(
    options: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), OpenSessionError> {
    let (stream, launched) =
        if ticket.is_some() { connect::connect_to_next_daemon()? } else { connect::connect_to_daemon()? };
    match handshake(&stream, options, ticket) {
        Ok(stdio) => Ok((stream, stdio)),
        // The daemon that was just started may have exited because of an error in its files.
        Err(problem @ (OpenSessionError::SendHello(_) | OpenSessionError::NoAnswer(_))) => {
            Err(launched.and_then(LaunchedDaemon::exit_reason).map_or(problem, OpenSessionError::Exited))
        }
        Err(problem) => Err(problem),
    }
}

fn handshake(
    stream: &UnixStream,
    options: &ShimOptions,
    resume: Option<String>,
) -> Result<StdioMode, OpenSessionError> {
    let stdio = relay::stdio_mode();
    let ShimOptions { server, profile, label } = options.clone();
    let shim = ShimHello { server, profile, label, stdio, resume };
    let hello = Hello { version: VERSION, purpose: Purpose::Session(shim) };
    connect::send_hello(stream, &hello, stdio).map_err(OpenSessionError::SendHello)?;
    // Must not read past the line, because in relay mode the conversation follows on the same stream.
    let welcome = read_frame::<Welcome>(&mut connect::UnbufferedReader(stream).buffered());
    match welcome.map_err(OpenSessionError::NoAnswer)? {
        Welcome::Accepted { .. } => Ok(stdio),
        Welcome::Refused(refusal) => Err(OpenSessionError::Refused(refusal.message)),
    }
}
