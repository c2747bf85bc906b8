//! The end of a sandbox as it is told: to the launcher, and to whoever runs next where that is gone, or did not get to put it on
//! record.

use std::{io, os::unix::net::UnixStream};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::lines::say;
use crate::{
    control::Event,
    state::StateDir,
    untold::{Keeping, new_name},
};

/// Whom it is told.
pub(super) struct News<'a> {
    control: &'a UnixStream,
    state: StateDir,
    /// Where the launcher asked for it, and elsewhere once the launcher is gone.
    keeping: Option<Keeping>,
}

impl<'a> News<'a> {
    /// What is kept in any case is so before it is told. Without that, a launcher that is gone by now is noticed at once, so that
    /// whoever runs next finds that there is something to wait for.
    pub(super) fn new(control: &'a UnixStream, state: StateDir, keeping: Option<Keeping>) -> Self {
        let mut news = Self { control, state, keeping };
        if news.keeping.is_none() && is_gone(control) {
            // What cannot be kept now is tried again with what is to be told.
            news.keeping = news.begin().ok();
        }
        news
    }

    /// Tells it, and keeps it.
    ///
    /// # Errors
    /// Neither could be done.
    pub(super) fn tell(&mut self, event: &Event) -> io::Result<()> {
        let kept = self.keeping.as_mut().map(|keeping| keeping.add(event));
        match (kept, say(self.control, event)) {
            (Some(Ok(())), _) | (_, Ok(())) => Ok(()),
            (Some(error), Err(_)) => error,
            (None, Err(_)) => {
                let keeping = self.begin()?;
                self.keeping.insert(keeping).add(event)
            }
        }
    }

    /// The last word. What nobody needs to know is not kept any longer.
    pub(super) fn end(mut self, status: i32) {
        let event = Event::Exited { status };
        if let Some(mut keeping) = self.keeping.take() {
            // Without it, what is kept counts as that of a sandbox that was not searched as a whole.
            let _ = keeping.add(&event);
            keeping.conclude();
        }
        // A launcher that is gone needs no word.
        let _ = say(self.control, &event);
    }

    fn begin(&self) -> io::Result<Keeping> {
        Keeping::begin(&self.state, &new_name())
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
        path::{Path, PathBuf},
    };

    use super::*;
    use crate::untold::{Record, untold};

    /// A state directory, and its path.
    fn state(dir: &tempfile::TempDir) -> (PathBuf, StateDir) {
        let path = dir.path().join("state");
        let state = StateDir::open(path.to_str().unwrap(), rustix::process::getuid().as_raw()).unwrap();
        (path, state)
    }

    fn heard(launcher: &UnixStream) -> Vec<Event> {
        let lines = BufReader::new(launcher).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    /// What is kept, of each supervisor.
    fn kept(path: &Path) -> Vec<Vec<Event>> {
        let kept = untold(path).unwrap().read();
        kept.iter().map(|kept| kept.after(0).map(|(_, event)| event.clone()).collect()).collect()
    }

    #[test]
    fn who_is_there_is_told_and_for_who_is_gone_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, state) = state(&dir);
        let found = Event::Unfinished { reason: "one".into() };
        let exited = Event::Exited { status: 0 };

        let (control, launcher) = UnixStream::pair().unwrap();
        // It has said all it had to say, and listens.
        launcher.shutdown(Shutdown::Write).unwrap();
        let mut news = News::new(&control, state.clone(), None);
        news.tell(&found).unwrap();
        let mut line = String::new();
        BufReader::new(&launcher).read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), found);
        assert!(untold(&path).unwrap().is_empty());

        // It goes in between.
        drop(launcher);
        news.tell(&found).unwrap();
        news.end(0);
        assert_eq!(kept(&path), [[found, exited]]);
    }

    #[test]
    fn what_a_launcher_asked_for_is_kept_also_where_it_was_heard_and_not_when_there_was_nothing() {
        for finds in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (path, state) = state(&dir);
            let record = Record::new(&path);
            let mut keeping = Keeping::begin(&state, record.name()).unwrap();
            keeping.writable([&"/p".to_owned()]).unwrap();
            let (control, launcher) = UnixStream::pair().unwrap();
            let mut news = News::new(&control, state, Some(keeping));
            let mut told = vec![];
            if finds {
                told.push(Event::Quarantined { path: "/p/.envrc".into(), moved_to: "/q/.envrc".into() });
                news.tell(&told[0]).unwrap();
            }
            told.push(Event::Exited { status: 3 });
            news.end(3);
            drop(control);
            assert_eq!(heard(&launcher), told);
            assert_eq!(kept(&path), if finds { vec![told] } else { vec![] });
            record.forget().unwrap();
            assert_eq!(kept(&path), Vec::<Vec<Event>>::new());
        }
    }
}
