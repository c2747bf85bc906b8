//! The test program `desktop-harness` and the events that it prints.

use crate::screen::{Control, Screen, TIMEOUT, until};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Regular expression for the titles of all dialogs.
pub(crate) const DIALOG: &str = "^IronCurtain: ";

pub(crate) struct Harness {
    child: Child,
    orders: ChildStdin,
    events: Receiver<String>,
}

impl Harness {
    /// Starts the program on a screen, with `dialog` or with `app` and its options.
    pub(crate) fn start(screen: &Screen, arguments: &[&str]) -> Self {
        let program = program();
        let mut child = screen
            .command(&program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} is needed, build it first: {error}", program.display()));
        let orders = child.stdin.take().expect("its input");
        let out = child.stdout.take().expect("its output");
        let (tell, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, orders, events }
    }

    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("a listening harness");
    }

    /// Returns the next event, including `working`.
    pub(crate) fn any_event(&self) -> String {
        self.events.recv_timeout(TIMEOUT).expect("an event of the harness")
    }

    /// Returns the next event except `working`.
    pub(crate) fn event(&self) -> String {
        loop {
            let event = self.any_event();
            if !event.ends_with(" working") {
                return event;
            }
        }
    }

    /// Returns the next event except `working`, or `None` if none arrives in time.
    pub(crate) fn event_within(&self, time: Duration) -> Option<String> {
        let until = Instant::now() + time;
        loop {
            let event = self.events.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
            if !event.ends_with(" working") {
                return Some(event);
            }
        }
    }

    /// Returns all events except `working` that result from the input sent so far.
    pub(crate) fn events_until_idle(&mut self) -> Vec<String> {
        self.order("idle");
        std::iter::from_fn(|| Some(self.event()).filter(|event| event != "idle")).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit code, or `None` if the program is still running.
    pub(crate) fn exit(&mut self) -> Option<i32> {
        until("the app to exit", || self.child.try_wait().expect("its state")).code()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shows a dialog with one question, in front and focused.
pub(crate) fn show_focused_question(screen: &Screen, question: &str) -> Harness {
    let harness = show_question(screen, question, Duration::from_secs(120));
    screen.activate(&screen.window(DIALOG));
    harness
}

/// Shows a dialog with one question `q1`, without changing the focus.
pub(crate) fn show_question(screen: &Screen, question: &str, deadline: Duration) -> Harness {
    let mut harness = Harness::start(screen, &["dialog"]);
    harness.order(&format!("ask {question} q1 {}", deadline.as_millis()));
    screen.window(DIALOG);
    harness
}

/// Moves the focus to Allow by keyboard and waits until Alt+A is accepted.
pub(crate) fn arm_by_keyboard(screen: &Screen, name: &str) -> Control {
    arm_by_keyboard_in(screen, DIALOG, name)
}

/// Like [`arm_by_keyboard`], in the dialog with this title.
pub(crate) fn arm_by_keyboard_in(screen: &Screen, title: &str, name: &str) -> Control {
    until("Allow to accept Alt+A", || {
        let allow = screen.control(title, "push button", name);
        if !allow.is("focused") {
            screen.key("Tab");
        }
        (allow.description == "Press Alt+A to allow").then_some(allow)
    })
}

/// Moves the pointer onto Allow as the dialog's hint instructs, and waits until a click is accepted.
pub(crate) fn arm_by_pointer(screen: &Screen, name: &str) -> Control {
    screen.xdotool(&["mousemove", "5", "790"]);
    until("Allow to accept a click", || {
        let allow = screen.control(DIALOG, "push button", name);
        match allow.description.as_str() {
            "Click here to allow" => return Some(allow),
            "To allow: point at Allow, or press Tab until you are on it"
            | "To allow: move the pointer slightly on Allow, or press Tab until you are on it" => {
                screen.move_pointer_onto(&allow);
            }
            _ => {}
        }
        None
    })
}

/// Accessible description of Allow until all required text has been in view.
pub(crate) const UNREAD: &str = "To allow: read to the end first, with Page Down or the mouse";

/// Waits until the Allow button called `name`, in the dialog with this title, requires scrolling.
pub(crate) fn wait_until_unread(screen: &Screen, title: &str, name: &str) {
    until("the hint to scroll", || {
        (screen.control(title, "push button", name).description == UNREAD).then_some(())
    });
}

/// Waits until Allow requires scrolling, then presses `key` until all required text has been in view.
pub(crate) fn read_to_end(screen: &Screen, title: &str, name: &str, key: &str) {
    wait_until_unread(screen, title, name);
    until("the whole text to be in view", || {
        screen.key(key);
        (screen.control(title, "push button", name).description != UNREAD).then_some(())
    });
}

/// Waits until Allow has this hint.
pub(crate) fn wait_for_hint(screen: &Screen, words: &str) -> Control {
    until(&format!("Allow to say `{words}`"), || {
        let all = screen.controls(DIALOG);
        let allow = all.into_iter().find(|one| one.role == "push button" && one.name.starts_with("Allow"));
        allow.filter(|allow| allow.description == words)
    })
}

fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("this test's path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.join("examples/desktop-harness")
}
