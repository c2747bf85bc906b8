//! The control conversation with a server's sandbox supervisor.
//!
//! - INVARIANT: what the supervisor tells of files that it moved away, or could not, is put on record, also when it comes
//!   after the conversation was given up: dropping it has the sandbox end, and the rest is still listened to.

use super::process::CLEANING;
use super::report::{Report, uncovered};
use ironcurtain_sandbox::{Answer, ControlOp, ControlRequest, Event, FromSupervisor};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// How long the supervisor may take to do one thing. It waits for nobody, so one that takes longer is out of order.
const ANSWER_BOUND: Duration = Duration::from_secs(10);

/// Longer than a supervisor can live once it is to end.
pub(crate) const LISTENING: Duration = CLEANING.saturating_add(Duration::from_secs(5));

/// The control conversation. One request at a time; events in between are kept.
#[derive(Debug)]
pub(crate) struct Control {
    lines: Lines,
    write: tokio::net::unix::OwnedWriteHalf,
    next: u64,
    events: VecDeque<Event>,
    report: Option<Report>,
    /// Why the supervisor has stopped the server, if it has.
    stopped: Option<String>,
}

/// The supervisor's side of it; nothing is left of it once the supervisor has ended.
#[derive(Debug)]
struct Lines(Option<BufReader<OwnedReadHalf>>);

impl Control {
    /// A conversation; without a report nobody is told what becomes of new files.
    pub(crate) fn new(stream: std::os::unix::net::UnixStream, report: Option<Report>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        Ok(Self {
            lines: Lines(Some(BufReader::new(read))),
            write,
            next: 0,
            events: VecDeque::new(),
            report,
            stopped: None,
        })
    }

    /// Waits until the sandbox stands; the error says why it does not.
    pub(crate) async fn started(&mut self) -> Result<(), String> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.lines.next().await? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                Event::Started => return Ok(()),
                Event::Failed { reason } => return Err(reason),
                Event::Exited { status } => return Err(format!("it ended with status {status}")),
                Event::Uncovered { path } => return Err(uncovered(&path)),
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
            match self.lines.next().await? {
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
                None => match self.lines.next().await.ok()? {
                    FromSupervisor::Event(event) => event,
                    FromSupervisor::Reply(_) => continue,
                },
            };
            match event {
                Event::Exited { status } => {
                    // That was its last word.
                    self.lines.0 = None;
                    return Some(status);
                }
                Event::Uncovered { .. } | Event::Quarantined { .. } | Event::Unfinished { .. } => {
                    if let Event::Uncovered { path } = &event {
                        self.stopped = Some(uncovered(path));
                    }
                    if let Some(report) = &self.report {
                        // What is not on record is in the log.
                        let _ = report.tell(&event).await;
                    }
                }
                Event::Started | Event::Failed { .. } | Event::Limited { .. } => {}
            }
        }
    }

    /// Why the supervisor has stopped the server, if it has and that has been heard.
    pub(crate) fn stopped(&mut self) -> Option<String> {
        self.stopped.take()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let (Some(report), Some(lines)) = (self.report.take(), self.lines.0.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // The half that is written to ends with us, which is the sandbox's end.
        runtime.spawn(listen(Lines(Some(lines)), std::mem::take(&mut self.events), report));
    }
}

/// Puts the rest on record.
async fn listen(mut lines: Lines, kept: VecDeque<Event>, report: Report) {
    for event in &kept {
        // What is not on record is in the log, here and below.
        let _ = report.tell(event).await;
    }
    let told_all = async {
        while let Ok(message) = lines.next().await {
            match message {
                FromSupervisor::Event(Event::Exited { .. }) => return true,
                FromSupervisor::Event(event) => drop(report.tell(&event).await),
                FromSupervisor::Reply(_) => {}
            }
        }
        false
    };
    if !tokio::time::timeout(LISTENING, told_all).await.unwrap_or(false) {
        let reason = "it ended before everything was searched for new files that start programs".to_owned();
        let _ = report.tell(&Event::Unfinished { reason }).await;
    }
}

impl Lines {
    async fn next(&mut self) -> Result<FromSupervisor, String> {
        let ended = || "the sandbox supervisor ended".to_owned();
        let lines = self.0.as_mut().ok_or_else(ended)?;
        let mut line = String::new();
        match lines.read_line(&mut line).await {
            Ok(0) => Err(ended()),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|e| format!("the sandbox supervisor is not understood: {e}")),
            Err(e) => Err(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Whose;
    use super::*;
    use crate::audit::Audit;
    use crate::last_words::LastWords;
    use crate::troubles::Troubles;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Stream;

    const BOUND: Duration = Duration::from_secs(10);

    /// A conversation whose supervisor is at the other end, and the log.
    fn conversation(dir: &std::path::Path) -> (Control, Stream) {
        let audit = Audit::open(dir, Troubles::default()).unwrap();
        let whose = Some(Whose { session: "s1".into(), server: "files".into() });
        let report = Report { audit, whose, _awaited: LastWords::default().awaited() };
        let (ours, theirs) = Stream::pair().unwrap();
        (Control::new(ours, Some(report)).unwrap(), theirs)
    }

    fn say(supervisor: &mut Stream, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap();
        line.push(b'\n');
        supervisor.write_all(&line).unwrap();
    }

    /// Waits until the log has so many entries.
    async fn entries(dir: &std::path::Path, count: usize) -> Vec<serde_json::Value> {
        let found = async {
            loop {
                let text = std::fs::read_to_string(dir.join("audit.jsonl")).unwrap_or_default();
                let whole: Vec<_> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                if whole.len() >= count {
                    return whole;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, found).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_moved_away_is_on_record_also_when_the_conversation_was_given_up() {
        let moved = Event::Quarantined { path: "/p/.envrc".into(), moved_to: "/q/1-0/.envrc".into() };
        let left = Event::Unfinished { reason: "`/p/deep` could not be searched".into() };
        for given_up in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (control, mut supervisor) = conversation(dir.path());
            let mut control = Some(control);
            if given_up {
                control = None;
                // The supervisor is told that it is over, and can still speak.
                assert_eq!(supervisor.read(&mut [0]).unwrap(), 0);
            }
            for event in [&moved, &left, &Event::Exited { status: 0 }] {
                say(&mut supervisor, event);
            }
            if let Some(control) = &mut control {
                assert_eq!(control.exit().await, Some(0));
            }
            let found = entries(dir.path(), 2).await;
            assert_eq!(found.len(), 2, "{found:?}");
            assert_eq!(
                (&found[0]["event"], &found[0]["paths"][0], &found[0]["serverName"]),
                (&"boundary-violation".into(), &"/p/.envrc".into(), &"files".into()),
                "{found:?}"
            );
            assert!(found[0]["summary"].as_str().unwrap().contains("moved to `/q/1-0/.envrc`"), "{found:?}");
            assert!(found[1]["summary"].as_str().unwrap().ends_with("`/p/deep` could not be searched"));
        }
    }

    #[tokio::test]
    async fn why_a_server_was_stopped_is_known_and_on_record() {
        let dir = tempfile::tempdir().unwrap();
        let (mut control, mut supervisor) = conversation(dir.path());
        for event in [Event::Uncovered { path: "/p/.envrc".into() }, Event::Exited { status: 137 }] {
            say(&mut supervisor, &event);
        }
        assert_eq!((control.exit().await, control.stopped()), (Some(137), Some(uncovered("/p/.envrc"))));
        let found = entries(dir.path(), 1).await;
        assert_eq!((&found[0]["event"], &found[0]["paths"][0]), (&"server".into(), &"/p/.envrc".into()));
        let summary = found[0]["summary"].as_str().unwrap();
        assert!(summary.starts_with("the server files was stopped: a program outside replaced"), "{summary}");
        // One that ends by itself was not.
        let other = tempfile::tempdir().unwrap();
        let (mut control, mut supervisor) = conversation(other.path());
        say(&mut supervisor, &Event::Exited { status: 137 });
        assert_eq!((control.exit().await, control.stopped()), (Some(137), None));
    }

    #[tokio::test]
    async fn a_supervisor_that_is_killed_before_its_last_word_is_on_record_and_one_that_ends_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (control, mut supervisor) = conversation(dir.path());
        let report = control.report.clone().unwrap();
        drop(control);
        say(&mut supervisor, &Event::Exited { status: 0 });
        // It has been heard by the time that nobody listens.
        supervisor.set_nonblocking(true).unwrap();
        let unheard = async {
            while supervisor.write_all(b"\n").is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, unheard).await.unwrap();

        let (ours, theirs) = Stream::pair().unwrap();
        drop(Control::new(ours, Some(report)).unwrap());
        drop(theirs);
        let found = entries(dir.path(), 1).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]["summary"].as_str().unwrap().contains("before everything was searched"),
            "{found:?}"
        );
    }
}
