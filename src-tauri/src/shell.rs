//! The running app: tray, window and dialog around one [`Backend`].
//!
//! - Closing the window leaves the app running; only Quit ends it, after every session has ended.
//! - Nothing here waits on the main thread.

use crate::backend::Backend;
use crate::consent::{DeskSeat, Desktop};
use crate::options::Options;
use crate::tray::{Choice, Facts, Tray};
use crate::window::{self, Desk};
use ironcurtain_protocol::{Reply, Request};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tauri::{AppHandle, Manager, RunEvent};

/// The time for which Quit waits for the sessions to end.
const ENDING: Duration = ironcurtain_daemon::ENDING.saturating_add(Duration::from_secs(1));
/// Changes that come faster than this are shown together.
const SETTLE: Duration = Duration::from_millis(30);

/// Why the app could not run.
#[derive(Debug, thiserror::Error)]
#[error("the desktop could not be reached: {0}")]
pub struct ShellError(#[from] tauri::Error);

/// Runs the app on this thread until the person quits.
///
/// # Errors
/// [`ShellError`], when there is no display or the toolkit does not start.
pub fn run(
    options: Options,
    backend: Arc<dyn Backend>,
    desktop: Desktop,
    seat: DeskSeat,
    home: PathBuf,
) -> Result<(), ShellError> {
    let app = tauri::Builder::default()
        .manage(Desk { backend, desktop, home })
        .invoke_handler(window::commands())
        .on_menu_event(|app, event| {
            if let Some(choice) = Choice::from_id(event.id().as_ref()) {
                choose(app, choice);
            }
        })
        .setup(move |app| {
            let handle = app.handle();
            seat.sit();
            let tray = Tray::build(handle, &Facts::default());
            let shown = tray.is_shown();
            app.manage(tray);
            if !options.background || !shown {
                window::open(handle);
            }
            tauri::async_runtime::spawn(follow(handle.clone()));
            tauri::async_runtime::spawn(leave(handle.clone()));
            Ok(())
        })
        .build(tauri::generate_context!())?;
    app.run(|_, event| {
        // Closing the last window is not quitting; `exit` from Quit carries a code.
        if let RunEvent::ExitRequested { api, code: None, .. } = event {
            api.prevent_exit();
        }
    });
    Ok(())
}

/// Keeps tray and window up to date.
async fn follow(app: AppHandle) {
    let desk = app.state::<Desk>();
    let mut changes = desk.backend.changes();
    let mut waiting = desk.desktop.waiting();
    loop {
        refresh(&app).await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { break },
            changed = waiting.changed() => if changed.is_err() { break },
        }
        tokio::time::sleep(SETTLE).await;
    }
    // The trusted process is gone: say so rather than show what was.
    show(&app, Facts::default());
}

/// Ends the app when the trusted process has ended, whoever told it to.
async fn leave(app: AppHandle) {
    let ended = app.state::<Desk>().backend.ended();
    ended.await;
    app.exit(0);
}

async fn refresh(app: &AppHandle) {
    let desk = app.state::<Desk>();
    let reply = desk.backend.request(Request::Status).await;
    let status = if let Reply::Status(status) = reply { Some(status) } else { None };
    let reply = desk.backend.request(Request::Sessions).await;
    let sessions = if let Reply::Sessions(sessions) = reply { sessions } else { Vec::new() };
    let questions = desk.desktop.waiting().borrow().len();
    show(app, Facts { status, sessions, questions });
    window::tell(app);
}

fn show(app: &AppHandle, facts: Facts) {
    let handle = app.clone();
    let update = move || handle.state::<Tray>().update(&handle, &facts);
    if let Err(error) = app.run_on_main_thread(update) {
        tracing::warn!(%error, "the tray icon could not be brought up to date");
    }
}

fn choose(app: &AppHandle, choice: Choice) {
    match choice {
        Choice::Questions => app.state::<Desk>().desktop.raise(),
        Choice::Open => window::open(app),
        Choice::End { session } => {
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                let reply = app.state::<Desk>().backend.request(Request::EndSession { session }).await;
                if let Reply::Failed { message, .. } = reply {
                    tracing::warn!(message, "the session could not be ended");
                }
            });
        }
        Choice::Quit => {
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                let backend = app.state::<Desk>().backend.clone();
                let ending = async {
                    backend.request(Request::Shutdown).await;
                    backend.ended().await;
                };
                if tokio::time::timeout(ENDING, ending).await.is_err() {
                    tracing::warn!("the sessions did not end in time; they die with this process");
                }
                app.exit(0);
            });
        }
    }
}
