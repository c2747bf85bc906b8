//! The end of a sandbox as it is told: to the launcher, and where that is gone, to whoever runs next.

use std::{io, os::unix::net::UnixStream};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::lines::say;
use crate::{control::Event, state::StateDir, untold::Keeping};

/// Whom it is told.
pub(super) struct News<'a> {
    control: &'a UnixStream,
    state: StateDir,
    /// Once the launcher is gone.
    keeping: Option<Keeping>,
}

impl<'a> News<'a> {
    /// A launcher that is gone by now is noticed at once, so that whoever runs next finds that there is something to wait for.
    pub(super) fn new(control: &'a UnixStream, state: StateDir) -> Self {
        let mut news = Self { control, state, keeping: None };
        if is_gone(control) {
            // What cannot be kept now is tried again with what is to be told.
            news.keeping = Keeping::begin(&news.state).ok();
        }
        news
    }

    /// Tells it, or keeps it.
    pub(super) fn tell(&mut self, event: &Event) -> io::Result<()> {
        if self.keeping.is_none() && say(self.control, event).is_ok() {
            return Ok(());
        }
        let keeping = match self.keeping.take() {
            Some(keeping) => keeping,
            None => Keeping::begin(&self.state)?,
        };
        self.keeping.insert(keeping).add(event)
    }
}

/// Whether nobody has the other end; one that only says no more can still hear.
fn is_gone(control: &UnixStream) -> bool {
    let mut polled = [PollFd::new(control, PollFlags::empty())];
    let asked = loop {
        match poll(&mut polled, Some(&Timespec::default())) {
            Err(Errno::INTR) => {}
            asked => break asked,
        }
    };
    asked.is_ok() && polled.iter().any(|polled| polled.revents().contains(PollFlags::HUP))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        net::Shutdown,
    };

    use super::*;
    use crate::untold::untold;

    #[test]
    fn who_is_there_is_told_and_for_who_is_gone_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(path.to_str().unwrap(), rustix::process::getuid().as_raw()).unwrap();
        let found = Event::Unfinished { reason: "one".into() };
        let exited = Event::Exited { status: 0 };

        let (control, launcher) = UnixStream::pair().unwrap();
        // It has said all it had to say, and listens.
        launcher.shutdown(Shutdown::Write).unwrap();
        let mut news = News::new(&control, state.clone());
        news.tell(&found).unwrap();
        let mut line = String::new();
        BufReader::new(&launcher).read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), found);
        assert!(untold(&path).unwrap().is_empty());

        // It goes in between.
        drop(launcher);
        news.tell(&found).unwrap();
        news.tell(&exited).unwrap();
        drop(news);
        let kept = untold(&path).unwrap();
        assert_eq!(kept.iter().map(|kept| kept.events.as_slice()).collect::<Vec<_>>(), [[found, exited]]);
    }
}
