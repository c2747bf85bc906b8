//! The control conversation with a server's sandbox supervisor.

use ironcurtain_sandbox::{Answer, ControlOp, ControlRequest, Event, FromSupervisor};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// How long the supervisor may take to do one thing. It waits for nobody, so one that takes longer is out of order.
const ANSWER_BOUND: Duration = Duration::from_secs(10);

/// The control conversation. One request at a time; events in between are kept.
#[derive(Debug)]
pub(crate) struct Control {
    lines: BufReader<OwnedReadHalf>,
    write: tokio::net::unix::OwnedWriteHalf,
    next: u64,
    events: VecDeque<Event>,
}

impl Control {
    pub(crate) fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        Ok(Self { lines: BufReader::new(read), write, next: 0, events: VecDeque::new() })
    }

    /// Waits until the sandbox stands; the error says why it does not.
    pub(crate) async fn started(&mut self) -> Result<(), String> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.next_message().await? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                Event::Started => return Ok(()),
                Event::Failed { reason } => return Err(reason),
                Event::Exited { status } => return Err(format!("it ended with status {status}")),
                Event::Limited { .. } | Event::Quarantined { .. } | Event::Unfinished { .. } => {}
            }
        }
    }

    /// Asks for one thing and waits for the answer; the error is that of the conversation, which is over then.
    pub(crate) async fn ask(&mut self, op: ControlOp) -> Result<Answer, String> {
        let late = |_| format!("the sandbox supervisor did not answer within {} s", ANSWER_BOUND.as_secs());
        tokio::time::timeout(ANSWER_BOUND, self.exchange(op)).await.map_err(late)?
    }

    async fn exchange(&mut self, op: ControlOp) -> Result<Answer, String> {
        self.next += 1;
        let id = self.next;
        let mut line = serde_json::to_vec(&ControlRequest { id, op }).map_err(|e| e.to_string())?;
        line.push(b'\n');
        self.write.write_all(&line).await.map_err(|e| e.to_string())?;
        loop {
            match self.next_message().await? {
                FromSupervisor::Reply(reply) if reply.id == id => return Ok(reply.answer),
                FromSupervisor::Reply(_) => {}
                FromSupervisor::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// How the server ended, if the supervisor still tells.
    pub(crate) async fn exit(&mut self) -> Option<i32> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.next_message().await.ok()? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                Event::Exited { status } => return Some(status),
                Event::Started
                | Event::Failed { .. }
                | Event::Limited { .. }
                | Event::Quarantined { .. }
                | Event::Unfinished { .. } => {}
            }
        }
    }

    async fn next_message(&mut self) -> Result<FromSupervisor, String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line).await {
            Ok(0) => Err("the sandbox supervisor ended".to_owned()),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|e| format!("the sandbox supervisor is not understood: {e}")),
            Err(e) => Err(e.to_string()),
        }
    }
}
