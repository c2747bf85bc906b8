//! A blocking control client, for tests and command lines; the trusted process has its own on its runtime.
//!
//! - One request at a time: replies come in order, and events that come in between are kept for [`ControlClient::event`].

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use crate::control::{ControlAnswer, ControlOp, ControlRequest, FromSupervisor, SandboxEvent};

/// The asking side of a control stream.
#[derive(Debug)]
pub struct ControlClient {
    lines: BufReader<UnixStream>,
    events: VecDeque<SandboxEvent>,
    last_id: u64,
}

impl ControlClient {
    /// Talks over `control`; no answer within `patience` is an error.
    pub fn new(control: UnixStream, patience: Duration) -> io::Result<Self> {
        control.set_read_timeout(Some(patience))?;
        control.set_write_timeout(Some(patience))?;
        Ok(Self { lines: BufReader::new(control), events: VecDeque::new(), last_id: 0 })
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, op: ControlOp) -> io::Result<ControlAnswer> {
        self.last_id += 1;
        let request = ControlRequest { id: self.last_id, op };
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        self.lines.get_mut().write_all(&line)?;
        loop {
            match self.read()? {
                FromSupervisor::Event(event) => self.events.push_back(event),
                FromSupervisor::Reply(reply) if reply.id == self.last_id => return Ok(reply.answer),
                FromSupervisor::Reply(reply) => {
                    return Err(io::Error::other(format!(
                        "an answer to {} came, not to {}",
                        reply.id, self.last_id
                    )));
                }
            }
        }
    }

    /// The events that have come with the answers so far, and nobody has taken yet.
    pub fn told(&mut self) -> Vec<SandboxEvent> {
        self.events.drain(..).collect()
    }

    /// The next event, in the order they happened.
    pub fn event(&mut self) -> io::Result<SandboxEvent> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        match self.read()? {
            FromSupervisor::Event(event) => Ok(event),
            FromSupervisor::Reply(reply) => {
                Err(io::Error::other(format!("an answer to {} came that nobody waits for", reply.id)))
            }
        }
    }

    fn read(&mut self) -> io::Result<FromSupervisor> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}
