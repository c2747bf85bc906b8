//! The test program `desktop-stand`, and what it says.

use crate::screen::{BOUND, Screen};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Title of every dialog.
pub(crate) const DIALOG: &str = "^IronCurtain: ";

pub(crate) struct Stand {
    child: Child,
    orders: ChildStdin,
    events: Receiver<String>,
}

impl Stand {
    /// Starts it on a screen: `dialog`, or `app` and its options.
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
        writeln!(self.orders, "{order}").expect("a listening stand");
    }

    /// The next event, whatever it is.
    pub(crate) fn any_event(&self) -> String {
        self.events.recv_timeout(BOUND).expect("an event of the stand")
    }

    /// The next event, other than that the person works in the dialog.
    pub(crate) fn event(&self) -> String {
        loop {
            let event = self.any_event();
            if !event.ends_with(" working") {
                return event;
            }
        }
    }

    /// Its exit code, once it has ended by itself.
    pub(crate) fn exit(&mut self) -> Option<i32> {
        crate::screen::until("the end of the app", || self.child.try_wait().expect("its state")).code()
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A dialog with one question, in front and with the keyboard.
pub(crate) fn focused(screen: &Screen, question: &str) -> Stand {
    let stand = shown(screen, question, Duration::from_secs(120));
    screen.activate(&screen.window(DIALOG));
    stand
}

/// A dialog with one question `q1`, as it opens.
pub(crate) fn shown(screen: &Screen, question: &str, deadline: Duration) -> Stand {
    let mut stand = Stand::start(screen, &["dialog"]);
    stand.order(&format!("ask {question} q1 {}", deadline.as_millis()));
    screen.window(DIALOG);
    stand
}

/// Waits until Allow can be pressed.
pub(crate) fn armed(screen: &Screen, name: &str) -> crate::screen::Control {
    crate::screen::until("an armed Allow", || {
        Some(screen.control(DIALOG, "push button", name)).filter(|allow| allow.is("sensitive"))
    })
}

fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("this test's path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.join("examples/desktop-stand")
}
