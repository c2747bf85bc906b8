//! The running app: tray icon, window and dialogs for one [`Backend`].
//!
//! - Closing the window does not stop the app. Only Quit does, after closing all sessions.
//! - Nothing blocks the main thread. Starting the program again opens the window of the running app.

use crate::backend::Backend;
use crate::consent::{DialogConsent, DialogLoop};
use crate::options::AppOptions;
use crate::single_instance;
use crate::tray::{MenuAction, Tray, TrayState};
use crate::window::{BypassingServers, Window, WindowProcess, bypassing_servers, context};
use ironcurtain_consent::Consent;
use ironcurtain_protocol::{Reply, Request};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tauri::{AppHandle, Manager, RunEvent};

/// Maximum time for which Quit waits for sessions to close.
const QUIT_TIMEOUT: Duration = ironcurtain_daemon::SHUTDOWN_TIMEOUT.saturating_add(Duration::from_secs(1));
/// Delay before displaying the first change after a quiet period, so that rapid successive changes are displayed
/// together.
const DEBOUNCE: Duration = Duration::from_millis(30);
/// Minimum interval between updates of the display. Drawing is expensive, and users cannot read faster.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(700);
/// Minimum interval between two searches for servers that bypass IronCurtain. Each search reads every agent's settings.
const BYPASS_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Reason the app failed to run.
#[derive(Debug, thiserror::Error)]
#[error("failed to start the desktop app: {0}")]
pub struct ShellError(#[from] tauri::Error);

/// State shared by the tray, the window and the dialog.
struct Shell {
    backend: Arc<dyn Backend>,
    desktop: DialogConsent,
    window: Window,
}

/// Runs the app on this thread until the user quits. `ahead` is a window process that was started early for the first
/// window.
///
/// # Errors
/// Returns [`ShellError`] if there is no display or the toolkit does not start.
pub fn run(
    options: AppOptions,
    backend: Arc<dyn Backend>,
    desktop: DialogConsent,
    dialogs: DialogLoop,
    home: PathBuf,
    prestarted: Option<WindowProcess>,
) -> Result<(), ShellError> {
    let window = Window::new(backend.clone(), desktop.clone(), home, prestarted);
    let first = window.clone();
    let builder = tauri::Builder::default();
    #[cfg(not(target_os = "linux"))]
    let builder = builder.invoke_handler(crate::consent::web::commands());
    let app = builder
        .manage(Shell { backend, desktop, window: window.clone() })
        .on_menu_event(|app, event| {
            if let Some(action) = MenuAction::from_id(event.id().as_ref()) {
                perform(app, action);
            }
        })
        .setup(move |app| {
            let handle = app.handle();
            #[cfg(target_os = "linux")]
            dialogs.spawn();
            #[cfg(not(target_os = "linux"))]
            dialogs.spawn(handle);
            let tray = Tray::build(handle, &TrayState::default());
            let shown = tray.is_shown();
            app.manage(tray);
            if !options.background || !shown {
                first.open();
            }
            tauri::async_runtime::spawn(follow(handle.clone()));
            tauri::async_runtime::spawn(exit_when_ended(handle.clone()));
            Ok(())
        })
        .build(context())?;
    let _answers = single_instance::answer(move || window.open());
    app.run(|_, event| {
        // An exit without a code means that the last window was closed. This must not stop the app.
        if let RunEvent::ExitRequested { api, code: None, .. } = &event {
            api.prevent_exit();
        }
    });
    Ok(())
}

/// Updates the tray and the window after each change.
async fn follow(app: AppHandle) {
    let state = app.state::<Shell>();
    let mut changes = state.backend.changes();
    let mut waiting = state.desktop.waiting();
    let (mut surveyed, mut bypassing) = (None::<Instant>, BypassingServers::default());
    loop {
        let shown = Instant::now();
        if surveyed.is_none_or(|surveyed| surveyed.elapsed() >= BYPASS_CHECK_INTERVAL) {
            bypassing = bypassing_servers(&*state.backend).await;
            surveyed = Some(shown);
        }
        refresh(&app, bypassing).await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { break },
            changed = waiting.changed() => if changed.is_err() { break },
        }
        tokio::time::sleep(MIN_UPDATE_INTERVAL.saturating_sub(shown.elapsed()).max(DEBOUNCE)).await;
    }
    // The trusted process has exited, so its last state is cleared.
    show(&app, TrayState::default());
}

/// Exits the app after the trusted process has exited for any reason.
async fn exit_when_ended(app: AppHandle) {
    let ended = app.state::<Shell>().backend.ended();
    ended.await;
    app.exit(0);
}

async fn refresh(app: &AppHandle, bypassing: BypassingServers) {
    let state = app.state::<Shell>();
    let reply = state.backend.request(Request::Status).await;
    let status = if let Reply::Status(status) = reply { Some(status) } else { None };
    let reply = state.backend.request(Request::Sessions).await;
    // If the sessions are unknown, reports no status. Otherwise, it would look as if no agent were connected.
    let (status, sessions) =
        if let Reply::Sessions(sessions) = reply { (status, sessions) } else { (None, Vec::new()) };
    let questions = state.desktop.waiting().borrow().clone();
    let reply = state.backend.request(Request::Questions).await;
    let missed = if let Reply::Questions(all) = reply { all.missed } else { Vec::new() };
    show(app, TrayState { status, sessions, questions, missed, bypassing });
    state.window.notify_changed();
}

fn show(app: &AppHandle, state: TrayState) {
    let handle = app.clone();
    let update = move || handle.state::<Tray>().update(&handle, &state);
    if let Err(error) = app.run_on_main_thread(update) {
        tracing::warn!(%error, "failed to update the tray icon");
    }
}

/// Sends a request to the trusted process. If the request is refused, shows the reason to the user.
fn ask(app: &AppHandle, request: Request) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let reply = app.state::<Shell>().backend.request(request).await;
        if let Reply::Failed { message, .. } = reply {
            tracing::warn!(message, "the trusted process refused a request from the tray menu");
            app.state::<Shell>().desktop.notify(&message);
        }
    });
}

/// Pauses or resumes all current sessions of the agent with this name.
fn pause(app: &AppHandle, agent: String, on: bool) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let reply = app.state::<Shell>().backend.request(Request::Sessions).await;
        let Reply::Sessions(sessions) = reply else { return };
        for session in sessions.into_iter().filter(|session| session.client.name == agent) {
            let session = session.id;
            ask(&app, if on { Request::Pause { session } } else { Request::Resume { session } });
        }
    });
}

fn perform(app: &AppHandle, action: MenuAction) {
    match action {
        MenuAction::Questions => app.state::<Shell>().desktop.raise(),
        MenuAction::Open => app.state::<Shell>().window.open(),
        MenuAction::End { session } => ask(app, Request::EndSession { session }),
        MenuAction::Pause { agent, on } => pause(app, agent, on),
        MenuAction::Lockdown { on } => ask(app, Request::Lockdown { on, end_servers: false }),
        MenuAction::AskAgain { question } => {
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                if let Err(problem) = app.state::<Shell>().backend.ask_again(question).await {
                    app.state::<Shell>().desktop.notify(&problem.to_string());
                }
            });
        }
        MenuAction::Quit => {
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                let backend = app.state::<Shell>().backend.clone();
                let ending = async {
                    backend.request(Request::Shutdown).await;
                    backend.ended().await;
                };
                if tokio::time::timeout(QUIT_TIMEOUT, ending).await.is_err() {
                    tracing::warn!("sessions did not close in time; they are killed with this process");
                }
                app.exit(0);
            });
        }
    }
}
