//! Input on an X11 screen with `xdotool`: keys, pointer and mouse wheel.

use super::{Control, Screen};

impl Screen {
    pub(crate) fn xdotool(&self, arguments: &[&str]) -> String {
        self.read("xdotool", arguments)
    }

    pub(crate) fn key(&self, key: &str) {
        self.xdotool(&["key", "--clearmodifiers", key]);
    }

    pub(crate) fn click(&self, control: &Control) {
        let [x, y, width, height] = control.place;
        let (x, y) = ((x + width / 2).to_string(), (y + height / 2).to_string());
        self.xdotool(&["mousemove", &x, &y, "click", "1"]);
    }

    /// Moves the pointer onto a control in several steps, as a hand does.
    pub(crate) fn move_pointer_onto(&self, control: &Control) {
        let [x, y, width, height] = control.place;
        let steps = [-20, -8, 0].map(|left| (x + width / 2 + left).to_string());
        let y = (y + height / 2).to_string();
        let words: Vec<&str> = steps.iter().flat_map(|x| ["mousemove", x, &y, "sleep", "0.02"]).collect();
        self.xdotool(&words);
    }

    /// Turns the mouse wheel by one notch at a point on the screen.
    pub(crate) fn turn(&self, (x, y): (i32, i32), down: bool) {
        let button = if down { "5" } else { "4" };
        self.xdotool(&["mousemove", &x.to_string(), &y.to_string(), "click", button]);
    }

    /// Presses the pointer button on a control and releases it after this many seconds.
    pub(crate) fn hold(&self, control: &Control, seconds: &str) {
        let [x, y, width, height] = control.place;
        let (x, y) = ((x + width / 2).to_string(), (y + height / 2).to_string());
        self.xdotool(&["mousemove", &x, &y, "mousedown", "1", "sleep", seconds, "mouseup", "1"]);
    }

    /// Presses the pointer button on a control, calls `happens`, and releases the button.
    pub(crate) fn press_while(&self, control: &Control, happens: impl FnOnce()) {
        let [x, y, width, height] = control.place;
        let (x, y) = ((x + width / 2).to_string(), (y + height / 2).to_string());
        self.xdotool(&["mousemove", &x, &y, "mousedown", "1"]);
        happens();
        self.xdotool(&["mouseup", "1"]);
    }
}
