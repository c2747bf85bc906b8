//! The window's own process: it draws the page, and hands each command of it to the trusted process, which started it.
//!
//! - It has nothing of its own: it ends with its window, and when the trusted process is gone, and its memory with it.
//! - INVARIANT: its only way to the trusted process is the socket that it was started with. Nothing that it starts gets that.

#[cfg(target_os = "linux")]
mod engine;

use super::command_error::CommandError;
use super::wire::{FromWindow, ToWindow};
#[cfg(target_os = "linux")]
use crate::in_front;
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

/// Label of the window; the capability in `tauri.conf.json` names it.
const LABEL: &str = "main";
/// Event that says: ask again.
const CHANGED: &str = "changed";
/// Name of the process, of which the system keeps 15 letters.
#[cfg(target_os = "linux")]
const NAME: &std::ffi::CStr = c"ironcurtain-win";
/// The time that the toolkit has to end, once nobody needs the window.
const ENDING: Duration = Duration::from_secs(1);

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Nobody who runs IronCurtain started it.
    #[error(
        "`--window` is for IronCurtain itself; start `ironcurtain-desktop` without it to open the window"
    )]
    NotOurs,
    /// The operating system's answer.
    #[error("the window cannot reach IronCurtain: {0}")]
    Channel(#[from] io::Error),
    /// The toolkit's answer.
    #[error("the window could not be opened: {0}")]
    Toolkit(#[from] tauri::Error),
}

/// The calls that the page waits for.
struct Calls {
    to: Mutex<UnixStream>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, InvokeResolver<Wry>>,
    next: u64,
}

/// Is the window, from now until it is closed.
///
/// # Errors
/// [`WindowError`]
pub fn run() -> Result<(), WindowError> {
    let from = channel()?;
    // Else it has the name of the link by which it was started.
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
        .setup(move |app| {
            let handle = app.handle().clone();
            thread::Builder::new().name("trusted".into()).spawn(move || listen(&handle, from, &calls))?;
            Ok(())
        })
        .build(context())?;
    app.run(|_, _| {});
    Ok(())
}

/// The page, the icons and the capability, as they were built in.
pub(crate) fn context() -> Context {
    tauri::generate_context!()
}

/// The socket that this process was started with, which is its input no more.
fn channel() -> Result<UnixStream, WindowError> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if !input.metadata()?.file_type().is_socket() {
        return Err(WindowError::NotOurs);
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?).map_err(io::Error::from)?;
    Ok(UnixStream::from(OwnedFd::from(input)))
}

/// Does what the trusted process says, until it is gone.
fn listen(app: &AppHandle, from: UnixStream, calls: &Arc<Calls>) {
    let mut from = BufReader::new(from);
    let mut begun = false;
    loop {
        match read_frame(&mut from) {
            Ok(ToWindow::Answer { id, outcome }) => calls.answer(id, |resolver| {
                let told = outcome.map(|told| InvokeResponseBody::Json(String::from(Box::<str>::from(told))));
                resolver.respond(told.map_err(InvokeError::from));
            }),
            Ok(ToWindow::Changed) => {
                if let Err(error) = app.emit_to(LABEL, CHANGED, ()) {
                    tracing::warn!(%error, "the page could not be told of a change");
                }
            }
            Ok(ToWindow::Show) => {
                let (handle, calls, is_first) =
                    (app.clone(), calls.clone(), !std::mem::replace(&mut begun, true));
                let shown = app.run_on_main_thread(move || {
                    let shown = if is_first { open(&handle) } else { raise(&handle) };
                    match shown.map(|number| calls.say(&FromWindow::Shown { number })) {
                        Err(error) if is_first => {
                            tracing::error!(%error, "the window could not be opened");
                            handle.exit(1);
                        }
                        // One that is closing says nothing, and the app opens another.
                        Ok(_) | Err(_) => {}
                    }
                });
                if let Err(error) = shown {
                    tracing::warn!(%error, "the window could not be shown");
                }
            }
            Err(why) => {
                tracing::debug!(%why, "nobody is behind the window any more");
                app.exit(0);
                // A toolkit that hangs does not keep the process.
                thread::sleep(ENDING);
                std::process::exit(1);
            }
        }
    }
}

/// Opens the window. Tells its number.
fn open(app: &AppHandle) -> tauri::Result<Option<u64>> {
    #[cfg(target_os = "linux")]
    let page = engine::empty()?;
    #[cfg(not(target_os = "linux"))]
    let page = tauri::WebviewUrl::App("index.html".into());
    let window = WebviewWindowBuilder::new(app, LABEL, page)
        .title("IronCurtain")
        .inner_size(1000.0, 700.0)
        .min_inner_size(640.0, 480.0)
        .build()?;
    #[cfg(target_os = "linux")]
    engine::prepare(&window)?;
    number(&window)
}

/// Brings the window to the front. Tells its number.
fn raise(app: &AppHandle) -> tauri::Result<Option<u64>> {
    let window = app.get_webview_window(LABEL).ok_or(tauri::Error::WindowNotFound)?;
    #[cfg(target_os = "linux")]
    in_front::bring(&window.gtk_window()?);
    #[cfg(not(target_os = "linux"))]
    {
        window.unminimize()?;
        window.set_focus()?;
    }
    number(&window)
}

#[cfg(target_os = "linux")]
fn number(window: &WebviewWindow) -> tauri::Result<Option<u64>> {
    Ok(in_front::number(&window.gtk_window()?))
}

#[cfg(not(target_os = "linux"))]
fn number(_: &WebviewWindow) -> tauri::Result<Option<u64>> {
    Ok(None)
}

impl Calls {
    /// Hands a command of the page on.
    fn send(&self, invoke: Invoke) {
        let Invoke { message, resolver, .. } = invoke;
        let InvokeBody::Json(arguments) = message.payload() else {
            return resolver.reject(CommandError::malformed("the arguments of a command have names"));
        };
        let id = {
            let mut waiting = self.waiting();
            waiting.next += 1;
            let id = waiting.next;
            waiting.calls.insert(id, resolver);
            id
        };
        let (command, arguments) = (message.command().to_owned(), arguments.clone());
        if let Err(problem) = self.say(&FromWindow::Call { id, command, arguments }) {
            self.answer(id, |resolver| resolver.reject(CommandError::refused(problem)));
        }
    }

    fn answer(&self, id: u64, answer: impl FnOnce(InvokeResolver<Wry>)) {
        let waits = self.waiting().calls.remove(&id);
        if let Some(resolver) = waits {
            answer(resolver);
        }
    }

    fn say(&self, line: &FromWindow) -> Result<(), FrameError> {
        write_frame(&mut *self.to.lock().unwrap_or_else(PoisonError::into_inner), line)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
