//! Tests the dialog that answers all of an agent's pending questions at once. Allowing a batch takes the same steps as
//! allowing a single call, and covers only the calls that the dialog shows.

use crate::harness::{DIALOG, Harness, arm_by_keyboard, arm_by_pointer, read_to_end};
use crate::screen::{Control, Screen, until};

const TOGETHER: &str = "change 1 file and read 2 files$";

/// Asks four questions: two reads, an edit, and the deletion of a folder. The deletion cannot be in a batch.
fn ask_questions(screen: &Screen) -> Harness {
    let mut harness = Harness::start(screen, &["dialog"]);
    for order in ["file-a q1", "file-b q2", "unsandboxed grave", "lines q3"] {
        harness.order(&format!("ask {order} 120000"));
    }
    screen.control(DIALOG, "push button", "See 3 of 4 together");
    harness
}

/// Shows the first three questions in a focused batch dialog.
fn show_batch(screen: &Screen) -> Harness {
    let harness = ask_questions(screen);
    screen.activate(&screen.window(DIALOG));
    screen.key("alt+s");
    screen.activate(&screen.window(TOGETHER));
    harness
}

#[test]
fn batch_answer_is_not_offered_when_it_does_not_fit() {
    let screen = Screen::start();
    let mut harness = Harness::start(&screen, &["dialog"]);
    harness.order("ask file-a q1 120000");
    screen.control(DIALOG, "push button", "Deny");
    let offers = || screen.controls(DIALOG).iter().filter(|one| one.name.contains("together")).count();
    assert_eq!(offers(), 0, "a screen reader finds no hidden button");
    harness.order("ask file-b q2 120000");
    screen.control(DIALOG, "push button", "See all 2 together");
    harness.order("withdraw q2");
    until("the batch offer to disappear", || (offers() == 0).then_some(()));
}

fn rows(screen: &Screen) -> Vec<Control> {
    screen.controls(TOGETHER).into_iter().filter(|one| one.role == "check box").collect()
}

#[test]
fn batch_allow_covers_each_ticked_call_once() {
    let screen = Screen::start();
    let mut harness = show_batch(&screen);
    let sentences = [
        "Claude Code wants to change 1 file and read 2 files",
        "change ~/notes/plan.md (1 of 240 lines is removed, 2 are added)",
        "read ~/notes/a.md",
        "edit_file, a tool of the server filesystem",
        "Untick a call to be asked about it separately.",
        "Not shown here: 1 more call, which does more than read or change an existing file, or changes one of these files again. You will be asked about it separately.",
        "\u{2192} Claude Code may make the 3 ticked calls, each once.",
    ];
    for sentence in sentences {
        screen.control(TOGETHER, "label", sentence);
    }
    screen.picture("dialog-together");
    let before: Vec<(String, [i32; 4])> =
        rows(&screen).into_iter().map(|row| (row.name, row.place)).collect();
    assert_eq!(before.len(), 3, "{before:?}");
    // A new question is not added to the batch and moves no controls.
    harness.order("ask file-c late 120000");
    screen.control(TOGETHER, "label", "2 more waiting");
    let after: Vec<(String, [i32; 4])> = rows(&screen).into_iter().map(|row| (row.name, row.place)).collect();
    assert_eq!(after, before);
    // The agent's row is below the calls. Allow is armed only after the row has been in view.
    read_to_end(&screen, TOGETHER, "Allow these 3 once", "Next");
    arm_by_keyboard(&screen, "Allow these 3 once");
    screen.press(TOGETHER, "check box", "read ~/notes/b.md");
    // Allow now covers different calls, so it must be armed again.
    screen.key("alt+a");
    arm_by_keyboard(&screen, "Allow these 2 once");
    screen.picture("dialog-together-armed");
    screen.key("alt+a");
    assert_eq!([harness.event(), harness.event()], ["q3 allow 0 Once", "q1 allow 0 Once"]);
    // The remaining questions are shown one after another.
    for (title, answer) in [
        ("read ~/notes/b.md", "q2 deny"),
        ("delete /srv/photos", "grave deny"),
        ("read ~/notes/c.md", "late deny"),
    ] {
        screen.activate(&screen.window(title));
        screen.key("Escape");
        assert_eq!(harness.event(), answer);
    }
}

#[test]
fn finished_call_keeps_its_row_and_is_not_allowed() {
    let screen = Screen::start();
    let mut harness = show_batch(&screen);
    read_to_end(&screen, TOGETHER, "Allow these 3 once", "Next");
    let allow = arm_by_pointer(&screen, "Allow these 3 once");
    let before: Vec<[i32; 4]> = rows(&screen).into_iter().map(|row| row.place).collect();
    harness.order("withdraw q1");
    assert_eq!(harness.event(), "q1 dropped");
    screen.control(TOGETHER, "label", "no answer needed anymore");
    // A click that was aimed while Allow covered three calls allows none of them.
    screen.click(&allow);
    assert_eq!(rows(&screen).into_iter().map(|row| row.place).collect::<Vec<_>>(), before);
    screen.picture("dialog-together-over");
    let allow = arm_by_pointer(&screen, "Allow these 2 once");
    screen.click(&allow);
    assert_eq!([harness.event(), harness.event()], ["q3 allow 0 Once", "q2 allow 0 Once"]);
}

#[test]
fn empty_batch_allows_nothing_and_escape_denies_only_shown_calls() {
    let screen = Screen::start();
    let harness = show_batch(&screen);
    for row in ["change ~/notes/plan.md", "read ~/notes/a.md", "read ~/notes/b.md"] {
        screen.press(TOGETHER, "check box", row);
    }
    screen.control(TOGETHER, "label", "\u{2192} Nothing is ticked, so nothing can be allowed.");
    let allow = screen.control(TOGETHER, "push button", "Allow");
    assert!(!allow.is("sensitive"), "{allow:?}");
    screen.click(&allow);
    screen.key("alt+a");
    screen.key("Escape");
    assert_eq!([harness.event(), harness.event(), harness.event()], ["q3 deny", "q1 deny", "q2 deny"]);
    screen.control("delete /srv/photos", "push button", "Deny");
}

#[test]
fn large_text_on_small_screen_keeps_every_batch_button_visible() {
    let screen = Screen::start_small_with_large_text();
    let harness = show_batch(&screen);
    let names = ["Allow these 3 once", "Deny all 3", "One by one"];
    for name in names {
        let [x, y, width, height] = screen.control(TOGETHER, "push button", name).place;
        assert!(x >= 0 && y >= 0 && x + width <= 1024 && y + height <= 768, "{name}");
    }
    screen.picture("dialog-together-large");
    screen.key("Escape");
    assert_eq!([harness.event(), harness.event(), harness.event()], ["q3 deny", "q1 deny", "q2 deny"]);
}

#[test]
fn one_by_one_returns_to_batch_and_riskier_calls_are_never_batched() {
    let screen = Screen::start();
    let mut harness = show_batch(&screen);
    screen.key("alt+o");
    screen.activate(&screen.window("read ~/notes/a.md"));
    harness.order("withdraw q1");
    harness.order("withdraw q2");
    assert_eq!([harness.event(), harness.event()], ["q1 dropped", "q2 dropped"]);
    let grave = screen.window("delete /srv/photos");
    screen.control("delete /srv/photos", "label", "1 more waiting");
    let pressable = screen.controls("delete /srv/photos");
    let offered = pressable.iter().any(|one| one.name.contains("together") && one.is("showing"));
    assert!(!offered, "{pressable:#?}");
    screen.activate(&grave);
    screen.key("Escape");
    assert_eq!(harness.event(), "grave deny");
    // The other agent's question is not in the batch.
    until("the last question", || Some(screen.window("change ~/notes/plan.md")).filter(|id| !id.is_empty()));
}
