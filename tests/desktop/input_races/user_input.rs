//! Simulates a user's input under a window manager: pointer movements, clicks and keys. Also finds Allow on the
//! screen.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Control, Screen, until};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Mutex;
use std::time::Duration;

/// Size of the screens, in pixels.
const SIZE: [&str; 2] = ["1280", "800"];

/// Distances from the target at the last points of a pointer movement, in pixels. A real pointer does not jump. All
/// of these points are on Allow.
const WAY: [i32; 3] = [20, 8, 0];

/// A user action.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Move(i32, i32),
    Click,
    Down,
    Up,
    /// Presses and releases a key with its modifiers.
    Key(&'static str),
    /// Holds Alt+A for this many milliseconds.
    HeldAllow(u64),
    Wait(u64),
}

/// Positions in a dialog on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Centre of Allow.
    pub(crate) allow: (i32, i32),
    /// A point in the dialog that is not on any control.
    pub(crate) beside: (i32, i32),
    /// Position and size of the text that describes the effect of Allow: x, y, width and height.
    pub(crate) words: [i32; 4],
}

pub(crate) struct Desk {
    pub(crate) screen: Screen,
    pub(crate) manager: &'static str,
    /// `true` if covering windows cannot be detected, so that Allow must be held for anything but reading a file.
    pub(crate) holds: bool,
    pointer: Option<Mutex<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Desk {
    pub(crate) fn start(manager: &'static str) -> Self {
        if manager == "sway" {
            let mut screen = Screen::sway();
            let script = crate::screen::helper_path("wayland_pointer.py");
            let arguments = ["-u", script.to_str().expect("a UTF-8 path"), SIZE[0], SIZE[1]];
            let mut pointer = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
            said(&mut pointer.1, "ready");
            // Adds a permanent keyboard, because windows lose the focus when the last keyboard is removed.
            screen.spawn("wtype", &["-s", "86400000", "-k", "F13"]);
            return Self { screen, manager, holds: true, pointer: Some(Mutex::new(pointer)) };
        }
        let screen = match manager {
            "openbox with picom" => Screen::composited("picom"),
            "xfwm4 with its compositor" => Screen::composited("xfwm4"),
            other => Screen::under(other),
        };
        Self { screen, manager, holds: false, pointer: None }
    }

    /// Performs the actions in order.
    pub(crate) fn act(&self, acts: &[Act]) {
        match &self.pointer {
            None => self.act_on_x(acts),
            Some(pointer) => self.act_on_wayland(&mut pointer.lock().expect("the input program"), acts),
        }
    }

    fn act_on_x(&self, acts: &[Act]) {
        let mut words: Vec<String> = Vec::new();
        let mut say = |all: &[&str]| words.extend(all.iter().map(|word| (*word).to_owned()));
        for act in acts {
            match act {
                Act::Move(x, y) => {
                    for left in WAY {
                        say(&["mousemove", &(x - left).to_string(), &y.to_string(), "sleep", "0.01"]);
                    }
                }
                Act::Click => say(&["click", "1"]),
                Act::Down => say(&["mousedown", "1"]),
                Act::Up => say(&["mouseup", "1"]),
                Act::Key(key) => say(&["key", key]),
                Act::HeldAllow(ms) => {
                    let seconds = (*ms as f64 / 1000.0).to_string();
                    say(&["keydown", "alt", "keydown", "a", "sleep", &seconds, "keyup", "a", "keyup", "alt"]);
                }
                Act::Wait(ms) => say(&["sleep", &(*ms as f64 / 1000.0).to_string()]),
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.screen.xdotool(&words);
    }

    fn act_on_wayland(&self, pointer: &mut (ChildStdin, BufReader<ChildStdout>), acts: &[Act]) {
        let input = &mut pointer.0;
        let mut order = |line: &str| writeln!(input, "{line}").expect("a pointer");
        // One virtual keyboard sends a whole sequence of keys.
        let mut keys: Vec<String> = Vec::new();
        for act in acts {
            let held;
            let words: &[&str] = match act {
                Act::Key("alt+a") => &["-M", "alt", "a", "-m", "alt"],
                Act::Key(key) => &["-k", key],
                Act::HeldAllow(ms) => {
                    held = ms.to_string();
                    &["-M", "alt", "-P", "a", "-s", &held, "-p", "a", "-m", "alt"]
                }
                Act::Wait(ms) if !keys.is_empty() => {
                    held = ms.to_string();
                    &["-s", &held]
                }
                Act::Move(..) | Act::Click | Act::Down | Act::Up | Act::Wait(_) => &[],
            };
            if !words.is_empty() {
                if keys.is_empty() {
                    order("end");
                    said(&mut pointer.1, "done");
                }
                keys.extend(words.iter().map(|word| (*word).to_owned()));
                continue;
            }
            self.type_on_wayland(&mut keys);
            // The input program waits between the events itself, so that a press is never shorter than intended.
            match act {
                Act::Move(x, y) => {
                    for left in WAY {
                        order(&format!("move {} {y}\nsleep 0.01", x - left));
                    }
                }
                Act::Click => {
                    order("down\nsleep 0.01\nup\nend");
                    said(&mut pointer.1, "done");
                }
                Act::Down => order("down"),
                Act::Up => order("up"),
                Act::Wait(ms) => order(&format!("sleep {}", *ms as f64 / 1000.0)),
                Act::Key(_) | Act::HeldAllow(_) => {}
            }
        }
        self.type_on_wayland(&mut keys);
        writeln!(pointer.0, "end").expect("a pointer");
        said(&mut pointer.1, "done");
    }

    fn type_on_wayland(&self, keys: &mut Vec<String>) {
        let words: Vec<&str> = keys.iter().map(String::as_str).collect();
        if !words.is_empty() {
            self.screen.read("wtype", &words);
        }
        keys.clear();
    }

    /// Focuses the window with this title, as a user does. Does not wait.
    pub(crate) fn focus(&self, title: &str) {
        if self.pointer.is_some() {
            self.sway(&[&format!("[title=\"{title}\"] focus")]);
        } else {
            self.screen.xdotool(&["search", "--onlyvisible", "--name", title, "windowactivate"]);
        }
    }

    /// Minimizes the dialog, or restores it.
    pub(crate) fn minimize(&self, hidden: bool) {
        match (self.pointer.is_some(), hidden) {
            (true, true) => self.sway(&[&format!("[title=\"{DIALOG}\"] move scratchpad")]),
            (true, false) => self.sway(&[&format!("[title=\"{DIALOG}\"] scratchpad show")]),
            (false, true) => {
                drop(self.screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG, "windowminimize"]))
            }
            (false, false) => drop(self.screen.xdotool(&["search", "--name", DIALOG, "windowactivate"])),
        }
    }

    /// Switches to another workspace.
    pub(crate) fn workspace(&self, number: usize) {
        let number = number.to_string();
        match self.manager {
            "sway" => self.sway(&["workspace", &number]),
            "i3" => drop(self.screen.read("i3-msg", &["workspace", &number])),
            _ => {
                self.screen.xdotool(&["set_num_desktops", "3"]);
                self.screen.xdotool(&["set_desktop", &number]);
            }
        }
    }

    /// Opens another program's window over this area of the screen.
    pub(crate) fn cover(&self, [x, y, width, height]: [i32; 4]) -> Harness {
        let place = [x, y, width, height].map(|number| number.to_string());
        if self.manager != "sway" {
            let mut words = vec!["other", "over"];
            words.extend(place.iter().map(String::as_str));
            let cover = Harness::start(&self.screen, &words);
            assert_eq!(cover.event(), "ready");
            return cover;
        }
        let cover = Harness::start(&self.screen, &["other", "window"]);
        assert_eq!(cover.event(), "ready");
        let [x, y, width, height] = place;
        self.sway(&[&format!(
            "[title=\"Another program\"] floating enable, resize set {width} {height}, move absolute position {x} {y}"
        )]);
        cover
    }

    fn sway(&self, words: &[&str]) {
        self.screen.swaymsg(words);
    }

    /// Returns the positions in the open dialog.
    pub(crate) fn look(&self, title: &str) -> Spot {
        let mut before = None;
        until("a stable dialog layout", || {
            let now = self.places(title);
            if now.is_some() && now == before {
                return now;
            }
            before = now;
            std::thread::sleep(Duration::from_millis(150));
            None
        })
    }

    /// Waits until Allow can be armed in the visible dialog.
    pub(crate) fn wait_until_armable(&self, title: &str) {
        const CALM: [&str; 3] = [
            "To allow: point at Allow, or press Tab until you are on it",
            "Press Alt+A to allow",
            "Hold Alt+A to allow",
        ];
        until("an Allow ready to be armed", || {
            let all = self.screen.controls(title);
            let allow = all.iter().find(|one| one.role == "push button" && one.name.starts_with("Allow"))?;
            CALM.contains(&allow.description.as_str()).then_some(())
        });
    }

    fn places(&self, title: &str) -> Option<Spot> {
        let (left, top) = if self.pointer.is_some() { self.screen.sway_position(title) } else { (0, 0) };
        let middle = |control: &Control| {
            let [x, y, width, height] = control.place;
            (left + x + width / 2, top + y + height / 2)
        };
        let all = self.screen.controls(title);
        let allow = all.iter().find(|one| one.role == "push button" && one.name.starts_with("Allow"))?;
        let words = all.iter().find(|one| one.role == "label" && one.name.contains(" wants to "))?;
        let [x, y, width, height] = words.place;
        let spot =
            Spot { allow: middle(allow), beside: middle(words), words: [left + x, top + y, width, height] };
        (allow.place[2] > 0).then_some(spot)
    }
}

fn said(from: &mut BufReader<ChildStdout>, word: &str) {
    let mut line = String::new();
    from.read_line(&mut line).expect("a readable line");
    assert_eq!(line.trim(), word, "the pointer was lost");
}
