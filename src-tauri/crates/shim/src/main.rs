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

use arguments::Invocation;
use ironcurtain_protocol::{Hello, Purpose, ShimHello, StdioMode, VERSION, Welcome, read_frame};
use launch::Launched;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Run(wanted)) => run(wanted.server, wanted.label),
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

fn run(server: Option<String>, label: Option<String>) -> ExitCode {
    match open_session(server, label) {
        Ok((stream, StdioMode::HandedOver)) => relay::wait(&stream),
        Ok((stream, StdioMode::Relayed)) => relay::copy(stream),
        Err(problem) => refuse::answer_requests(&problem),
    }
}

/// Connects, says hello and waits for the welcome. The error is a sentence for a person.
fn open_session(server: Option<String>, label: Option<String>) -> Result<(UnixStream, StdioMode), String> {
    let (stream, launched) = connect::to_daemon()?;
    greeted(&stream, server, label)
        .map_err(|problem| match problem {
            Unwelcome::Refused(message) => message,
            // One that was just started may end because of its own files while it is greeted.
            Unwelcome::Failed(problem) => launched.and_then(Launched::why_it_let_go).unwrap_or(problem),
        })
        .map(|stdio| (stream, stdio))
}

/// Why there is no session, in a sentence for a person.
enum Unwelcome {
    /// The daemon's own word.
    Refused(String),
    /// It did not come to a word.
    Failed(String),
}

fn greeted(
    stream: &UnixStream,
    server: Option<String>,
    label: Option<String>,
) -> Result<StdioMode, Unwelcome> {
    let failed = Unwelcome::Failed;
    let stdio = relay::how();
    let hello = Hello { version: VERSION, purpose: Purpose::Session(ShimHello { server, label, stdio }) };
    connect::greet(stream, &hello, stdio)
        .map_err(|e| failed(format!("IronCurtain did not take the greeting: {e}")))?;
    // Unbuffered past the line: in relay mode the conversation follows on the same stream.
    let welcome = read_frame::<Welcome>(&mut connect::ByteByByte(stream).buffered())
        .map_err(|e| failed(format!("IronCurtain did not answer the greeting: {e}")))?;
    match welcome {
        Welcome::Accepted { .. } => Ok(stdio),
        Welcome::Refused(refusal) => Err(Unwelcome::Refused(refusal.message)),
    }
}
