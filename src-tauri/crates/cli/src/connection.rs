//! Talking to the trusted process.

use crate::problem::Refused;
use anyhow::{Context, anyhow, bail};
use ironcurtain_protocol::{
    Control, Hello, Purpose, Reply, Request, VERSION, Welcome, read_frame, socket_path, write_frame,
};
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;

/// A greeted connection.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects to this user's trusted process.
    pub fn open() -> anyhow::Result<Self> {
        let path = socket_path(|name| std::env::var_os(name))?;
        let stream = UnixStream::connect(&path).map_err(|e| {
            if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) {
                anyhow!("IronCurtain is not running; start the app, or `ironcurtain daemon`")
            } else {
                anyhow!("`{}` could not be reached: {e}", path.display())
            }
        })?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::geteuid() {
            bail!("user {} listens on `{}`, not you", peer.uid.as_raw(), path.display());
        }
        let mut connection = Self { stream: BufReader::new(stream) };
        write_frame(connection.stream.get_mut(), &Hello { version: VERSION, purpose: Purpose::Control })?;
        match read_frame(&mut connection.stream).context("no answer to the greeting")? {
            Welcome::Accepted { .. } => Ok(connection),
            Welcome::Refused(refusal) => bail!("{}", refusal.message),
        }
    }

    /// Asks for one thing. What is refused is an error ([`Refused`]).
    pub fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        write_frame(self.stream.get_mut(), &Control { id: 1, request })?;
        let answer: ironcurtain_protocol::Answered = read_frame(&mut self.stream).context("no answer")?;
        if let Reply::Failed { code, message } = answer.reply {
            return Err(Refused { code, message }.into());
        }
        Ok(answer.reply)
    }
}
