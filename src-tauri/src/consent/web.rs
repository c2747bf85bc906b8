//! The windows of the system's web engine in which questions are asked where there is no native dialog of ours.
//!
//! - Which question is shown, and what ends it, [`Pages`] says; this makes the windows and hands on what happens to them.
//! - A window answers for the question that it was opened for, by its label; any other is told nothing. Closing it is a no.
//! - The windows are made outside of the lock: making one tells of its focus at once.
//! - The machine's sleep is seen by its clocks. That the screen is locked is told by nobody here; behind it a window has no keyboard.

use super::arming::Event;
use super::page::{Changing, Did, Drawn, Page};
use super::pages::Pages;
use super::{Command, LoopParts};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tauri::ipc::Invoke;
use tauri::{AppHandle, Manager, State, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};

/// The time between two looks at whether a question is late, or the next may be shown.
const LOOK: Duration = Duration::from_millis(200);

/// The questions, as the app's commands reach them.
pub(crate) struct Questions(Mutex<Pages>);

/// Why a page is told nothing.
#[derive(Debug, thiserror::Error, serde::Serialize)]
#[error("this window asks nothing any more")]
pub(crate) struct NoQuestionError;

/// Shows questions from now on.
pub(super) async fn run(parts: LoopParts, app: AppHandle) {
    let LoopParts { home, mut commands, waiting, .. } = parts;
    app.manage(Questions(Mutex::new(Pages::new(home, waiting))));
    loop {
        match tokio::time::timeout(LOOK, commands.recv()).await {
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
                // One that cannot come to the front is still there.
                let _ = window.set_focus();
            }
        }
        Command::Tell(notice) => tracing::info!(notice, "there is nobody who shows this here"),
        // The rest is what a native dialog tells its own queue.
        _ => {}
    }
}

/// The page of a window.
fn page_of<'a>(pages: &'a mut Pages, window: &str) -> Result<&'a mut Page, NoQuestionError> {
    pages.page().filter(|page| label(page) == window).ok_or(NoQuestionError)
}

/// Has the window there that shows what is to be shown, and no other.
fn show(app: &AppHandle) {
    let shown = {
        let questions = app.state::<Questions>();
        let mut pages = questions.lock();
        pages.look(Instant::now(), SystemTime::now()).map(|page| (label(page), page.title()))
    };
    for (name, window) in app.webview_windows() {
        if name.starts_with(LABEL) && shown.as_ref().is_none_or(|(label, _)| *label != name) {
            // One that stays is told nothing.
            let _ = window.destroy();
        }
    }
    if let Some((label, title)) = shown
        && app.get_webview_window(&label).is_none()
        && let Err(error) = open(app, &label, &title)
    {
        tracing::error!(%error, "the question cannot be shown, and is denied");
        closed(app, &label);
    }
}

/// The beginning of the labels of our windows.
const LABEL: &str = "consent-";

/// The label of a page's window.
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
    let told = window.clone();
    window.on_window_event(move |event| match event {
        WindowEvent::Focused(on) => happened(&told, Event::Focused(*on)),
        WindowEvent::Moved(_) | WindowEvent::Resized(_) | WindowEvent::ScaleFactorChanged { .. } => {
            happened(&told, Event::Changed);
            // One that tells no size keeps the one that it had.
            let _ = sized(&told);
        }
        WindowEvent::CloseRequested { .. } | WindowEvent::Destroyed => {
            closed(told.app_handle(), told.label())
        }
        _ => {}
    });
    Ok(())
}

fn happened(window: &WebviewWindow, event: Event) {
    if let Ok(page) = page_of(&mut window.state::<Questions>().lock(), window.label()) {
        page.window(event, Instant::now());
    }
}

/// Tells the page how tall its window is.
fn sized(window: &WebviewWindow) -> tauri::Result<()> {
    let size = window.inner_size()?.to_logical::<f64>(window.scale_factor()?);
    if let Ok(page) = page_of(&mut window.state::<Questions>().lock(), window.label()) {
        page.sized(size.height, Instant::now());
    }
    Ok(())
}

/// Closing the window is a no.
fn closed(app: &AppHandle, label: &str) {
    let questions = app.state::<Questions>();
    let mut pages = questions.lock();
    let no = page_of(&mut pages, label).ok().and_then(|page| Some((page.id().to_owned(), page.close()?)));
    if let Some((id, no)) = no {
        pages.end(&id, Some(no));
    }
}

/// All that the page of this window draws once.
#[tauri::command]
pub(crate) fn consent_page(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<Drawn, NoQuestionError> {
    page_of(&mut questions.lock(), window.label()).map(|page| page.drawn())
}

/// All that changes on it.
#[tauri::command]
pub(crate) fn consent_changing(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<Changing, NoQuestionError> {
    page_of(&mut questions.lock(), window.label()).map(|page| page.changing(Instant::now()))
}

/// Takes in what happened on the page.
#[tauri::command]
pub(crate) fn consent_tell(
    window: WebviewWindow,
    questions: State<'_, Questions>,
    number: u64,
    did: Did,
) -> Result<Changing, NoQuestionError> {
    let now = Instant::now();
    let mut pages = questions.lock();
    let page = page_of(&mut pages, window.label())?;
    let (result, works) = page.on(number, did, now);
    let (id, changing) = (page.id().to_owned(), page.changing(now));
    if works {
        pages.prolong_all(now);
    }
    if result.is_some() {
        pages.end(&id, result);
    }
    Ok(changing)
}

/// The commands of these windows, for the app's builder.
pub(crate) fn commands() -> impl Fn(Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![consent_page, consent_changing, consent_tell]
}
