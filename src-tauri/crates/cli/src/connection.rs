//! Talking to the trusted process.

use crate::problem::Refused;
use anyhow::{Context, anyhow, bail};
use ironcurtain_protocol::{
    FrameError, Hello, Purpose, Reply, Request, RequestFrame, Sockets, VERSION, Welcome, read_frame,
    write_frame,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The time for which to wait for the end of the trusted process: a little longer than it takes at most.
const LONGEST_END: Duration = ironcurtain_daemon::ENDING.saturating_add(Duration::from_secs(3));

/// The time for which it may be silent until it is asked what it waits for.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The time that it may take for an answer: taking back restarts a server at worst, which has bounds of its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time that it may take for its greeting.
const GREETING: Duration = Duration::from_secs(5);

#[cfg(target_os = "linux")]
fn user_of_peer(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Elsewhere nobody is asked who listens, and so nobody is trusted.
#[cfg(not(target_os = "linux"))]
fn user_of_peer(_: &UnixStream) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Why there is no answer, with the bound of the connection.
fn unanswered(problem: FrameError, bound: Option<Duration>) -> anyhow::Error {
    match (problem, bound) {
        (FrameError::TimedOut, Some(bound)) => {
            anyhow!(
                "IronCurtain did not answer within {} s; if it stays so, end its process and start it again",
                bound.as_secs()
            )
        }
        (problem, _) => anyhow::Error::new(problem).context("IronCurtain did not answer"),
    }
}

/// A greeted connection.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects to this user's trusted process.
    pub fn open() -> anyhow::Result<Self> {
        Self::open_if_running()?.context("IronCurtain is not running; start the app, or `ironcurtain daemon`")
    }

    /// Connects to this user's trusted process, if it runs.
    pub fn open_if_running() -> anyhow::Result<Option<Self>> {
        let Some(stream) = Sockets::of_user()?.connect()? else { return Ok(None) };
        let user = user_of_peer(&stream)?;
        if user != rustix::process::geteuid().as_raw() {
            bail!("user {user} listens on the socket of your IronCurtain");
        }
        stream.set_read_timeout(Some(GREETING))?;
        stream.set_write_timeout(Some(GREETING))?;
        let mut connection = Self { stream: BufReader::new(stream) };
        connection.send(&Hello { version: VERSION, purpose: Purpose::Control })?;
        match connection.answer()? {
            Welcome::Accepted { .. } => {
                connection.stream.get_ref().set_read_timeout(Some(PATIENCE))?;
                Ok(Some(connection))
            }
            Welcome::Refused(refusal) => bail!("{}", refusal.message),
        }
    }

    /// Asks for one thing. What is refused is an error ([`Refused`]).
    pub fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        self.send(&RequestFrame { id: 1, request })?;
        let answer: ironcurtain_protocol::ReplyFrame = self.answer()?;
        if let Reply::Failed { code, message } = answer.reply {
            return Err(Refused { code, message }.into());
        }
        Ok(answer.reply)
    }

    fn send(&mut self, message: &impl Serialize) -> anyhow::Result<()> {
        let bound = self.stream.get_ref().write_timeout()?;
        write_frame(self.stream.get_mut(), message).map_err(|problem| unanswered(problem, bound))
    }

    fn answer<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let bound = self.stream.get_ref().read_timeout()?;
        read_frame(&mut self.stream).map_err(|problem| unanswered(problem, bound))
    }

    /// Ends the trusted process, and waits until it has ended: then another one can start. Whenever other sandboxes are still
    /// being looked at, `tell` is told which.
    pub fn stop(mut self, tell: impl Fn(&[String])) -> anyhow::Result<Reply> {
        let reply = self.ask(Request::Shutdown)?;
        let (began, mut told) = (Instant::now(), Vec::new());
        while began.elapsed() < LONGEST_END {
            self.stream.get_ref().set_read_timeout(Some(LOOK_AGAIN))?;
            match self.stream.read(&mut [0]) {
                Ok(0) => return Ok(reply),
                // It was killed on the way, which ends it, too.
                Err(problem) if problem.kind() == io::ErrorKind::ConnectionReset => return Ok(reply),
                Ok(_) => bail!("IronCurtain said something that nobody asked for instead of ending"),
                Err(problem)
                    if matches!(problem.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                {
                    self.stream.get_ref().set_read_timeout(Some(LONGEST_END))?;
                    match self.ask(Request::LastLooks) {
                        Ok(Reply::LastLooks(words)) if words != told => {
                            tell(&words);
                            told = words;
                        }
                        // Between its question and its answer it may have ended, which the next look shows.
                        Ok(_) | Err(_) => {}
                    }
                }
                Err(problem) => {
                    return Err(problem)
                        .context("IronCurtain is ending, but it cannot be seen whether it has ended");
                }
            }
        }
        bail!("IronCurtain is ending, but has not ended after {} seconds", LONGEST_END.as_secs())
    }
}
