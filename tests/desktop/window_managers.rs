//! Tests window managers that prevent focus stealing. The app's windows come to the front when the user requests them,
//! and a dialog does not take the keyboard focus from another window.

use crate::app::{App, agent, begin_reading};
use crate::harness::{DIALOG, Harness};
use crate::screen::{Screen, until};
use crate::window;
use crate::window_process::{ended, family};

const WINDOW: &str = "^IronCurtain$";
const OTHER: &str = "^Another program$";
const PICKER: &str = "^Grant a folder and everything in it$";

#[test]
fn metacity_raises_requested_window_and_question_takes_no_focus() {
    use_under("metacity");
}

#[test]
fn mutter_raises_requested_window_and_question_takes_no_focus() {
    use_under("mutter");
}

#[test]
fn xfwm4_raises_requested_window_and_question_takes_no_focus() {
    use_under("xfwm4");
}

#[test]
fn i3_raises_requested_window_and_question_takes_no_focus() {
    use_under("i3");
}

/// Uses the window, another program, the dialog and a picker in turn, under this window manager.
fn use_under(manager: &str) {
    let screen = Screen::under(manager);
    let folder = screen.home().join("notes");
    std::fs::create_dir_all(&folder).expect("the folder");
    for file in ["plan.txt", "list.txt"] {
        std::fs::write(folder.join(file), "ship on Tuesday").expect("the file");
    }
    let app = App::start(&screen, &[]);
    window::skip_setup(&screen);
    window::says(&screen, "Not protected");
    let ours = screen.window(WINDOW);

    let other = Harness::start(&screen, &["other", "window"]);
    assert_eq!(other.event(), "ready");
    let others = screen.window(OTHER);
    for minimized in [false, true] {
        use_other(&screen, &others);
        // i3 tiles windows and does not minimize them.
        let tiled = manager == "i3";
        if minimized && !tiled {
            screen.xdotool(&["windowminimize", &ours]);
            until("the window to be hidden", || {
                screen.read("xprop", &["-id", &ours, "_NET_WM_STATE"]).contains("_HIDDEN").then_some(())
            });
            use_other(&screen, &others);
        }
        assert_eq!(App::start(&screen, &["--background"]).exit(), Some(0));
        screen.wait_for_focus(&ours);
        if !tiled {
            is_over(&screen, &ours, &others);
        }
    }

    // The keyboard focus does not move, and the whole dialog is visible.
    let mut agent = agent(&screen);
    window::says(&screen, "1 agent");
    for file in ["plan.txt", "list.txt"] {
        let call = begin_reading(&mut agent, &folder.join(file));
        let dialog = screen.window(DIALOG);
        screen.control(DIALOG, "push button", "Deny");
        screen.key("x");
        is_over(&screen, &dialog, &ours);
        screen.wait_for_focus(&ours);
        screen.picture(&format!("question-{manager}"));
        // The app's process received its last input, the answer to the dialog, after the last input of the window's
        // process.
        let review = until("the open question", || {
            let all = screen.controls(WINDOW).into_iter();
            all.map(|one| one.name).find(|name| name.starts_with("Review: "))
        });
        screen.press(WINDOW, "push button", &review);
        screen.wait_for_focus(&dialog);
        screen.key("Escape");
        assert_eq!(agent.answer(call)["result"]["isError"], true);
        screen.activate(&ours);
    }

    window::open(&screen, "Permissions");
    let press = |name: &str| screen.click(&window::named(&screen, name));
    press("Add a permission");
    press("Pick a folder\u{2026}");
    let picker = screen.window(PICKER);
    screen.wait_for_focus(&picker);
    is_over(&screen, &picker, &ours);
    screen.picture(&format!("picker-{manager}"));
    screen.xdotool(&["type", "--delay", "20", folder.to_str().expect("a UTF-8 path")]);
    screen.key("Return");
    window::says(&screen, "Granted: ~/notes");

    // The window still works. Closing it also closes its picker.
    press("Pick a folder\u{2026}");
    let picker = screen.window(PICKER);
    screen.wait_for_focus(&picker);
    screen.activate(&ours);
    screen.press(WINDOW, "push button", &format!("Revoke {}", folder.display()));
    window::says(&screen, "Revoked, verified");
    is_over(&screen, &picker, &ours);
    let drawn = family(app.id()).split_off(1);
    close(&screen, manager);
    ended(&drawn);
    until("the picker to close", || (!is_shown(&screen, PICKER)).then_some(()));
    use_other(&screen, &others);
    assert_eq!(App::start(&screen, &["--background"]).exit(), Some(0));
    window::says(&screen, "1 agent");
    screen.wait_for_focus(&screen.window(WINDOW));
}

/// Brings the other program's window to the front and types in it.
fn use_other(screen: &Screen, others: &str) {
    screen.activate(others);
    screen.key("x");
}

/// Closes the focused window, as a user does.
fn close(screen: &Screen, manager: &str) {
    if manager == "i3" {
        screen.read("i3-msg", &["kill"]);
    } else {
        screen.key("alt+F4");
    }
}

fn is_shown(screen: &Screen, title: &str) -> bool {
    !screen.xdotool(&["search", "--onlyvisible", "--name", title]).is_empty()
}

/// Waits until the first window is above the second.
fn is_over(screen: &Screen, above: &str, below: &str) {
    until("the expected stacking order", || {
        let all = screen.read("xprop", &["-root", "_NET_CLIENT_LIST_STACKING"]);
        let all: Vec<String> = all
            .split([' ', ','])
            .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .map(|number| number.to_string())
            .collect();
        let at = |window: &str| all.iter().position(|one| one == window);
        (at(above)? > at(below)?).then_some(())
    });
}
