//! The control conversation with a server's sandbox supervisor.
//!
//! - INVARIANT: what the supervisor tells of files that it moved away, or could not, is put on record, also when it comes
//!   after the conversation was given up: dropping it has the sandbox end, and the rest is still listened to. What it could not
//!   tell any more, it has kept.

use super::process::CLEANING;
use super::report::uncovered;
use super::telling::Telling;
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
    telling: Option<Telling>,
    /// Why the supervisor has stopped the server, if it has.
    stopped: Option<String>,
}

/// The supervisor's side of it; nothing is left of it once the supervisor has ended.
#[derive(Debug)]
struct Lines(Option<BufReader<OwnedReadHalf>>);

impl Control {
    /// A conversation; without `telling` nobody is told what becomes of new files.
    pub(crate) fn new(stream: std::os::unix::net::UnixStream, telling: Option<Telling>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        Ok(Self {
            lines: Lines(Some(BufReader::new(read))),
            write,
            next: 0,
            events: VecDeque::new(),
            telling,
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
                Event::Limited { .. }
                | Event::Quarantined { .. }
                | Event::Unsearched { .. }
                | Event::Unfinished { .. } => {}
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
                    if let Some(telling) = self.telling.take() {
                        telling.end().await;
                    }
                    return Some(status);
                }
                Event::Uncovered { .. }
                | Event::Quarantined { .. }
                | Event::Unsearched { .. }
                | Event::Unfinished { .. } => {
                    if let Event::Uncovered { path } = &event {
                        self.stopped = Some(uncovered(path));
                    }
                    if let Some(telling) = &mut self.telling {
                        telling.tell(&event).await;
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
        let (Some(telling), Some(lines)) = (self.telling.take(), self.lines.0.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // The half that is written to ends with us, which is the sandbox's end.
        runtime.spawn(listen(Lines(Some(lines)), std::mem::take(&mut self.events), telling));
    }
}

/// Puts the rest on record.
async fn listen(mut lines: Lines, kept: VecDeque<Event>, mut telling: Telling) {
    let told_all = async {
        for event in &kept {
            telling.tell(event).await;
        }
        while let Ok(message) = lines.next().await {
            match message {
                FromSupervisor::Event(Event::Exited { .. }) => return true,
                FromSupervisor::Event(event) => telling.tell(&event).await,
                FromSupervisor::Reply(_) => {}
            }
        }
        false
    };
    if tokio::time::timeout(LISTENING, told_all).await.unwrap_or(false) {
        telling.end().await;
    } else {
        telling.cut_short().await;
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
    use super::super::report::{Report, Whose};
    use super::*;
    use crate::audit::Audit;
    use crate::last_words::LastWords;
    use crate::troubles::Troubles;
    use ironcurtain_sandbox::Record;
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Stream;
    use std::path::{Path, PathBuf};

    const BOUND: Duration = Duration::from_secs(10);

    /// A conversation whose supervisor is at the other end, with its log and state in `dir`, and where the supervisor keeps
    /// what it tells.
    fn conversation(dir: &Path) -> (Control, Stream, PathBuf) {
        conversation_on(dir, Audit::open(dir, Troubles::default()).unwrap())
    }

    fn conversation_on(dir: &Path, audit: Audit) -> (Control, Stream, PathBuf) {
        let whose = Some(Whose { session: "s1".into(), server: "files".into() });
        let report = Report { audit, whose, _awaited: LastWords::default().awaited() };
        let record = Record::new(dir);
        let kept = dir.join("untold").join(record.name());
        std::fs::create_dir(dir.join("untold")).unwrap();
        let (ours, theirs) = Stream::pair().unwrap();
        (Control::new(ours, Some(Telling::new(report, record))).unwrap(), theirs, kept)
    }

    /// Keeps it, as a supervisor does before it says it.
    fn keep(kept: &Path, event: &Event) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(kept).unwrap();
        writeln!(file, "{}", serde_json::to_string(event).unwrap()).unwrap();
    }

    async fn until(what: impl Fn() -> bool) {
        let waited = async {
            while !what() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, waited).await.unwrap();
    }

    fn say(supervisor: &mut Stream, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap();
        line.push(b'\n');
        supervisor.write_all(&line).unwrap();
    }

    /// Waits until the log has so many entries.
    async fn entries(dir: &Path, count: usize) -> Vec<serde_json::Value> {
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
            let (control, mut supervisor, kept) = conversation(dir.path());
            let mut control = Some(control);
            if given_up {
                control = None;
                // The supervisor is told that it is over, and can still speak.
                assert_eq!(supervisor.read(&mut [0]).unwrap(), 0);
            }
            for event in [&moved, &left, &Event::Exited { status: 0 }] {
                keep(&kept, event);
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
            // It need not be told again.
            until(|| !kept.exists()).await;
        }
    }

    #[tokio::test]
    async fn why_a_server_was_stopped_is_known_and_on_record() {
        let dir = tempfile::tempdir().unwrap();
        let (mut control, mut supervisor, _) = conversation(dir.path());
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
        let (mut control, mut supervisor, _) = conversation(other.path());
        say(&mut supervisor, &Event::Exited { status: 137 });
        assert_eq!((control.exit().await, control.stopped()), (Some(137), None));
    }

    #[tokio::test]
    async fn a_supervisor_that_is_killed_before_its_last_word_is_on_record_and_one_that_ends_is_not() {
        let moved = Event::Quarantined { path: "/p/.envrc".into(), moved_to: "/q/1-0/.envrc".into() };
        let other = Event::Quarantined { path: "/p/.exrc".into(), moved_to: "/q/1-1/.exrc".into() };
        for is_killed in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (control, mut supervisor, kept) = conversation(dir.path());
            drop(control);
            std::fs::write(&kept, "{\"writable\":\"/p\"}\n").unwrap();
            for event in [&moved, &other] {
                keep(&kept, event);
            }
            say(&mut supervisor, &moved);
            if !is_killed {
                say(&mut supervisor, &other);
                say(&mut supervisor, &Event::Exited { status: 0 });
            }
            drop(supervisor);
            until(|| !kept.exists()).await;
            let found = entries(dir.path(), if is_killed { 3 } else { 2 }).await;
            let paths: Vec<_> = found.iter().map(|entry| entry["paths"][0].as_str().unwrap()).collect();
            let ids: BTreeSet<_> = found.iter().map(|entry| entry["reportId"].as_str().unwrap()).collect();
            assert_eq!(ids.len(), found.len(), "{found:?}");
            if is_killed {
                assert_eq!(paths, ["/p/.envrc", "/p/.exrc", "/p"]);
                let summary = found[2]["summary"].as_str().unwrap();
                assert!(summary.contains("before everything was searched"), "{summary}");
            } else {
                assert_eq!(paths, ["/p/.envrc", "/p/.exrc"]);
            }
        }
    }

    #[tokio::test]
    async fn what_is_not_on_record_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        // The device that is always full.
        let audit = Audit::at(Path::new("/dev/full"), Troubles::default()).unwrap();
        let (mut control, mut supervisor, kept) = conversation_on(dir.path(), audit);
        for event in [Event::Uncovered { path: "/p/.envrc".into() }, Event::Exited { status: 137 }] {
            keep(&kept, &event);
            say(&mut supervisor, &event);
        }
        assert_eq!(control.exit().await, Some(137));
        assert!(kept.exists());
    }
}
