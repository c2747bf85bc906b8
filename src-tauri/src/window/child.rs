//! The window's process. It shows the page and forwards the page's commands to the trusted process.
//!
//! - The process stores nothing. It exits when its window is closed or the trusted process exits.
//! - INVARIANT: its only connection to the trusted process is an inherited socket. Its own child processes do not
//!   inherit this socket.

#[cfg(target_os = "linux")]
mod engine;

use super::command_error::CommandError;
use super::wire::{FromWindow, ToWindow};
#[cfg(target_os = "linux")]
use crate::window_stack;
use ironcurtain_protocol::{FrameError, read_frame, write_frame};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tauri::ipc::{Invoke, InvokeBody, InvokeError, InvokeResolver, InvokeResponseBody};
use tauri::{AppHandle, Context, Emitter, Manager, WebviewWindow, WebviewWindowBuilder, Wry};

/// Label of the window, for the capability in `tauri.conf.json`.
const LABEL: &str = "main";
/// Event that makes the page query the state again.
const CHANGED: &str = "changed";
/// Name of the process. Linux shows at most 15 characters.
#[cfg(target_os = "linux")]
const NAME: &std::ffi::CStr = c"ironcurtain-win";
/// Maximum time for the toolkit to exit after the window was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason the window could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// IronCurtain did not start this process.
    #[error(
        "`--window` is for IronCurtain itself; start `ironcurtain-desktop` without it to open the window"
    )]
    NotOurs,
    /// Connecting to the trusted process failed.
    #[error("failed to connect to IronCurtain: {0}")]
    Channel(#[from] io::Error),
    /// The toolkit failed to open the window.
    #[error("failed to open the window: {0}")]
    Toolkit(#[from] tauri::Error),
}

/// The page's commands that are waiting for their results.
struct Calls {
    to: Mutex<UnixStream>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, InvokeResolver<Wry>>,
    next: u64,
}

/// Runs as the window's process until the window is closed.
///
/// # Errors
/// Returns a [`WindowError`] if the window cannot be opened.
pub fn run() -> Result<(), WindowError> {
    let from = channel()?;
    // Without this name, the process would be named after the link through which it was started.
    #[cfg(target_os = "linux")]
    rustix::thread::set_name(NAME).map_err(io::Error::from)?;
    let to = from.try_clone()?;
    let calls = Arc::new(Calls { to: Mutex::new(to), waiting: Mutex::default() });
    let handed_on = calls.clone();
    let app = tauri::Builder::default()
        .invoke_handler(move |invoke| {
            handed_on.send(invoke);
            true
        })
        .build(context())?;
    // The engine takes most of the time until the window is on the screen, so it starts and loads the page before the
    // window is requested.
    open_hidden(app.handle())?;
    let handle = app.handle().clone();
    thread::Builder::new().name("trusted".into()).spawn(move || listen(&handle, from, &calls))?;
    app.run(|_, _| {});
    Ok(())
}

/// Returns the context with the embedded page, icons and capability.
pub(crate) fn context() -> Context {
    tauri::generate_context!()
}

/// Returns the inherited socket, which is standard input.
fn channel() -> Result<UnixStream, WindowError> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if !input.metadata()?.file_type().is_socket() {
        return Err(WindowError::NotOurs);
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?).map_err(io::Error::from)?;
    Ok(UnixStream::from(OwnedFd::from(input)))
}

/// Handles messages from the trusted process until it exits.
fn listen(app: &AppHandle, from: UnixStream, calls: &Arc<Calls>) {
    let mut from = BufReader::new(from);
    loop {
        match read_frame(&mut from) {
            Ok(ToWindow::Answer { id, outcome }) => calls.answer(id, |resolver| {
                let result =
                    outcome.map(|result| InvokeResponseBody::Json(String::from(Box::<str>::from(result))));
                resolver.respond(result.map_err(InvokeError::from));
            }),
            Ok(ToWindow::Changed) => {
                if let Err(error) = app.emit_to(LABEL, CHANGED, ()) {
                    tracing::warn!(%error, "failed to notify the page of a change");
                }
            }
            Ok(ToWindow::Show) => {
                let (handle, calls) = (app.clone(), calls.clone());
                let shown = app.run_on_main_thread(move || {
                    // A closing window does not confirm that it is shown, so the app opens a new one.
                    let _ = show(&handle).map(|number| calls.send_to_app(&FromWindow::Shown { number }));
                });
                if let Err(error) = shown {
                    tracing::warn!(%error, "failed to show the window");
                }
            }
            Err(why) => {
                tracing::debug!(%why, "the trusted process closed the connection");
                app.exit(0);
                // Exits even if the toolkit hangs.
                thread::sleep(EXIT_TIMEOUT);
                std::process::exit(1);
            }
        }
    }
}

/// Creates the window without showing it, and loads the page.
fn open_hidden(app: &AppHandle) -> tauri::Result<()> {
    #[cfg(target_os = "linux")]
    let page = engine::empty()?;
    #[cfg(not(target_os = "linux"))]
    let page = tauri::WebviewUrl::App("index.html".into());
    let window = WebviewWindowBuilder::new(app, LABEL, page)
        .title("IronCurtain")
        .inner_size(1000.0, 700.0)
        .min_inner_size(640.0, 480.0)
        .visible(false)
        .build()?;
    #[cfg(target_os = "linux")]
    engine::prepare(&window)?;
    Ok(())
}

/// Shows the window, or brings it to the front. Returns its X11 id, if it has one.
fn show(app: &AppHandle) -> tauri::Result<Option<u64>> {
    let window = app.get_webview_window(LABEL).ok_or(tauri::Error::WindowNotFound)?;
    if !window.is_visible()? {
        window.show()?;
        return x11_id(&window);
    }
    #[cfg(target_os = "linux")]
    window_stack::raise(&window.gtk_window()?);
    #[cfg(not(target_os = "linux"))]
    {
        window.unminimize()?;
        window.set_focus()?;
    }
    x11_id(&window)
}

#[cfg(target_os = "linux")]
fn x11_id(window: &WebviewWindow) -> tauri::Result<Option<u64>> {
    Ok(window_stack::x11_id(&window.gtk_window()?))
}

#[cfg(not(target_os = "linux"))]
fn x11_id(_: &WebviewWindow) -> tauri::Result<Option<u64>> {
    Ok(None)
}

impl Calls {
    /// Forwards a page command to the trusted process.
    fn send(&self, invoke: Invoke) {
        let Invoke { message, resolver, .. } = invoke;
        let InvokeBody::Json(arguments) = message.payload() else {
            return resolver.reject(CommandError::malformed("command arguments must be an object"));
        };
        let id = {
            let mut waiting = self.waiting();
            waiting.next += 1;
            let id = waiting.next;
            waiting.calls.insert(id, resolver);
            id
        };
        let (command, arguments) = (message.command().to_owned(), arguments.clone());
        if let Err(problem) = self.send_to_app(&FromWindow::Call { id, command, arguments }) {
            self.answer(id, |resolver| resolver.reject(CommandError::refused(problem)));
        }
    }

    fn answer(&self, id: u64, answer: impl FnOnce(InvokeResolver<Wry>)) {
        let waits = self.waiting().calls.remove(&id);
        if let Some(resolver) = waits {
            answer(resolver);
        }
    }

    fn send_to_app(&self, line: &FromWindow) -> Result<(), FrameError> {
        write_frame(&mut *self.to.lock().unwrap_or_else(PoisonError::into_inner), line)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
