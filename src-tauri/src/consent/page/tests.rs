//! Tests reports in and out of order, and the resulting answers.

use super::*;
use crate::consent::view::tests::question;
use std::borrow::Cow;
use std::path::Path;

/// Measurement with all required text in view.
const ALL_IN_VIEW: PageEvent = PageEvent::LaidOut { above: 0.0, room: 400.0, height: 380.0 };

/// Page, the time at which it opened, and the number of its next report.
struct Scene {
    page: Page,
    opened: Instant,
    next: u64,
}

impl Scene {
    fn new() -> Self {
        let opened = Instant::now();
        let view = ConsentView::new(&question(), Path::new("/home/ada"));
        let countdown = Countdown::new(view.deadline, opened);
        let mut page = Page::new(1, view, countdown, false, opened);
        page.on_window_event(Event::Focused(true), opened);
        page.set_window_height(600.0, opened);
        Self { page, opened, next: 0 }
    }

    /// Reports an event `ms` milliseconds after the page opened.
    fn at(&mut self, ms: u64, event: PageEvent) -> Option<DialogResult> {
        let number = self.next;
        self.next += 1;
        self.numbered(ms, number, event)
    }

    fn numbered(&mut self, ms: u64, number: u64, event: PageEvent) -> Option<DialogResult> {
        self.page.on(number, event, self.opened + Duration::from_millis(ms)).0
    }

    fn hint(&mut self, ms: u64) -> Cow<'static, str> {
        self.page.update(self.opened + Duration::from_millis(ms)).hint
    }

    /// Reports everything that must precede a press of Allow. A press is then accepted from 1.3 s after the page
    /// opened.
    fn aimed(mut self) -> Self {
        assert_eq!(self.at(10, ALL_IN_VIEW), None);
        self.point(1_000);
        self
    }

    /// Moves the pointer onto Allow, then across it.
    fn point(&mut self, ms: u64) {
        assert_eq!(self.at(ms, PageEvent::OnAllow { x: 500, y: 500 }), None);
        assert_eq!(self.at(ms, PageEvent::OnAllow { x: 520, y: 500 }), None);
    }
}

fn yes(lifetime: Lifetime) -> Option<DialogResult> {
    Some(DialogResult::Answered(Answer::Allow { offer: 0, lifetime }))
}

fn no(note: Option<&str>, reach: DenialReach) -> Option<DialogResult> {
    Some(DialogResult::Answered(Answer::Deny { note: note.map(str::to_owned), reach }))
}

#[test]
fn a_deliberate_held_press_allows() {
    let mut scene = Scene::new().aimed();
    assert_eq!(scene.hint(1_300), "Press and hold here to allow");
    assert_eq!(scene.at(1_300, PageEvent::Down { by: InputDevice::Pointer }), None);
    assert_eq!(scene.hint(1_500), "Keep holding");
    assert_eq!(scene.at(2_010, PageEvent::Up { by: InputDevice::Pointer }), yes(Lifetime::Once));
    assert_eq!(
        scene.at(2_020, PageEvent::Deny { note: String::new(), reach: Reach::Call }),
        None,
        "it is over"
    );

    let mut keyed = Scene::new();
    keyed.at(10, ALL_IN_VIEW);
    keyed.at(20, PageEvent::Keyed { on: true });
    keyed.at(900, PageEvent::Down { by: InputDevice::Key });
    assert_eq!(keyed.at(1_700, PageEvent::Up { by: InputDevice::Key }), yes(Lifetime::Once));
}

#[test]
fn every_condition_of_a_press_is_required() {
    let press = |mut scene: Scene, from: u64, until: u64| {
        scene.at(from, PageEvent::Down { by: InputDevice::Pointer });
        scene.at(until, PageEvent::Up { by: InputDevice::Pointer })
    };
    assert_eq!(press(Scene::new().aimed(), 1_300, 2_010), yes(Lifetime::Once), "the twin");
    assert_eq!(press(Scene::new().aimed(), 1_300, 1_900), None, "let go too soon");
    assert_eq!(press(Scene::new().aimed(), 1_100, 2_010), None, "pressed at once");
    let mut early = Scene::new().aimed();
    assert_eq!(early.page.update(early.opened).ignored, 0);
    early.at(1_100, PageEvent::Down { by: InputDevice::Pointer });
    assert_eq!(early.page.update(early.opened).ignored, 1, "the page says that it did not count");
    let mut unread = Scene::new();
    unread.point(1_000);
    assert_eq!(press(unread, 1_300, 2_010), None, "not read");
    let mut parked = Scene::new();
    parked.point(5);
    parked.at(10, ALL_IN_VIEW);
    assert_eq!(press(parked, 1_300, 2_010), None, "the pointer was there before");
    let mut moved = Scene::new().aimed();
    moved.page.on_window_event(Event::Changed, moved.opened + Duration::from_millis(1_200));
    assert_eq!(press(moved, 1_300, 2_010), None, "the window moved");
    let mut chose = Scene::new().aimed();
    chose.at(1_250, PageEvent::Choose { offer: 0, lifetime: 1 });
    assert_eq!(press(chose, 1_300, 2_010), None, "it is another yes now");
}

#[test]
fn allow_requires_that_everything_was_in_view() {
    let press = |mut scene: Scene| {
        scene.point(1_000);
        scene.at(1_300, PageEvent::Down { by: InputDevice::Pointer });
        scene.at(2_010, PageEvent::Up { by: InputDevice::Pointer })
    };
    let measured = |above: f64, room: f64, height: f64, window_height: f64| {
        let mut scene = Scene::new();
        scene.page.set_window_height(window_height, scene.opened);
        scene.at(10, PageEvent::LaidOut { above, room, height });
        scene
    };
    assert_eq!(press(measured(0.0, 400.0, 380.0, 600.0)), yes(Lifetime::Once), "all of it is in view");
    assert_eq!(press(measured(0.0, 400.0, 900.0, 600.0)), None, "more lies below");
    assert_eq!(press(measured(500.0, 400.0, 900.0, 600.0)), yes(Lifetime::Once), "scrolled to its end");
    assert_eq!(press(measured(0.0, 9_000.0, 900.0, 600.0)), None, "no window is as tall as that room");
    assert_eq!(press(measured(0.0, 400.0, 380.0, 0.0)), None, "the window's height is unknown");
    assert_eq!(press(measured(0.0, 0.0, 0.0, 600.0)), None, "nothing is laid out");
    let mut grew = measured(0.0, 400.0, 380.0, 600.0);
    grew.at(100, PageEvent::LaidOut { above: 0.0, room: 400.0, height: 900.0 });
    assert_eq!(press(grew), None, "there is more of it now");
    let mut shrank = measured(0.0, 400.0, 380.0, 600.0);
    shrank.page.set_window_height(200.0, shrank.opened + Duration::from_millis(100));
    assert_eq!(press(shrank), None, "the window has less room now");
    let mut scrolls = measured(500.0, 400.0, 900.0, 600.0);
    scrolls.at(1_200, PageEvent::LaidOut { above: 0.0, room: 400.0, height: 900.0 });
    assert_eq!(press(scrolls), None, "it moved under the pointer");
}

#[test]
fn a_report_out_of_order_counts_as_another_press() {
    for (number, why) in [(1, "a repeated report"), (7, "something is missing")] {
        let mut scene = Scene::new().aimed();
        assert_eq!(scene.numbered(1_300, number, PageEvent::Down { by: InputDevice::Pointer }), None);
        assert_eq!(
            scene.numbered(2_010, number + 1, PageEvent::Up { by: InputDevice::Pointer }),
            None,
            "{why}"
        );
        // After a rest period, the user can still allow the call.
        let mut again = Scene { next: number + 2, ..scene };
        assert_eq!(
            again.hint(3_000),
            "To allow: move the pointer slightly on Allow, or press Tab until you are on it"
        );
        again.point(3_000);
        again.at(3_300, PageEvent::Down { by: InputDevice::Pointer });
        assert_eq!(again.at(4_100, PageEvent::Up { by: InputDevice::Pointer }), yes(Lifetime::Once), "{why}");
    }
    let mut scene = Scene::new();
    let deny = PageEvent::Deny { note: " not now ".into(), reach: Reach::Session };
    assert_eq!(scene.numbered(5, 9, deny), no(Some("not now"), DenialReach::Session), "a no always counts");
}

#[test]
fn allows_the_chosen_lifetime_and_ignores_invalid_choices() {
    let mut scene = Scene::new();
    scene.at(5, PageEvent::Choose { offer: 4, lifetime: 0 });
    scene.at(6, PageEvent::Choose { offer: 0, lifetime: 9 });
    assert_eq!(scene.page.update(scene.opened).allow, "Allow once");
    scene.at(7, PageEvent::Choose { offer: 0, lifetime: 1 });
    let shown = scene.page.update(scene.opened);
    assert_eq!(
        (shown.allow.as_str(), shown.outcome.as_str()),
        ("Allow for this session", "Claude Code may create this one file until this session ends.")
    );
    let mut scene = scene.aimed();
    scene.at(1_300, PageEvent::Down { by: InputDevice::Pointer });
    assert_eq!(scene.at(2_010, PageEvent::Up { by: InputDevice::Pointer }), yes(Lifetime::Session));
}

#[test]
fn closing_and_timeout_deny() {
    let mut closed = Scene::new();
    assert_eq!(closed.page.close(), no(None, DenialReach::Call));
    assert_eq!(closed.page.close(), None);
    let mut late = Scene::new().aimed();
    assert_eq!(late.page.expire(late.opened + Duration::from_millis(45_000)), None);
    // User activity restarts the countdown.
    late.at(45_005, PageEvent::Down { by: InputDevice::Pointer });
    assert_eq!(late.page.expire(late.opened + Duration::from_millis(90_000)), None);
    assert_eq!(late.at(92_000, PageEvent::Up { by: InputDevice::Pointer }), Some(DialogResult::TimedOut));
    assert_eq!(late.page.expire(late.opened + Duration::from_secs(99)), None, "it ends once");
}

#[test]
fn serializes_the_view_and_validates_reports() {
    let scene = Scene::new();
    let drawn = serde_json::to_value(scene.page.content()).unwrap();
    assert_eq!(drawn["headline"][2], serde_json::json!({ "text": "write ", "tone": "strong" }));
    assert_eq!((&drawn["lines"], &drawn["rest"]), (&serde_json::json!([]), &serde_json::Value::Null));
    assert_eq!(drawn["times"], serde_json::json!([["once", "this session"]]));
    let read = |text: &str| serde_json::from_str::<PageEvent>(text).ok();
    assert_eq!(read(r#"{"did":"down","by":"key"}"#), Some(PageEvent::Down { by: InputDevice::Key }));
    assert_eq!(
        read(r#"{"did":"choose","offer":0,"lifetime":1}"#),
        Some(PageEvent::Choose { offer: 0, lifetime: 1 })
    );
    assert_eq!(
        read(r#"{"did":"laid-out","above":0,"room":310.5,"height":300}"#),
        Some(PageEvent::LaidOut { above: 0.0, room: 310.5, height: 300.0 })
    );
    assert_eq!(read(r#"{"did":"allow"}"#), None);
    assert_eq!(read(r#"{"did":"read"}"#), None, "what was read is judged here");
    assert_eq!(read(r#"{"did":"focused","on":true}"#), None, "only the system says so");
}
