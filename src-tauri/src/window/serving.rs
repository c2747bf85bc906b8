//! The trusted process's side of the window. At most one window is open, in its own process, and its page's commands
//! run here.
//!
//! - If the window's process exits, running commands complete and their results are dropped.
//! - Each window must confirm that it is on the screen. If a requested window does not confirm because it is already
//!   closing, a new window is opened.

use super::command_error::CommandError;
use super::process::WindowProcess;
use super::wire::{FromWindow, ToWindow};
use super::{AppState, commands};
use crate::backend::Backend;
use crate::consent::DialogConsent;
use ironcurtain_protocol::{FrameError, read_frame, write_frame};
use serde_json::Value;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of page commands that run concurrently.
const MAX_CALLS: usize = 64;

/// The window, open or closed.
#[derive(Clone)]
pub(crate) struct Window(Arc<Parts>);

struct Parts {
    backend: Arc<dyn Backend>,
    desktop: DialogConsent,
    home: PathBuf,
    now: Mutex<WindowState>,
}

#[derive(Default)]
struct WindowState {
    /// Process for the first window, started before the trusted process was ready.
    prestarted: Option<WindowProcess>,
    open: Option<Open>,
}

/// State of the open window.
struct Open {
    lines: Sender<Line>,
    /// `true` if a change notification is already queued.
    is_change_queued: Arc<AtomicBool>,
    /// `true` if the window was requested and has not confirmed yet that it is on the screen.
    wanted: bool,
    /// `true` once the window has been on the screen.
    shown: bool,
}

/// Message to the window's process. A command's result comes with the command's permit, which is released after the
/// message has been written.
struct Line(ToWindow, Option<OwnedSemaphorePermit>);

impl Window {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        desktop: DialogConsent,
        home: PathBuf,
        prestarted: Option<WindowProcess>,
    ) -> Self {
        Self(Arc::new(Parts {
            backend,
            desktop,
            home,
            now: Mutex::new(WindowState { prestarted, open: None }),
        }))
    }

    /// Opens the window or brings it to the front.
    pub(crate) fn open(&self) {
        self.open_in(&mut self.now());
    }

    /// Notifies the page of a change, if the window is open.
    pub(crate) fn notify_changed(&self) {
        if let Some(open) = &self.now().open
            && !open.is_change_queued.swap(true, Ordering::Relaxed)
        {
            open.send(ToWindow::Changed);
        }
    }

    fn open_in(&self, now: &mut WindowState) {
        if let Some(open) = &mut now.open {
            open.wanted = true;
            return open.send(ToWindow::Show);
        }
        let process = now.prestarted.take().map_or_else(WindowProcess::start, Ok);
        match process.and_then(|process| self.serve(process)) {
            Ok(open) => now.open = Some(open),
            Err(error) => tracing::error!(%error, "failed to open the window"),
        }
    }

    /// Serves a window's process on two threads. The threads exit when the process exits.
    fn serve(&self, window: WindowProcess) -> io::Result<Open> {
        let WindowProcess { process, channel: from } = window;
        let to = from.try_clone()?;
        let (lines, queue) = channel();
        let is_change_queued = Arc::<AtomicBool>::default();
        let open = Open {
            lines: lines.clone(),
            is_change_queued: is_change_queued.clone(),
            wanted: true,
            shown: false,
        };
        open.send(ToWindow::Show);
        thread::Builder::new()
            .name("to-window".into())
            .spawn(move || write(&queue, to, &is_change_queued))?;
        let this = self.clone();
        thread::Builder::new().name("from-window".into()).spawn(move || {
            let why = this.read(from, &lines);
            drop(process);
            this.ended(&why);
        })?;
        Ok(open)
    }

    /// Runs the page's commands until the window's process exits.
    fn read(&self, from: UnixStream, lines: &Sender<Line>) -> FrameError {
        let Parts { backend, desktop, home, .. } = &*self.0;
        let state = Arc::new(AppState::new(backend.clone(), desktop.clone(), home.clone()));
        let room = Arc::new(Semaphore::new(MAX_CALLS));
        let mut from = BufReader::new(from);
        loop {
            match read_frame(&mut from) {
                Ok(FromWindow::Call { id, command, arguments }) => {
                    let room = room.clone().try_acquire_owned().ok();
                    let call = run(state.clone(), room, lines.clone(), (id, command, arguments));
                    tauri::async_runtime::spawn(call);
                }
                Ok(FromWindow::Shown { number }) => {
                    state.pickers.set_parent(number);
                    if let Some(open) = &mut self.now().open {
                        (open.wanted, open.shown) = (false, true);
                    }
                }
                Err(why) => {
                    state.pickers.close();
                    return why;
                }
            }
        }
    }

    fn ended(&self, why: &FrameError) {
        let mut now = self.now();
        match now.open.take() {
            Some(Open { shown: false, .. }) => tracing::error!(%why, "failed to open the window"),
            // The window was already closing when it was requested.
            Some(Open { wanted: true, .. }) => self.open_in(&mut now),
            Some(_) | None => tracing::debug!(%why, "the window is closed"),
        }
    }

    fn now(&self) -> MutexGuard<'_, WindowState> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn send(&self, line: ToWindow) {
        // Ignores the error: the window's process may have exited.
        let _ = self.lines.send(Line(line, None));
    }
}

async fn run(
    state: Arc<AppState>,
    room: Option<OwnedSemaphorePermit>,
    lines: Sender<Line>,
    (id, command, arguments): (u64, String, Value),
) {
    let outcome = match room {
        Some(_) => commands::run(&state, &command, arguments).await,
        None => Err(CommandError::refused("too many commands in progress in this window; try again")),
    };
    // Ignores the error: the window was closed.
    let _ = lines.send(Line(ToWindow::Answer { id, outcome }, room));
}

fn write(queue: &Receiver<Line>, mut to: UnixStream, is_change_queued: &AtomicBool) {
    for Line(line, _room) in queue {
        if let ToWindow::Changed = line {
            is_change_queued.store(false, Ordering::Relaxed);
        }
        let written = match (write_frame(&mut to, &line), line) {
            (Err(long @ FrameError::TooLong), ToWindow::Answer { id, .. }) => {
                let outcome = Err(CommandError::refused(long));
                write_frame(&mut to, &ToWindow::Answer { id, outcome })
            }
            (written, _) => written,
        };
        if written.is_err() {
            // The reading thread gets the error too.
            return;
        }
    }
}
