//! The questions that wait, and the one window of the system's web engine that shows the first of them, where there is no
//! native dialog of ours.
//!
//! - A window answers for the question that it was opened for, by its label; any other is told nothing.
//! - A question ends once: answered, late, withdrawn, or dropped, which denies. Closing its window is a no.
//! - The windows are made outside of the lock: making one tells of its focus at once.

use super::arming::Event;
use super::clock::Countdown;
use super::page::{Changing, Did, Drawn, Page};
use super::view::{ConsentView, plain};
use super::{AnswerSink, Command, DialogResult, LoopParts, PendingQuestion};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tauri::{AppHandle, Manager, State, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};
use tokio::sync::watch;

/// The time between the last press on one page and the next page: that press was not meant for it.
const APART: Duration = Duration::from_secs(1);
/// The time between two looks at whether a question is late, or the next may be shown.
const LOOK: Duration = Duration::from_millis(200);

/// The questions, as the app's commands reach them.
pub(crate) struct Questions(Mutex<Waiting>);

struct Waiting {
    home: PathBuf,
    publish: watch::Sender<Vec<PendingQuestion>>,
    /// The first is the one on the page.
    queue: VecDeque<Entry>,
    page: Option<Page>,
    not_before: Option<Instant>,
    mirrored: bool,
}

struct Entry {
    view: ConsentView,
    sink: Box<dyn AnswerSink>,
    countdown: Countdown,
}

/// Why a page is told nothing.
#[derive(Debug, thiserror::Error, serde::Serialize)]
#[error("this window asks nothing any more")]
pub(crate) struct NoQuestionError;

/// Shows questions from now on.
pub(super) async fn run(parts: LoopParts, app: AppHandle) {
    let LoopParts { home, mut commands, waiting, .. } = parts;
    let (queue, page, not_before) = (VecDeque::new(), None, None);
    app.manage(Questions(Mutex::new(Waiting {
        home,
        publish: waiting,
        queue,
        page,
        not_before,
        mirrored: false,
    })));
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
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn handle(app: &AppHandle, command: Command) {
    let questions = app.state::<Questions>();
    match command {
        Command::Ask(question, sink) => {
            let mut waiting = questions.lock();
            let view = ConsentView::new(&question, &waiting.home);
            let countdown = Countdown::new(view.deadline, Instant::now());
            waiting.queue.push_back(Entry { view, sink, countdown });
        }
        Command::Withdraw(id) => questions.lock().end(&id, None),
        Command::Raise => {
            let open = questions.lock().page.as_ref().map(|page| label(page.id()));
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

impl Waiting {
    /// Ends a question with its answer, or without any.
    fn end(&mut self, id: &str, result: Option<DialogResult>) {
        let Some(at) = self.queue.iter().position(|entry| entry.view.id == id) else { return };
        if let Some(page) = self.page.take_if(|page| page.id() == id) {
            self.not_before = page.pressed().map(|pressed| pressed + APART);
            self.mirrored = page.is_mirrored();
        }
        if let Some(entry) = self.queue.remove(at)
            && let Some(DialogResult::Answered(answer)) = result
        {
            entry.sink.answer(answer);
        }
    }

    /// The page of a window.
    fn page_of(&mut self, window: &str) -> Result<&mut Page, NoQuestionError> {
        self.page.as_mut().filter(|page| label(page.id()) == window).ok_or(NoQuestionError)
    }

    /// Whoever works on the page will come to the others: all of them wait longer.
    fn prolong_all(&mut self, now: Instant) {
        for entry in &mut self.queue {
            entry.countdown.work(now);
            entry.sink.working();
        }
    }

    /// Begins the page of the first question, where none is open and it may be.
    fn begin(&mut self, now: Instant) -> Option<(String, String)> {
        if self.page.is_some() || self.not_before.is_some_and(|moment| now < moment) {
            return None;
        }
        while self.queue.front().is_some_and(|first| first.countdown.is_over(now)) {
            self.queue.pop_front();
        }
        let first = self.queue.front()?;
        let page = Page::new(first.view.clone(), first.countdown.clone(), !self.mirrored, now);
        let made = (label(page.id()), page.title());
        self.page = Some(page);
        Some(made)
    }
}

/// Ends what is late, opens what is next, and tells everyone how many wait.
fn show(app: &AppHandle) {
    let questions = app.state::<Questions>();
    let now = Instant::now();
    let opened = {
        let mut waiting = questions.lock();
        let late = waiting.page.as_mut().and_then(|page| Some((page.id().to_owned(), page.late(now)?)));
        if let Some((id, result)) = late {
            waiting.end(&id, Some(result));
        }
        let opened = waiting.begin(now);
        let more = waiting.queue.len().saturating_sub(1);
        if let Some(page) = &mut waiting.page {
            page.set_more(more);
        }
        let all: Vec<PendingQuestion> = waiting.queue.iter().map(|entry| pending(&entry.view)).collect();
        waiting.publish.send_if_modified(|shown| {
            let changed = *shown != all;
            *shown = all;
            changed
        });
        opened
    };
    if let Some((label, title)) = opened
        && let Err(error) = open(app, &label, &title)
    {
        tracing::error!(%error, "the question cannot be shown, and is denied");
        closed(app, &label);
    }
    let shown = questions.lock().page.as_ref().map(|page| label(page.id()));
    for (name, window) in app.webview_windows() {
        if name.starts_with(LABEL) && Some(&name) != shown.as_ref() {
            // One that stays is told nothing.
            let _ = window.destroy();
        }
    }
}

/// The beginning of the labels of our windows.
const LABEL: &str = "consent-";

/// The label of a question's window. Labels have few characters.
fn label(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{LABEL}{}", id.chars().map(plain).collect::<String>())
}

fn open(app: &AppHandle, label: &str, title: &str) -> tauri::Result<()> {
    let window = WebviewWindowBuilder::new(app, label, WebviewUrl::App("consent.html".into()))
        .title(title)
        .inner_size(640.0, 620.0)
        .min_inner_size(480.0, 360.0)
        .always_on_top(true)
        .focused(false)
        .build()?;
    let (app, label) = (app.clone(), label.to_owned());
    window.on_window_event(move |event| match event {
        WindowEvent::Focused(on) => happened(&app, &label, Event::Focused(*on)),
        WindowEvent::Moved(_) | WindowEvent::Resized(_) | WindowEvent::ScaleFactorChanged { .. } => {
            happened(&app, &label, Event::Changed);
        }
        WindowEvent::CloseRequested { .. } | WindowEvent::Destroyed => closed(&app, &label),
        _ => {}
    });
    Ok(())
}

fn happened(app: &AppHandle, label: &str, event: Event) {
    if let Ok(page) = app.state::<Questions>().lock().page_of(label) {
        page.window(event, Instant::now());
    }
}

/// Closing the window is a no.
fn closed(app: &AppHandle, label: &str) {
    let questions = app.state::<Questions>();
    let mut waiting = questions.lock();
    let no = waiting.page_of(label).ok().and_then(|page| Some((page.id().to_owned(), page.close()?)));
    if let Some((id, no)) = no {
        waiting.end(&id, Some(no));
    }
}

fn pending(view: &ConsentView) -> PendingQuestion {
    PendingQuestion {
        id: view.id.clone(),
        sentence: view.sentence(),
        line: view.lines.first().map(|line| plain(&line.words)),
    }
}

/// All that the page of this window draws once.
#[tauri::command]
pub(crate) fn consent_page(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<Drawn, NoQuestionError> {
    questions.lock().page_of(window.label()).map(|page| page.drawn())
}

/// All that changes on it.
#[tauri::command]
pub(crate) fn consent_changing(
    window: WebviewWindow,
    questions: State<'_, Questions>,
) -> Result<Changing, NoQuestionError> {
    questions.lock().page_of(window.label()).map(|page| page.changing(Instant::now()))
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
    let mut waiting = questions.lock();
    let page = waiting.page_of(window.label())?;
    let (result, works) = page.on(number, did, now);
    let (id, changing) = (page.id().to_owned(), page.changing(now));
    if works {
        waiting.prolong_all(now);
    }
    if result.is_some() {
        waiting.end(&id, result);
    }
    Ok(changing)
}
