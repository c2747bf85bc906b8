//! Web engine windows that show questions, on systems without a native dialog.
//!
//! - [`Pages`] decides which question to show and when it is settled. This module creates the windows and forwards
//!   their events.
//! - A window can answer only the question for which it was opened, identified by its label. Closing the window denies
//!   the question.
//! - The lock is released before a window is created, because a new window reports its focus synchronously.
//! - Sleep is detected by comparing clocks. A locked screen is not detected, but windows below the lock screen do not
//!   receive the keyboard focus.

use super::arming::Event;
use super::page::{Page, PageContent, PageEvent, PageUpdate};
use super::pages::Pages;
use super::{Command, LoopParts};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tauri::ipc::Invoke;
use tauri::{AppHandle, Manager, State, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};

/// Interval between checks for expired questions and for the next page.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Pending questions, shared with the app's commands.
pub(crate) struct Questions(Mutex<Pages>);

/// The page's question has already been settled.
#[derive(Debug, thiserror::Error, serde::Serialize)]
#[error("this question is already settled")]
pub(crate) struct NoQuestionError;

/// Runs the queue of questions.
pub(super) async fn run(parts: LoopParts, app: AppHandle) {
    let LoopParts { home, mut commands, waiting, .. } = parts;
    app.manage(Questions(Mutex::new(Pages::new(home, waiting))));
    loop {
        match tokio::time::timeout(POLL_INTERVAL, commands.recv()).await {
            Ok(Some(command)) => handle(&app, command),
            Ok(None) => return,
            Err(_) => {}
        }
        show(&app);
    }
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn handle(app: &AppHandle, command: Command) {
    let questions = app.state::<Questions>();
    match command {
        Command::Ask(question, sink) => questions.lock().ask(&question, sink, Instant::now()),
        Command::Withdraw(id) => questions.lock().end(&id, None),
        Command::Locked(locked) => questions.lock().set_locked(locked),
        Command::Asleep(asleep) => questions.lock().set_asleep(asleep),
        Command::Raise => {
            let open = questions.lock().page().map(|page| label(page));
            if let Some(window) = open.and_then(|label| app.get_webview_window(&label)) {
                // Ignores the error: the window can be used even without the focus.
                let _ = window.set_focus();
            }
        }
        Command::Notify(notice) => tracing::info!(notice, "notices are not supported on this platform"),
        // The other commands concern only the native dialog.
        _ => {}
    }
}

/// Returns the page that a window shows.
fn page_of<'a>(pages: &'a mut Pages, window: &str) -> Result<&'a mut Page, NoQuestionError> {
    pages.page().filter(|page| label(page) == window).ok_or(NoQuestionError)
}

/// Opens the window of the current page and closes all other windows.
fn show(app: &AppHandle) {
    let shown = {
        let questions = app.state::<Questions>();
        let mut pages = questions.lock();
        pages.poll(Instant::now(), SystemTime::now()).map(|page| (label(page), page.title()))
    };
    for (name, window) in app.webview_windows() {
        if name.starts_with(LABEL) && shown.as_ref().is_none_or(|(label, _)| *label != name) {
            // A window that cannot be destroyed gets no further replies anyway.
            let _ = window.destroy();
        }
    }
    if let Some((label, title)) = shown
        && app.get_webview_window(&label).is_none()
        && let Err(error) = open(app, &label, &title)
    {
        tracing::error!(%error, "failed to show the question, so it is denied");
        closed(app, &label);
    }
}

/// Prefix of the window labels.
const LABEL: &str = "consent-";

/// Returns the window label of a page.
fn label(page: &Page) -> String {
    format!("{LABEL}{}", page.number())
}

fn open(app: &AppHandle, label: &str, title: &str) -> tauri::Result<()> {
    let window = WebviewWindowBuilder::new(app, label, WebviewUrl::App("consent.html".into()))
        .title(title)
        .inner_size(640.0, 620.0)
        .min_inner_size(480.0, 360.0)
        .always_on_top(true)
        .focused(false)
        .build()?;
    sized(&window)?;
    let window_clone = window.clone();
    window.on_window_event(move |event| match event {
        WindowEvent::Focused(on) => forward_event(&window_clone, Event::Focused(*on)),
        WindowEvent::Moved(_) | WindowEvent::Resized(_) | WindowEvent::ScaleFactorChanged { .. } => {
            forward_event(&window_clone, Event::Changed);
            // If the size is unknown, the page keeps its last known size.
            let _ = sized(&window_clone);
        }
        WindowEvent::CloseRequested { .. } | WindowEvent::Destroyed => {
            closed(window_clone.app_handle(), window_clone.label())
        }
        _ => {}
    });
    Ok(())
}

fn forward_event(window: &WebviewWindow, event: Event) {
    if let Ok(page) = page_of(&mut window.state::<Questions>().lock(), window.label()) {
        page.on_window_event(event, Instant::now());
    }
}

/// Reports the window's height to its page.
fn sized(window: &WebviewWindow) -> tauri::Result<()> {
    let size = window.inner_size()?.to_logical::<f64>(window.scale_factor()?);
    if let Ok(page) = page_of(&mut window.state::<Questions>().lock(), window.label()) {
        page.set_window_height(size.height, Instant::now());
    }
    Ok(())
}

/// Denies the question because its window was closed.
fn closed(app: &AppHandle, label: &str) {
    let questions = app.state::<Questions>();
    let mut pages = questions.lock();
    let no = page_of(&mut pages, label).ok().and_then(|page| Some((page.id().to_owned(), page.close()?)));
    if let Some((id, no)) = no {
        pages.end(&id, Some(no));
    }
}

/// Returns the static content of the window's page.
#[tauri::command]
pub(crate) fn consent_page(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<PageContent, NoQuestionError> {
    page_of(&mut questions.lock(), window.label()).map(|page| page.content())
}

/// Returns the changing content of the window's page.
#[tauri::command]
pub(crate) fn consent_changing(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<PageUpdate, NoQuestionError> {
    page_of(&mut questions.lock(), window.label()).map(|page| page.update(Instant::now()))
}

/// Handles a report from the window's page.
#[tauri::command]
pub(crate) fn consent_tell(
    window: WebviewWindow,
    questions: State<'_, Questions>,
    number: u64,
    did: PageEvent,
) -> Result<PageUpdate, NoQuestionError> {
    let now = Instant::now();
    let mut pages = questions.lock();
    let page = page_of(&mut pages, window.label())?;
    let (result, works) = page.on(number, did, now);
    let (id, changing) = (page.id().to_owned(), page.update(now));
    if works {
        pages.prolong_all(now);
    }
    if result.is_some() {
        pages.end(&id, result);
    }
    Ok(changing)
}

/// Returns the handler of the windows' commands, for the app builder.
pub(crate) fn commands() -> impl Fn(Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![consent_page, consent_changing, consent_tell]
}
