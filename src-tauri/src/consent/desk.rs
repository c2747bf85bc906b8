//! The questions that wait, and the one dialog that shows the first of them.
//!
//! - Runs on the main thread as one loop over orders; dialogs send orders back, so nothing is entered twice.
//! - A question leaves the desk once: answered, withdrawn, or dropped, which denies.

use super::clock::Countdown;
use super::dialog::Dialog;
use super::notice::Notices;
use super::view::{ConsentView, plain};
use super::{Order, Outlet, SeatParts, Verdict, Waiting};
use ironcurtain_daemon::consent::Question;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;
use tokio::sync::{mpsc, watch};

pub(super) struct Desk {
    home: PathBuf,
    to_self: mpsc::WeakUnboundedSender<Order>,
    publish: watch::Sender<Vec<Waiting>>,
    notices: Notices,
    /// The first is the one in the dialog.
    queue: VecDeque<Entry>,
    dialog: Option<Dialog>,
}

struct Entry {
    view: ConsentView,
    outlet: Box<dyn Outlet>,
    countdown: Countdown,
}

impl Desk {
    /// Serves until everyone who could ask is gone.
    pub(super) async fn run(parts: SeatParts) {
        let SeatParts { home, mut orders, to_self, waiting } = parts;
        let mut desk = Self {
            home,
            to_self,
            publish: waiting,
            notices: Notices::start(),
            queue: VecDeque::new(),
            dialog: None,
        };
        while let Some(order) = orders.recv().await {
            desk.obey(order);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Ask(question, outlet) => self.ask(&question, outlet),
            Order::Withdraw(id) => self.leave(&id, None),
            Order::Decided(id, verdict) => self.leave(&id, Some(verdict)),
            Order::Working(id) => self.work(&id),
            Order::Unseen(id) => self.tell(&id),
            Order::Raise => {
                if let Some(dialog) = &self.dialog {
                    dialog.raise();
                }
            }
        }
    }

    fn ask(&mut self, question: &Question, outlet: Box<dyn Outlet>) {
        let view = ConsentView::new(question, &self.home);
        let countdown = Countdown::new(view.deadline, Instant::now());
        self.queue.push_back(Entry { view, outlet, countdown });
        self.show();
    }

    fn leave(&mut self, id: &str, verdict: Option<Verdict>) {
        let Some(at) = self.queue.iter().position(|entry| entry.view.id == id) else { return };
        if at == 0
            && let Some(dialog) = self.dialog.take()
        {
            dialog.close();
        }
        self.notices.close(id);
        if let Some(entry) = self.queue.remove(at)
            && let Some(Verdict::Answered(answer)) = verdict
        {
            entry.outlet.answer(answer);
        }
        self.show();
    }

    /// Whoever works in the first dialog will come to the others: all of them wait longer.
    fn work(&mut self, id: &str) {
        if self.queue.front().is_some_and(|first| first.view.id == id) {
            let now = Instant::now();
            for entry in &mut self.queue {
                entry.countdown.work(now);
                entry.outlet.working();
            }
        }
    }

    fn tell(&self, id: &str) {
        if let Some(entry) = self.queue.iter().find(|entry| entry.view.id == id) {
            self.notices.show(id, &entry.view.sentence());
        }
    }

    /// Opens the dialog of the first question, if none is open, and tells everyone how many wait.
    fn show(&mut self) {
        let now = Instant::now();
        if self.dialog.is_none() {
            while self.queue.front().is_some_and(|first| first.countdown.is_over(now)) {
                self.queue.pop_front();
            }
            if let Some(first) = self.queue.front() {
                self.dialog =
                    Some(Dialog::open(first.view.clone(), first.countdown.clone(), self.to_self.clone()));
            }
        }
        if let Some(dialog) = &self.dialog {
            dialog.set_more(self.queue.len().saturating_sub(1));
        }
        self.publish.send_replace(self.queue.iter().map(|entry| waiting(&entry.view)).collect());
    }
}

fn waiting(view: &ConsentView) -> Waiting {
    Waiting {
        id: view.id.clone(),
        sentence: view.sentence(),
        line: view.lines.first().map(|line| plain(&line.words)),
    }
}
