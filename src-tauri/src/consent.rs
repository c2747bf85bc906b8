//! Shows the trusted process's questions to the user.
//!
//! - [`DialogConsent`] can be used from any thread. Everything on the screen belongs to the [`queue`] on the main
//!   thread.
//! - Only pressing Allow allows a call. Dropping the sink, closing the dialog and stopping the loop each deny the call.

mod arming;
mod clock;
mod hint;
mod notice_detail;
#[cfg(target_os = "linux")]
mod occlusion;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests use only a part of it"))]
mod page;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tests use only a part of it"))]
mod pages;
#[cfg(target_os = "linux")]
mod presence;
mod read_progress;
#[cfg(target_os = "linux")]
mod reminder;
pub(crate) mod text;
mod view;

#[cfg(target_os = "linux")]
mod dialog;
#[cfg(target_os = "linux")]
mod notification;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(not(target_os = "linux"))]
pub(crate) mod web;

pub(crate) use notice_detail::NoticeDetail;

use ironcurtain_consent::{Answer, AnswerSlot, Consent, Question, WithdrawalReason};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use view::ConsentView;

/// Recipient of a question's answer. Dropping it denies the call.
pub trait AnswerSink: Send {
    /// Receives the user's answer.
    fn answer(self: Box<Self>, answer: Answer);
    /// Reports that the user is active in the dialog.
    fn report_activity(&self);
}

impl AnswerSink for AnswerSlot {
    fn answer(self: Box<Self>, answer: Answer) {
        AnswerSlot::answer(*self, answer);
    }

    fn report_activity(&self) {
        AnswerSlot::report_activity(self);
    }
}

/// Pending question, as shown by the tray and the window.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PendingQuestion {
    /// Question id.
    pub id: String,
    /// Sentence such as "Claude Code wants to write tax/summary.md".
    pub sentence: String,
    /// Full description of the most severe effect, such as "write ~/notes/plan.md". `None` if the sentence contains it.
    pub line: Option<String>,
    /// Id of the session whose call requires approval.
    pub session: String,
    /// Name of the client whose call requires approval.
    pub client: String,
    /// Time at which the call is denied if the user has not answered, in milliseconds since the Unix epoch.
    pub expires_ms: u64,
}

impl PendingQuestion {
    fn new(question: &Question, view: &ConsentView, left: Duration) -> Self {
        Self {
            id: view.id.clone(),
            sentence: view.sentence(),
            line: view.worst(question),
            session: question.session.clone(),
            client: text::name(&question.client.name),
            expires_ms: in_ms(left),
        }
    }

    fn prolong(&mut self, left: Duration) {
        self.expires_ms = in_ms(left);
    }
}

fn in_ms(left: Duration) -> u64 {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + left;
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// Consent front end that shows questions in dialogs on this desktop.
#[derive(Debug, Clone)]
pub struct DialogConsent {
    commands: mpsc::UnboundedSender<Command>,
    waiting: watch::Receiver<Vec<PendingQuestion>>,
}

/// Receiving end of [`DialogConsent`]. It runs on the main thread.
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

/// Command for the queue, from the trusted process or from the queue's own dialog.
enum Command {
    Ask(Box<Question>, Box<dyn AnswerSink>),
    Withdraw(String),
    Raise,
    Activity(String),
    RemindUser(String),
    /// Checks whether a dialog can be opened now.
    Show,
    /// The user denied the question with this id outside the dialog.
    Denied(String),
    /// Result of the dialog for the questions with these ids.
    Decided(Vec<String>, DialogResult),
    /// `true` to show all of an agent's questions together, `false` to show them one by one.
    ShowTogether(bool),
    Notify(String),
    Notices(NoticeDetail),
    /// `true` if the screen was locked, `false` if it was unlocked.
    Locked(bool),
    /// `true` if the machine is about to sleep, `false` if it woke up.
    Asleep(bool),
}

/// Outcome of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DialogResult {
    Answered(Answer),
    TimedOut,
}

impl DialogConsent {
    /// Creates the front end and the loop that shows its questions. Paths in `home` are abbreviated with `~`.
    #[must_use]
    pub fn new(home: PathBuf) -> (Self, DialogLoop) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, waiting) = watch::channel(Vec::new());
        let parts = LoopParts { home, commands: inbox, to_self: commands.downgrade(), waiting: publish };
        (Self { commands, waiting }, DialogLoop { parts })
    }

    /// Like [`Consent::ask`], but sends the answer to the given [`AnswerSink`].
    pub fn ask_with(&self, question: Question, sink: Box<dyn AnswerSink>) {
        // If the loop has stopped, the sink is dropped. This denies the call.
        let _ = self.commands.send(Command::Ask(Box::new(question), sink));
    }

    /// Brings the dialog to the front.
    pub fn raise(&self) {
        let _ = self.commands.send(Command::Raise);
    }

    /// Sets how much detail notifications contain.
    pub(crate) fn set_notices(&self, detail: NoticeDetail) {
        let _ = self.commands.send(Command::Notices(detail));
    }

    /// Returns a receiver of the list of pending questions.
    #[must_use]
    pub fn waiting(&self) -> watch::Receiver<Vec<PendingQuestion>> {
        self.waiting.clone()
    }
}

impl Consent for DialogConsent {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        self.ask_with(question, Box::new(slot));
    }

    fn withdraw(&self, question: &str, _why: WithdrawalReason) {
        let _ = self.commands.send(Command::Withdraw(question.to_owned()));
    }

    fn notify(&self, notice: &str) {
        let _ = self.commands.send(Command::Notify(notice.to_owned()));
    }
}

#[cfg(target_os = "linux")]
impl DialogLoop {
    /// Starts showing questions. Must be called on the main thread after GTK was initialized.
    pub fn spawn(self) {
        let main = gtk::glib::MainContext::default();
        main.spawn_local(presence::follow(self.parts.to_self.clone()));
        main.spawn_local(queue::DialogQueue::run(self.parts));
    }
}

#[cfg(not(target_os = "linux"))]
impl DialogLoop {
    /// Starts showing questions in windows of this app.
    pub fn spawn(self, app: &tauri::AppHandle) {
        tauri::async_runtime::spawn(web::run(self.parts, app.clone()));
    }
}
