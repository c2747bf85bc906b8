//! The stdio program an agent client launches in place of an MCP server.
//!
//! - No byte of the conversation is looked at here: the daemon gets the client's own pipes (`SCM_RIGHTS`), or,
//!   where they are no pipes, their bytes are copied.
//! - Nothing is read from standard input before the daemon has answered, so nothing can be lost.
//! - When there is no daemon to talk to, or no session, each request of the client is answered with an error a person can
//!   act on, until the client hangs up.

mod arguments;
mod connect;
mod launch;
mod refuse;
mod relay;

use arguments::{Invocation, ShimOptions};
use connect::NoDaemonError;
use ironcurtain_protocol::{FrameError, Hello, Purpose, ShimHello, StdioMode, VERSION, Welcome, read_frame};
use launch::{DaemonEnd, Launched};
use relay::SessionEnd;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Run(wanted)) => run(&wanted),
        Ok(Invocation::Say(text)) => {
            // Nobody is left to tell if this fails.
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

/// Why there is no session, in sentences for a person.
#[derive(Debug, thiserror::Error)]
enum NoSessionError {
    /// There is nobody to ask for one.
    #[error(transparent)]
    Connect(#[from] NoDaemonError),
    /// The daemon's own word.
    #[error("{0}")]
    Refused(String),
    /// The greeting did not arrive.
    #[error("IronCurtain did not take the greeting: {0}")]
    NotGreeted(io::Error),
    /// There was no answer.
    #[error("IronCurtain did not answer the greeting: {0}")]
    NoAnswer(FrameError),
    /// The daemon, which was just started, ended while it was greeted.
    #[error(transparent)]
    Ended(DaemonEnd),
}

impl NoSessionError {
    /// Returns whether the daemon was gone before it answered, as after a kill. Nothing of the client was read then.
    fn is_hang_up(&self) -> bool {
        match self {
            Self::NotGreeted(_) | Self::NoAnswer(FrameError::Ended | FrameError::Io(_)) => true,
            Self::Ended(end) => end.is_kill(),
            Self::Connect(_) | Self::Refused(_) | Self::NoAnswer(_) => false,
        }
    }
}

/// Opens a session, with another daemon where the first one is gone before it has answered.
fn open_session(
    wanted: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), NoSessionError> {
    match try_session(wanted, ticket.clone()) {
        Err(problem) if problem.is_hang_up() => try_session(wanted, ticket),
        opened => opened,
    }
}

/// Connects, says hello and waits for the welcome; with a ticket, where the session was moved to.
fn try_session(
    wanted: &ShimOptions,
    ticket: Option<String>,
) -> Result<(UnixStream, StdioMode), NoSessionError> {
    let (stream, launched) =
        if ticket.is_some() { connect::to_next_daemon()? } else { connect::to_daemon()? };
    match greeted(&stream, wanted, ticket) {
        Ok(stdio) => Ok((stream, stdio)),
        // One that was just started may end because of its own files while it is greeted.
        Err(problem @ (NoSessionError::NotGreeted(_) | NoSessionError::NoAnswer(_))) => {
            Err(launched.and_then(Launched::why_it_let_go).map_or(problem, NoSessionError::Ended))
        }
        Err(problem) => Err(problem),
    }
}

fn greeted(
    stream: &UnixStream,
    wanted: &ShimOptions,
    resume: Option<String>,
) -> Result<StdioMode, NoSessionError> {
    let stdio = relay::how();
    let ShimOptions { server, profile, label } = wanted.clone();
    let shim = ShimHello { server, profile, label, stdio, resume };
    let hello = Hello { version: VERSION, purpose: Purpose::Session(shim) };
    connect::greet(stream, &hello, stdio).map_err(NoSessionError::NotGreeted)?;
    // Unbuffered past the line: in relay mode the conversation follows on the same stream.
    let welcome = read_frame::<Welcome>(&mut connect::ByteByByte(stream).buffered());
    match welcome.map_err(NoSessionError::NoAnswer)? {
        Welcome::Accepted { .. } => Ok(stdio),
        Welcome::Refused(refusal) => Err(NoSessionError::Refused(refusal.message)),
    }
}
