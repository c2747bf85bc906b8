//! Simulates a user's input under a window manager: pointer movements, clicks and keys. Also finds Allow on the
//! screen.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Control, Screen, until};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Size of the screens, in pixels.
const SIZE: [&str; 2] = ["1280", "800"];

/// Distances from the target at the last points of a pointer movement, in pixels, because a real pointer does not jump.
/// All of these points are on Allow.
const WAY: [i32; 3] = [20, 8, 0];

/// Hints of a dialog in which Allow has to be armed first.
const TO_ARM: [&str; 2] = [
    "To allow: point at Allow, or press Tab until you are on it",
    "To allow: move the pointer slightly on Allow, or press Tab until you are on it",
];

/// Hints of a dialog in which Allow accepts a press.
const ARMED: [&str; 4] =
    ["Press Alt+A to allow", "Hold Alt+A to allow", "Click here to allow", "Press and hold here to allow"];

/// Hint of a dialog in which Allow was held long enough.
const HELD: &str = "Let go to allow";

/// Maximum number of times that a user presses Tab. No dialog has this many controls.
const MAX_TABS: usize = 30;

/// Maximum number of times that a user tries to choose Allow.
const MAX_CHOICES: usize = 2;

/// Time after which a user repeats a gesture that had no effect.
const GESTURE_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout of other waits. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between two checks of the hint.
const PAUSE: Duration = Duration::from_millis(50);

/// Input that presses Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    Keys,
    Button(Spot),
}

/// A user action.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Move(i32, i32),
    Click,
    Down,
    Up,
    /// Presses and releases a key with its modifiers.
    Key(&'static str),
    /// Presses Alt+A and keeps it pressed.
    KeysDown,
    /// Releases Alt+A.
    KeysUp,
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
    /// `true` if covering windows cannot be detected. Allow must then be held, unless the call only reads a file.
    pub(crate) holds: bool,
    /// Program with a virtual pointer and a virtual keyboard, on Wayland.
    wayland: Option<Mutex<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Desk {
    pub(crate) fn start(manager: &'static str) -> Self {
        if manager == "sway" {
            let mut screen = Screen::sway();
            let script = crate::screen::helper_path("wayland_input.py");
            let arguments = ["-u", script.to_str().expect("a UTF-8 path"), SIZE[0], SIZE[1]];
            let mut input = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
            said(&mut input.1, "ready");
            return Self { screen, manager, holds: true, wayland: Some(Mutex::new(input)) };
        }
        let screen = match manager {
            "openbox with picom" => Screen::composited("picom"),
            "xfwm4 with its compositor" => Screen::composited("xfwm4"),
            other => Screen::under(other),
        };
        Self { screen, manager, holds: false, wayland: None }
    }

    /// Performs the actions in order.
    pub(crate) fn act(&self, acts: &[Act]) {
        match &self.wayland {
            None => self.act_on_x(acts),
            Some(input) => act_on_wayland(&mut input.lock().expect("the input program"), acts),
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
                Act::KeysDown => say(&["keydown", "alt", "keydown", "a"]),
                Act::KeysUp => say(&["keyup", "a", "keyup", "alt"]),
                Act::Wait(ms) => say(&["sleep", &(*ms as f64 / 1000.0).to_string()]),
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.screen.xdotool(&words);
    }

    /// Focuses the window with this title, and waits until it has the focus: keys pressed before that go elsewhere.
    pub(crate) fn focus_and_wait(&self, title: &str) {
        if self.wayland.is_some() {
            self.focus(title);
            self.screen.wait_for_sway_focus(title);
        } else {
            self.screen.activate(&self.screen.window(title));
        }
    }

    /// Focuses the window with this title, as a user does. Does not wait.
    pub(crate) fn focus(&self, title: &str) {
        if self.wayland.is_some() {
            self.sway(&[&format!("[title=\"{title}\"] focus")]);
        } else {
            self.screen.xdotool(&["search", "--onlyvisible", "--name", title, "windowactivate"]);
        }
    }

    /// Minimizes the dialog, or restores it.
    pub(crate) fn minimize(&self, hidden: bool) {
        match (self.wayland.is_some(), hidden) {
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
        until("an Allow ready to be armed", || {
            let hint = self.hint(title)?;
            (hint == TO_ARM[0] || ARMED.contains(&hint.as_str())).then_some(())
        });
    }

    /// Allows the call as the dialog instructs: points at Allow or tabs to it, and then presses it. Returns the last
    /// hint as an error if Allow never accepts a press.
    pub(crate) fn allow_as_told(&self, title: &str, press: Press) -> Result<(), String> {
        let armed = self.arm(title, press);
        if !ARMED.contains(&armed.as_str()) {
            return Err(format!("Allow says: {armed:?}"));
        }
        let (down, up) = match press {
            Press::Keys => (Act::KeysDown, Act::KeysUp),
            Press::Button(_) => (Act::Down, Act::Up),
        };
        self.act(&[down]);
        if self.holds {
            let held = self.hint_after(title, TIMEOUT, |hint| hint == HELD);
            if held != HELD {
                self.act(&[up]);
                return Err(format!("while Allow is held, it says: {held:?}"));
            }
        }
        self.act(&[up]);
        Ok(())
    }

    /// Chooses Allow, repeatedly if necessary, until the dialog says how to press it. Returns the last hint.
    ///
    /// A change of the dialog in the meantime, for example because the dialog receives the focus late, restarts the
    /// rest period. The user must then choose Allow again.
    fn arm(&self, title: &str, press: Press) -> String {
        let mut hint = String::new();
        for _ in 0..MAX_CHOICES {
            match press {
                Press::Keys => self.tab_to_allow(title),
                Press::Button(spot) => self.point_at_allow(spot),
            }
            self.hint_after(title, GESTURE_TIMEOUT, |hint| !TO_ARM.contains(&hint));
            hint = self.hint_after(title, TIMEOUT, |hint| TO_ARM.contains(&hint) || ARMED.contains(&hint));
            if !TO_ARM.contains(&hint.as_str()) {
                break;
            }
        }
        hint
    }

    /// Presses Tab until Allow is focused. Checks the focus after each key, because the window manager may intercept
    /// keys.
    fn tab_to_allow(&self, title: &str) {
        let focused = || {
            let all = self.screen.controls(title);
            all.into_iter().find(|one| one.role != "dialog" && one.is("focused"))
        };
        for _ in 0..MAX_TABS {
            let before = focused();
            if before.as_ref().is_some_and(|one| one.name.starts_with("Allow")) {
                return;
            }
            self.act(&[Act::Key("Tab")]);
            look_until(GESTURE_TIMEOUT, focused, |now| {
                now.as_ref().map(|one| &one.name) != before.as_ref().map(|one| &one.name)
            });
        }
    }

    /// Moves the pointer on Allow, as a hand does.
    ///
    /// A hand never rests completely. A busy page reports only the last of several quick movements, so the movements on
    /// Allow are spread over some time.
    fn point_at_allow(&self, spot: Spot) {
        let ((away_x, away_y), (x, y)) = (spot.beside, spot.allow);
        let away = Act::Move(away_x, away_y);
        let on_allow = [x + 6, x - 6, x + 3, x].map(|x| [Act::Move(x, y), Act::Wait(90)]);
        self.act(&[&[away], on_allow.as_flattened()].concat());
    }

    /// Waits at most `time` for a hint that meets the condition. Returns the last hint.
    fn hint_after(&self, title: &str, time: Duration, is_so: impl Fn(&str) -> bool) -> String {
        look_until(time, || self.hint(title).unwrap_or_default(), |hint| is_so(hint))
    }

    /// Returns the hint that says how to allow the call.
    fn hint(&self, title: &str) -> Option<String> {
        let mut all = self.screen.controls(title).into_iter();
        let allow = all.find(|one| one.role == "push button" && one.name.starts_with("Allow"))?;
        Some(allow.description)
    }

    fn places(&self, title: &str) -> Option<Spot> {
        let (left, top) = if self.wayland.is_some() { self.screen.sway_position(title) } else { (0, 0) };
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

/// Calls `look` until its result meets the condition or `time` has passed. Returns the last result.
fn look_until<T>(time: Duration, mut look: impl FnMut() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let until = Instant::now() + time;
    loop {
        let seen = look();
        if is_so(&seen) || Instant::now() > until {
            return seen;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Performs the actions in order. The input program waits between them itself, so that a press is never shorter than
/// intended.
fn act_on_wayland((input, output): &mut (ChildStdin, BufReader<ChildStdout>), acts: &[Act]) {
    let mut order = |line: &str| writeln!(input, "{line}").expect("the input program");
    for act in acts {
        match act {
            Act::Move(x, y) => {
                for left in WAY {
                    order(&format!("move {} {y}\nsleep 0.01", x - left));
                }
            }
            Act::Click => order("down\nsleep 0.01\nup"),
            Act::Down => order("down"),
            Act::Up => order("up"),
            Act::Key("alt+a") => {
                order("press alt\npress a\nsleep 0.01\nrelease a\nrelease alt");
            }
            Act::Key(key) => order(&format!("press {key}\nsleep 0.01\nrelease {key}")),
            Act::KeysDown => order("press alt\npress a"),
            Act::KeysUp => order("release a\nrelease alt"),
            Act::Wait(ms) => order(&format!("sleep {}", *ms as f64 / 1000.0)),
        }
    }
    order("end");
    said(output, "done");
}

fn said(from: &mut BufReader<ChildStdout>, word: &str) {
    let mut line = String::new();
    from.read_line(&mut line).expect("a readable line");
    assert_eq!(line.trim(), word, "the input program was lost");
}
