//! Queue of pending questions, and the dialog of the first question.
//!
//! - Runs on the main thread as a single loop over commands. Dialogs also send their results as commands, so no
//!   function is re-entered.
//! - Each question leaves the queue exactly once: it is answered, withdrawn or dropped. Dropping it denies the call.
//! - No dialog is shown while the screen is locked or the machine sleeps. Questions stay pending and expire as usual.

use super::clock::Countdown;
use super::dialog::{AllowPosition, Dialog};
use super::notification::Notices;
use super::view::ConsentView;
use super::{AnswerSink, Command, DialogResult, LoopParts, PendingQuestion};
use gtk::glib;
use ironcurtain_consent::{Answer, DenialReach, Question};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Minimum time between the last press in a dialog and the opening of the next dialog. Prevents the next dialog from
/// receiving a press meant for the previous one.
const DIALOG_GAP: Duration = Duration::from_secs(1);

pub(super) struct DialogQueue {
    home: PathBuf,
    to_self: mpsc::WeakUnboundedSender<Command>,
    publish: watch::Sender<Vec<PendingQuestion>>,
    notices: Notices,
    /// Pending questions. The dialog shows the first one, or several from the same agent.
    queue: VecDeque<QueuedQuestion>,
    dialog: Option<Dialog>,
    /// Earliest time for opening the next dialog.
    not_before: Option<Instant>,
    /// Position of Allow in the last dialog.
    last: Option<AllowPosition>,
    /// `true` if the screen is locked or its state is unknown.
    locked: bool,
    /// `true` if the machine sleeps or is about to.
    asleep: bool,
}

struct QueuedQuestion {
    question: Box<Question>,
    view: ConsentView,
    sink: Box<dyn AnswerSink>,
    countdown: Countdown,
    pending: PendingQuestion,
}

impl DialogQueue {
    /// Runs until all senders are dropped.
    pub(super) async fn run(parts: LoopParts) {
        let LoopParts { home, mut commands, to_self, waiting } = parts;
        let mut queue = Self {
            home,
            notices: Notices::start(to_self.clone()),
            to_self,
            publish: waiting,
            queue: VecDeque::new(),
            dialog: None,
            not_before: None,
            last: None,
            locked: true,
            asleep: false,
        };
        while let Some(command) = commands.recv().await {
            queue.handle(command);
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Ask(question, sink) => self.ask(question, sink),
            Command::Withdraw(id) => self.remove(&id, None),
            Command::Decided(ids, verdict) => self.decided(&ids, &verdict),
            Command::ShowTogether(is_batch) => self.reopen(is_batch),
            Command::Activity(id) => self.prolong_all(&id),
            Command::RemindUser(id) => self.notify(&id),
            Command::Show => self.show(),
            Command::Denied(id) => {
                self.remove(&id, Some(Answer::Deny { note: None, reach: DenialReach::Call }));
            }
            Command::Notices(detail) => self.notices.set_detail(detail),
            Command::Notify(notice) => self.notices.notify(&notice),
            Command::Locked(locked) => {
                self.locked = locked;
                self.hide_while_away();
            }
            Command::Asleep(asleep) => {
                self.asleep = asleep;
                self.hide_while_away();
            }
            Command::Raise => {
                if let Some(dialog) = &self.dialog {
                    dialog.raise();
                }
            }
        }
    }

    fn is_away(&self) -> bool {
        self.locked || self.asleep
    }

    fn hide_while_away(&mut self) {
        let away = self.is_away();
        if let Some(dialog) = self.dialog.take_if(|_| away) {
            self.last = Some(dialog.close());
        }
        self.show();
    }

    fn ask(&mut self, question: Box<Question>, sink: Box<dyn AnswerSink>) {
        let view = ConsentView::new(&question, &self.home);
        let countdown = Countdown::new(view.deadline, Instant::now());
        let pending = PendingQuestion::new(&question, &view, view.deadline);
        self.queue.push_back(QueuedQuestion { question, view, sink, countdown, pending });
        self.show();
    }

    /// Settles a question without the dialog, with an answer if there is one.
    fn remove(&mut self, id: &str, answer: Option<Answer>) {
        if self.dialog.as_ref().is_some_and(|dialog| dialog.settle(id)) {
            self.close();
        }
        self.settle(id, answer);
        self.show();
    }

    /// Handles the dialog's result for the questions with these ids.
    fn decided(&mut self, ids: &[String], verdict: &DialogResult) {
        if self.dialog.as_ref().is_some_and(|dialog| ids.iter().any(|id| dialog.shows(id))) {
            self.close();
        }
        for id in ids {
            let answer = match verdict {
                DialogResult::Answered(answer) => Some(answer.clone()),
                DialogResult::TimedOut => None,
            };
            self.settle(id, answer);
        }
        self.show();
    }

    fn close(&mut self) {
        if let Some(dialog) = self.dialog.take() {
            self.not_before = dialog.pressed().map(|pressed| pressed + DIALOG_GAP);
            self.last = Some(dialog.close());
        }
    }

    fn settle(&mut self, id: &str, answer: Option<Answer>) {
        let Some(at) = self.queue.iter().position(|entry| entry.view.id == id) else { return };
        self.notices.close(id);
        if let Some(entry) = self.queue.remove(at)
            && let Some(answer) = answer
        {
            entry.sink.answer(answer);
        }
    }

    /// Reopens the dialog immediately at the user's request. If `together` is `true`, shows all questions that can be
    /// answered together with the first one. Otherwise, shows only the first.
    fn reopen(&mut self, is_batch: bool) {
        let Some(dialog) = self.dialog.take() else { return };
        self.last = Some(dialog.close());
        if is_batch {
            let batch = self.batch();
            let alone = self.same_agent_count().saturating_sub(batch.len());
            let questions: Vec<&Question> = batch.iter().map(|entry| &*entry.question).collect();
            let longest = batch.iter().map(|entry| &entry.countdown).min_by_key(|countdown| countdown.ends());
            let view = ConsentView::for_batch(&questions, alone, &self.home);
            if let (Some(view), Some(countdown)) = (view, longest) {
                self.dialog = Some(Dialog::open(view, countdown.clone(), self.to_self.clone(), self.last));
            }
        }
        self.show();
    }

    /// Returns the first question and those that can be answered together with it, or an empty list if it must be
    /// answered separately.
    fn batch(&self) -> Vec<&QueuedQuestion> {
        let mut batch: Vec<&QueuedQuestion> = Vec::new();
        let first = self.queue.iter().take(1).filter(|first| first.question.fits_a_batch);
        for entry in first.flat_map(|_| &self.queue) {
            if entry.question.joins(batch.iter().map(|other| &*other.question)) {
                batch.push(entry);
            }
        }
        batch
    }

    /// Returns the number of pending questions from the first question's agent.
    fn same_agent_count(&self) -> usize {
        let first = self.queue.front();
        let is_same_agent = |entry: &&QueuedQuestion| {
            first.is_some_and(|first| entry.question.is_of_same_agent(&first.question))
        };
        self.queue.iter().filter(is_same_agent).count()
    }

    /// Restarts the countdowns of all questions, because the user answers the questions one after another.
    fn prolong_all(&mut self, id: &str) {
        if self.dialog.as_ref().is_some_and(|dialog| dialog.shows(id)) {
            // The user has noticed the dialog, so the notification is no longer needed.
            self.notices.close(id);
            let now = Instant::now();
            for entry in &mut self.queue {
                entry.countdown.record_activity(now);
                entry.pending.prolong(entry.countdown.left(now));
                entry.sink.report_activity();
            }
            self.publish_waiting();
        }
    }

    fn notify(&self, id: &str) {
        if let Some(entry) = self.queue.iter().find(|entry| entry.view.id == id) {
            self.notices.show(id, &entry.view.kind);
        }
    }

    /// Opens the dialog of the first question if none is open, and publishes the list of pending questions.
    fn show(&mut self) {
        let now = Instant::now();
        let wait = self.not_before.map_or(Duration::ZERO, |moment| moment.saturating_duration_since(now));
        if self.dialog.is_none() && !self.is_away() && !wait.is_zero() {
            self.show_in(wait);
        } else if self.dialog.is_none() && !self.is_away() {
            while self.queue.front().is_some_and(|first| first.countdown.has_expired(now)) {
                self.queue.pop_front();
            }
            if let Some(first) = self.queue.front() {
                let to_self = self.to_self.clone();
                let dialog = Dialog::open(first.view.clone(), first.countdown.clone(), to_self, self.last);
                self.dialog = Some(dialog);
            }
        }
        if let Some(dialog) = &self.dialog {
            let batch = self.batch().len();
            dialog.set_waiting(self.queue.len(), if batch > 1 { batch } else { 0 });
        }
        self.publish_waiting();
    }

    fn publish_waiting(&self) {
        self.publish.send_replace(self.queue.iter().map(|entry| entry.pending.clone()).collect());
    }

    fn show_in(&self, wait: Duration) {
        let to_self = self.to_self.clone();
        glib::timeout_add_local_once(wait, move || {
            // If the queue no longer exists, nothing is shown.
            if let Some(to_self) = to_self.upgrade() {
                let _ = to_self.send(Command::Show);
            }
        });
    }
}
