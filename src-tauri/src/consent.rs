//! Puts the trusted process's questions to the person.
//!
//! - [`Desktop`] may be called from any thread; everything shown lives on the main thread, in one [`desk`].
//! - Only an explicit Allow allows. A dropped outlet, a closed dialog or a desk that is gone is a denial.

mod clock;
pub(crate) mod text;
mod view;

#[cfg(target_os = "linux")]
mod desk;
#[cfg(target_os = "linux")]
mod dialog;
#[cfg(target_os = "linux")]
mod notice;

use ironcurtain_daemon::consent::{Answer, Consent, Question, Slot, Withdrawn};
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

/// The place where the answer to one question goes. Dropping it unanswered denies.
pub trait Outlet: Send {
    /// Gives the person's answer.
    fn answer(self: Box<Self>, answer: Answer);
    /// Tells that the person is working in the dialog.
    fn working(&self);
}

impl Outlet for Slot {
    fn answer(self: Box<Self>, answer: Answer) {
        Slot::answer(*self, answer);
    }

    fn working(&self) {
        Slot::working(self);
    }
}

/// A question that waits for the person, for the tray and the window.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Waiting {
    /// Question id.
    pub id: String,
    /// "Claude Code wants to write tax/summary.md".
    pub sentence: String,
    /// The worst that it would do, in full: "write ~/notes/plan.md".
    pub line: Option<String>,
}

/// Asks with a dialog on this desktop.
#[derive(Debug, Clone)]
pub struct Desktop {
    orders: mpsc::UnboundedSender<Order>,
    waiting: watch::Receiver<Vec<Waiting>>,
}

/// The other end of [`Desktop`]: what the main thread has to run.
#[derive(Debug)]
pub struct DeskSeat {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "questions are denied here"))]
    parts: SeatParts,
}

#[derive(Debug)]
struct SeatParts {
    home: PathBuf,
    orders: mpsc::UnboundedReceiver<Order>,
    to_self: mpsc::WeakUnboundedSender<Order>,
    waiting: watch::Sender<Vec<Waiting>>,
}

/// What the desk is told, by the trusted process and by its own dialog.
enum Order {
    Ask(Box<Question>, Box<dyn Outlet>),
    Withdraw(String),
    Raise,
    Working(String),
    Unseen(String),
    Decided(String, Verdict),
}

/// The outcome of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Answered(Answer),
    TimedOut,
}

impl Desktop {
    /// A desktop and the seat that shows its questions. `home` is the person's home directory, shown as `~`.
    #[must_use]
    pub fn new(home: PathBuf) -> (Self, DeskSeat) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (publish, waiting) = watch::channel(Vec::new());
        let parts = SeatParts { home, orders: inbox, to_self: orders.downgrade(), waiting: publish };
        (Self { orders, waiting }, DeskSeat { parts })
    }

    /// Shows a question, as [`Consent::ask`] does, with any outlet for its answer.
    pub fn ask_with(&self, question: Question, outlet: Box<dyn Outlet>) {
        // A desk that is gone drops the outlet, which denies.
        let _ = self.orders.send(Order::Ask(Box::new(question), outlet));
    }

    /// Brings the open question to the front.
    pub fn raise(&self) {
        let _ = self.orders.send(Order::Raise);
    }

    /// The questions that wait, and when they change.
    #[must_use]
    pub fn waiting(&self) -> watch::Receiver<Vec<Waiting>> {
        self.waiting.clone()
    }
}

impl Consent for Desktop {
    fn ask(&self, question: Question, slot: Slot) {
        self.ask_with(question, Box::new(slot));
    }

    fn withdraw(&self, question: &str, _why: Withdrawn) {
        let _ = self.orders.send(Order::Withdraw(question.to_owned()));
    }
}

#[cfg(target_os = "linux")]
impl DeskSeat {
    /// Shows questions from now on. Call it on the main thread, once GTK is there.
    pub fn sit(self) {
        gtk::glib::MainContext::default().spawn_local(desk::Desk::run(self.parts));
    }
}

#[cfg(not(target_os = "linux"))]
impl DeskSeat {
    /// Nothing can be shown here yet: the seat is given up, so every question is denied.
    pub fn sit(self) {
        tracing::warn!("questions cannot be shown on this system; they are denied");
    }
}
