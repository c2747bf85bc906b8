//! Puts the trusted process's questions to the person.
//!
//! - [`DialogConsent`] may be called from any thread; everything shown lives on the main thread, in one [`queue`].
//! - Only an explicit Allow allows. A dropped sink, a closed dialog or a loop that is gone is a denial.

mod arming;
#[cfg(target_os = "linux")]
mod away;
mod clock;
#[cfg(target_os = "linux")]
mod cover;
mod hint;
mod notice_detail;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests use less of it than windows do elsewhere"))]
mod page;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests use less of it than windows do elsewhere"))]
mod pages;
mod reading;
pub(crate) mod text;
mod view;

#[cfg(target_os = "linux")]
mod dialog;
#[cfg(target_os = "linux")]
mod notice;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(not(target_os = "linux"))]
pub(crate) mod web;

pub(crate) use notice_detail::NoticeDetail;

use ironcurtain_consent::{Answer, Consent, Question, Slot, Withdrawn};
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

/// The receiver of the answer to one question. Dropping it unanswered denies.
pub trait AnswerSink: Send {
    /// Gives the person's answer.
    fn answer(self: Box<Self>, answer: Answer);
    /// Tells that the person is working in the dialog.
    fn working(&self);
}

impl AnswerSink for Slot {
    fn answer(self: Box<Self>, answer: Answer) {
        Slot::answer(*self, answer);
    }

    fn working(&self) {
        Slot::working(self);
    }
}

/// A question that waits for the person, for the tray and the window.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PendingQuestion {
    /// Question id.
    pub id: String,
    /// "Claude Code wants to write tax/summary.md".
    pub sentence: String,
    /// The worst that it would do, in full: "write ~/notes/plan.md".
    pub line: Option<String>,
}

/// Asks with a dialog on this desktop.
#[derive(Debug, Clone)]
pub struct DialogConsent {
    commands: mpsc::UnboundedSender<Command>,
    waiting: watch::Receiver<Vec<PendingQuestion>>,
}

/// The other end of [`DialogConsent`]: what the main thread has to run.
#[derive(Debug)]
pub struct DialogLoop {
    parts: LoopParts,
}

#[derive(Debug)]
struct LoopParts {
    home: PathBuf,
    commands: mpsc::UnboundedReceiver<Command>,
    to_self: mpsc::WeakUnboundedSender<Command>,
    waiting: watch::Sender<Vec<PendingQuestion>>,
}

/// The commands of the queue, by the trusted process and by its own dialog.
enum Command {
    Ask(Box<Question>, Box<dyn AnswerSink>),
    Withdraw(String),
    Raise,
    Working(String),
    Unseen(String),
    /// A dialog may open by now.
    Show,
    /// The person said no without the dialog.
    Denied(String),
    /// The outcome of the dialog, for these questions of those that it showed.
    Decided(Vec<String>, DialogResult),
    /// The person wants to see all of an agent that can be answered together, or each by itself again.
    Together(bool),
    Tell(String),
    Notices(NoticeDetail),
    /// The screen was locked, or unlocked.
    Locked(bool),
    /// The machine goes to sleep, or woke up.
    Asleep(bool),
}

/// The outcome of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DialogResult {
    Answered(Answer),
    TimedOut,
}

impl DialogConsent {
    /// The asker, and the loop that shows its questions. `home` is the person's home directory, shown as `~`.
    #[must_use]
    pub fn new(home: PathBuf) -> (Self, DialogLoop) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, waiting) = watch::channel(Vec::new());
        let parts = LoopParts { home, commands: inbox, to_self: commands.downgrade(), waiting: publish };
        (Self { commands, waiting }, DialogLoop { parts })
    }

    /// Shows a question, as [`Consent::ask`] does, with any sink for its answer.
    pub fn ask_with(&self, question: Question, sink: Box<dyn AnswerSink>) {
        // A loop that is gone drops the sink, which denies.
        let _ = self.commands.send(Command::Ask(Box::new(question), sink));
    }

    /// Brings the open question to the front.
    pub fn raise(&self) {
        let _ = self.commands.send(Command::Raise);
    }

    /// Says how much notifications say from now on.
    pub(crate) fn set_notices(&self, detail: NoticeDetail) {
        let _ = self.commands.send(Command::Notices(detail));
    }

    /// The questions that wait, and when they change.
    #[must_use]
    pub fn waiting(&self) -> watch::Receiver<Vec<PendingQuestion>> {
        self.waiting.clone()
    }
}

impl Consent for DialogConsent {
    fn ask(&self, question: Question, slot: Slot) {
        self.ask_with(question, Box::new(slot));
    }

    fn withdraw(&self, question: &str, _why: Withdrawn) {
        let _ = self.commands.send(Command::Withdraw(question.to_owned()));
    }

    fn tell(&self, notice: &str) {
        let _ = self.commands.send(Command::Tell(notice.to_owned()));
    }
}

#[cfg(target_os = "linux")]
impl DialogLoop {
    /// Shows questions from now on. Call it on the main thread, once GTK is there.
    pub fn spawn(self) {
        let main = gtk::glib::MainContext::default();
        main.spawn_local(away::follow(self.parts.to_self.clone()));
        main.spawn_local(queue::DialogQueue::run(self.parts));
    }
}

#[cfg(not(target_os = "linux"))]
impl DialogLoop {
    /// Shows questions from now on, in windows of this app.
    pub fn spawn(self, app: &tauri::AppHandle) {
        tauri::async_runtime::spawn(web::run(self.parts, app.clone()));
    }
}
