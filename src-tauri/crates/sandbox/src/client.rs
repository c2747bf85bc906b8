//! Blocking client of the control protocol, for tests and command lines. The trusted process has its own asynchronous
//! client.
//!
//! - Handles one request at a time. Events that arrive before the reply are queued for [`ControlClient::event`].

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use crate::control::{ControlAnswer, ControlOp, ControlRequest, FromSupervisor, SandboxEvent};

/// Client of a supervisor's control stream.
#[derive(Debug)]
pub struct ControlClient {
    lines: BufReader<UnixStream>,
    events: VecDeque<SandboxEvent>,
    last_id: u64,
}

impl ControlClient {
    /// Creates a client for `control`. `timeout` is the timeout of each read and write.
    pub fn new(control: UnixStream, timeout: Duration) -> io::Result<Self> {
        control.set_read_timeout(Some(timeout))?;
        control.set_write_timeout(Some(timeout))?;
        Ok(Self { lines: BufReader::new(control), events: VecDeque::new(), last_id: 0 })
    }

    /// Sends a request and waits for its reply.
    pub fn request(&mut self, op: ControlOp) -> io::Result<ControlAnswer> {
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
                        "received a reply to request {}, expected {}",
                        reply.id, self.last_id
                    )));
                }
            }
        }
    }

    /// Takes the queued events.
    pub fn queued_events(&mut self) -> Vec<SandboxEvent> {
        self.events.drain(..).collect()
    }

    /// Returns the next event, waiting for one if none is queued.
    pub fn event(&mut self) -> io::Result<SandboxEvent> {
        if let Some(event) = self.events.pop_front() {
            return Ok(event);
        }
        match self.read()? {
            FromSupervisor::Event(event) => Ok(event),
            FromSupervisor::Reply(reply) => {
                Err(io::Error::other(format!("received an unexpected reply to request {}", reply.id)))
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
