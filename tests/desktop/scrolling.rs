//! Tests the mouse wheel in the window: without the keyboard, every page can be scrolled to its end, and every control
//! can be reached.

use crate::app::App;
use crate::app::agent;
use crate::harness::Harness;
use crate::screen::{Control, Screen, until};
use crate::window::{open, says};

const WINDOW: &str = "^IronCurtain$";

const PAGES: [&str; 6] = ["Activity", "Agents", "Permissions", "Servers", "Rules", "Settings"];

/// Number of wheel notches between two queries of a page. Queries are slow, because they use the screen reader
/// interface.
const NOTCHES: usize = 6;

#[test]
fn mouse_wheel_scrolls_every_page_to_its_end_and_back() {
    let screen = crate::tray::with_panel();
    let _app = App::start(&screen, &[]);
    scroll_to_end_and_back(&screen, "First steps");
    crate::window::skip_setup(&screen);
    says(&screen, "Not protected");
    scroll_to_end_and_back(&screen, "Home");
    let _agent = agent(&screen);
    says(&screen, "1 agent");
    let mut longer = 0;
    for page in PAGES {
        open(&screen, page);
        longer += usize::from(scroll_to_end_and_back(&screen, page));
        // Controls at the end of the page are also clicked there.
        match page {
            "Rules" => {
                screen.click(&reached(&screen, "Add a rule"));
                until("the form of a rule", || {
                    let all = screen.controls(WINDOW);
                    all.iter()
                        .any(|one| one.name.starts_with("Only below") || one.name == "Then")
                        .then_some(())
                });
            }
            "Settings" => drop(reached(&screen, "Notifications")),
            _ => {}
        }
    }
    assert!(longer >= 2, "only {longer} of these pages are longer than the window");
}

#[test]
fn every_task_works_with_mouse_and_wheel_only() {
    let screen = Screen::start();
    let harness = Harness::start(&screen, &["app"]);
    says(&screen, "filesystem, in a sandbox");
    let press = |name: &str| screen.click(&reached(&screen, name));
    // The page redraws after the event, which moves the controls below the removed one.
    let press_to_remove = |name: &str, event: &str| {
        press(name);
        assert_eq!(harness.event(), event);
        until(&format!("`{name}` to disappear"), || screen.find(WINDOW, "", name).is_none().then_some(()));
    };
    press_to_remove(
        "Dismiss: Claude Code, write /home/ada/Documents/tax/2026/summary.md (+3 -1 lines)",
        "forgot q8",
    );
    reached(&screen, "All activity");
    open(&screen, "Agents");
    press("Review 1 file of filesystem");
    press_to_remove("Keep /home/ada/src/site/package.json", "Keep /home/ada/src/site/package.json");
    press_to_remove("Ask me again about delete_file in /home/ada/Pictures", "forgot q5");
    press("More about git for Cursor");
    press_to_remove("End session of Cursor with git", "ended s2");
    open(&screen, "Permissions");
    press("Revoke /home/ada/Pictures/2026");
    assert_eq!(harness.event(), "took-back g2");
    open(&screen, "Home");
    press("Lock down");
    assert_eq!(harness.event(), "lockdown true false");
}

/// On Wayland, the web engine uses compositing and handles wheel events differently.
#[test]
fn wayland_mouse_wheel_scrolls_page_to_its_end() {
    let mut screen = Screen::sway();
    // Makes the screen lower than the page.
    screen.swaymsg(&["output", "HEADLESS-1", "resolution", "1280x500"]);
    let script = crate::screen::helper_path("wayland_input.py");
    let arguments = ["-u", script.to_str().expect("a UTF-8 path"), "1280", "500"];
    let (mut pointer, said) = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
    let mut said = std::io::BufRead::lines(said).map_while(Result::ok);
    assert_eq!(said.next().as_deref(), Some("ready"));
    let _harness = Harness::start(&screen, &["app"]);
    says(&screen, "filesystem, in a sandbox");
    let (left, top) = screen.sway_position("^IronCurtain");
    // Uses the position of the page's heading, which changes when the page scrolls.
    let first = || bounds(&screen).map(|(_, top)| top);
    let before = until("the page", || first().filter(|top| *top > 0));
    until("the page to scroll", || {
        std::io::Write::write_all(
            &mut pointer,
            format!("move {} {}\nwheel 3\nend\n", left + 700, top + 250).as_bytes(),
        )
        .expect("a pointer");
        assert_eq!(said.next().as_deref(), Some("done"));
        first().filter(|top| *top < before - 100)
    });
}

/// Scrolls the page to its end and back. Returns `true` if the page was longer than the window.
fn scroll_to_end_and_back(screen: &Screen, page: &str) -> bool {
    let [x, y, width, height] = window_place(screen);
    let middle = (x + width * 2 / 3, y + height / 2);
    // Waits until the layout no longer changes, because a page loads its data after it shows its heading.
    let mut before = None;
    let (_, top) = until(page, || {
        let now = bounds(screen)?;
        (before.replace(now) == Some(now)).then_some(now)
    });
    let is_in = |edge: i32| (y..=y + height).contains(&edge);
    let (end, _) = bounds(screen).expect("a page");
    let longer = !is_in(end);
    until(&format!("the end of {page}"), || {
        let (end, _) = bounds(screen)?;
        if is_in(end) {
            return Some(());
        }
        (0..NOTCHES).for_each(|_| screen.turn(middle, true));
        None
    });
    screen.picture(&format!("end-of-{page}"));
    until(&format!("the beginning of {page}"), || {
        let (_, now) = bounds(screen)?;
        if now >= top {
            return Some(());
        }
        (0..NOTCHES).for_each(|_| screen.turn(middle, false));
        None
    });
    longer
}

/// Scrolls until the whole control is in view and no longer moves. Returns the control.
fn reached(screen: &Screen, name: &str) -> Control {
    let [x, y, width, height] = window_place(screen);
    let mut before = None;
    until(&format!("`{name}` in the window"), || {
        let control = screen.find(WINDOW, "", name)?;
        let [_, top, _, tall] = control.place;
        if top < y || top + tall > y + height {
            screen.turn((x + width * 2 / 3, y + height / 2), top >= y);
            return None;
        }
        (before.replace(control.place) == Some(control.place)).then_some(control)
    })
}

fn window_place(screen: &Screen) -> [i32; 4] {
    until("the window", || {
        let all = screen.controls(WINDOW);
        all.into_iter().find(|one| one.role == "frame" && one.place[2] > 0).map(|one| one.place)
    })
}

/// Returns the lowest edge of all controls on the page, and the position of its heading.
fn bounds(screen: &Screen) -> Option<(i32, i32)> {
    let all = screen.controls(WINDOW);
    let heading = all.iter().position(|one| one.role == "heading")?;
    let drawn = all.get(heading..)?.iter().filter(|one| one.place[3] > 0 && one.is("visible"));
    let end = drawn.map(|one| one.place[1] + one.place[3]).max()?;
    Some((end, all.get(heading)?.place[1]))
}
