//! A person at a terminal of which the kernel holds the middle.

use super::slot;
use crate::{Answer, Consent, Question, Terminal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The time for which a test waits for anything.
pub(super) const BOUND: Duration = Duration::from_secs(10);

/// A person at a terminal.
pub(super) struct Person {
    hands: File,
    pub(super) user: File,
    seen: Arc<Mutex<String>>,
    pub(super) terminal: Terminal,
}

impl Person {
    pub(super) fn at(columns: u16) -> Self {
        let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&hands).unwrap();
        unlockpt(&hands).unwrap();
        let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
        let user = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).unwrap();
        let terminal =
            Terminal::new(user.try_clone().unwrap().into(), user.try_clone().unwrap().into()).unwrap();
        let (hands, seen) = (File::from(hands), Arc::<Mutex<String>>::default());
        let (mut eyes, sees) = (hands.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = eyes.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..n]).replace("\r\n", "\n");
                sees.lock().unwrap().push_str(&text);
            }
        });
        Self { hands, user, seen, terminal }
    }

    pub(super) fn is_asked(&self, question: Question) -> oneshot::Receiver<Answer> {
        let (slot, answer) = slot();
        self.terminal.ask(question, slot);
        answer
    }

    pub(super) fn types(&self, text: &str) {
        (&self.hands).write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn resizes(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.user, size).unwrap();
    }

    /// Waits until the terminal shows this, and gives what it showed up to there.
    #[track_caller]
    pub(super) fn sees(&self, words: &str) -> String {
        let deadline = Instant::now() + BOUND;
        loop {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = seen.find(words) {
                let rest = seen.split_off(at + words.len());
                return std::mem::replace(&mut *seen, rest);
            }
            assert!(Instant::now() < deadline, "no `{words}` in: {seen}");
            drop(seen);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
