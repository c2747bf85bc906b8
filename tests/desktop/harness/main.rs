//! The app's user interface for display tests: the real dialog, tray and window with fake questions and data.
//!
//! Never shipped. Reads one order per line from standard input and writes one event per line.
//!
//! - Orders: `ask NAME ID MILLISECONDS`, `withdraw ID`, `idle`.
//! - Events: `ID allow OFFER LIFETIME`, `ID deny [NOTE]`, `ID dropped`, `ID working`, `idle`, `took-back GRANT`,
//!   `ended SESSION`, `shutdown`.
//! - Arguments: `dialog` shows only dialogs. `app` runs the whole app, and `app --picture` runs it with the data for
//!   the documentation's picture. `other KIND` opens another program's window that accepts text, where KIND is
//!   `window`, `fullscreen`, or `over X Y WIDTH HEIGHT` to cover that area.

#![expect(clippy::print_stdout, reason = "the tests read its output")]
#![expect(clippy::expect_used, reason = "a test program panics on any error")]

mod backend;
mod other_window;
mod questions;

use ironcurtain_config::home::Home;
use ironcurtain_consent::{Answer, Consent, DenialReach, WithdrawalReason};
use ironcurtain_daemon::DaemonOptions;
use ironcurtain_desktop::{
    AnswerSink, AppOptions, DialogConsent, DialogLoop, Trusted, WindowProcess, run_shell, run_window,
};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--window") {
        return run_window().expect("the window");
    }
    let (desktop, seat) = DialogConsent::new(PathBuf::from("/home/ada"));
    let orders = desktop.clone();
    std::thread::spawn(move || read_orders(&orders));
    match std::env::args().nth(1).as_deref() {
        Some("dialog") => show_dialogs(seat),
        Some("app") => show_app(desktop, seat),
        Some("other") => other_window::show(&std::env::args().skip(2).collect::<Vec<_>>()),
        other => println!("`{other:?}` is neither `dialog`, `app` nor `other`"),
    }
}

fn show_dialogs(seat: DialogLoop) {
    gtk::init().expect("a display");
    seat.spawn();
    gtk::main();
}

fn show_app(desktop: DialogConsent, seat: DialogLoop) {
    let options =
        AppOptions { background: std::env::args().any(|arg| arg == "--background"), allow_root: false };
    let is_picture = std::env::args().any(|arg| arg == "--picture");
    let made = || backend::Made::for_picture(start_daemon(desktop.clone()));
    let backend = Arc::new(if is_picture { made() } else { backend::Made::new() });
    let ahead = (!options.background).then(|| WindowProcess::start().expect("its process"));
    run_shell(options, backend, desktop, seat, PathBuf::from("/home/ada"), ahead).expect("a desktop");
}

/// Starts a real daemon in the test's home directory. It runs until this process exits.
fn start_daemon(desktop: DialogConsent) -> Trusted {
    let home = Home::from_env().expect("a home directory");
    let programs = std::env::current_exe().expect("this program's path");
    let programs = programs.ancestors().nth(2).expect("the directory of the programs").to_owned();
    let options = DaemonOptions { home: home.clone(), programs: programs.clone(), allow_root: true };
    let runtime = Box::leak(Box::new(Runtime::new().expect("a runtime")));
    let daemon = runtime.block_on(ironcurtain_daemon::start(options, Arc::new(desktop))).expect("a daemon");
    Trusted { daemon, runtime: runtime.handle().clone(), home, programs, allow_root: true }
}

fn read_orders(desktop: &DialogConsent) {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("readable orders");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["ask", name, id, ms] => {
                let deadline = Duration::from_millis(ms.parse().expect("a number"));
                let question = questions::named(name, id, deadline).expect("a known question");
                desktop.ask_with(question, Box::new(Printed { id: (*id).to_owned(), answered: false }));
            }
            ["withdraw", id] => desktop.withdraw(id, WithdrawalReason::Cancelled),
            // The display's pending events are handled first, because they have a higher priority.
            ["idle"] => drop(gtk::glib::idle_add_once(|| println!("idle"))),
            _ => println!("`{line}` is not an order"),
        }
    }
    std::process::exit(0);
}

/// Answer sink that prints the answer to a question, or `dropped` if there is no answer.
struct Printed {
    id: String,
    answered: bool,
}

impl AnswerSink for Printed {
    fn answer(mut self: Box<Self>, answer: Answer) {
        self.answered = true;
        match answer {
            Answer::Allow { offer, lifetime } => println!("{} allow {offer} {lifetime:?}", self.id),
            Answer::Unavailable { why } => println!("{} unavailable {why}", self.id),
            Answer::Deny { note, reach } => {
                let reach = if reach == DenialReach::Call { String::new() } else { format!(" {reach:?}") };
                let note = note.map_or_else(String::new, |note| format!(" {note}"));
                println!("{} deny{reach}{note}", self.id);
            }
        }
    }

    fn report_activity(&self) {
        println!("{} working", self.id);
    }
}

impl Drop for Printed {
    fn drop(&mut self) {
        if !self.answered {
            println!("{} dropped", self.id);
        }
    }
}
