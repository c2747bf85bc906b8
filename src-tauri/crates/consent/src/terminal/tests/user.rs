//! A simulated user who reads and types on a pseudoterminal.

use super::slot;
use crate::{Answer, Consent, Question, Terminal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Maximum duration of each wait in a test.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// A simulated user who reads and types on a pseudoterminal.
pub(super) struct SimulatedUser {
    keyboard: File,
    pub(super) tty: File,
    seen: Arc<Mutex<String>>,
    pub(super) terminal: Terminal,
}

impl SimulatedUser {
    pub(super) fn at(columns: u16) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let tty = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&tty, size).unwrap();
        let terminal =
            Terminal::new(tty.try_clone().unwrap().into(), tty.try_clone().unwrap().into()).unwrap();
        let (keyboard, seen) = (File::from(keyboard), Arc::<Mutex<String>>::default());
        let (mut screen, sees) = (keyboard.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..n]).replace("\r\n", "\n");
                sees.lock().unwrap().push_str(&text);
            }
        });
        Self { keyboard, tty, seen, terminal }
    }

    pub(super) fn is_asked(&self, question: Question) -> oneshot::Receiver<Answer> {
        let (slot, answer) = slot();
        self.terminal.ask(question, slot);
        answer
    }

    pub(super) fn types(&self, text: &str) {
        (&self.keyboard).write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn resizes(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.tty, size).unwrap();
    }

    /// Waits until the terminal shows this text. Returns the output up to and including the text.
    #[track_caller]
    pub(super) fn sees(&self, words: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
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
