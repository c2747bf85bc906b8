//! Tests races between the user's input and a dialog, under all window managers. Accidental input never allows a call,
//! but deliberate input afterwards does.
//!
//! - `IRONCURTAIN_RACES=all` runs all scenes at all paces, more than 500 tries. By default, each scene runs once
//!   under each window manager.

#![expect(clippy::print_stdout, reason = "prints the result of each try")]

mod scenes;
mod user_input;

use scenes::{SCENES, Spots};
use std::time::Duration;
use user_input::Desk;

/// Maximum median time for a deliberate answer.
const MEANT_WITHIN: Duration = Duration::from_millis(2500);

/// Window managers. Four of them run with a compositor, and one runs on Wayland.
const MANAGERS: [&str; 8] = [
    "openbox",
    "metacity",
    "i3",
    "xfwm4",
    "xfwm4 with its compositor",
    "mutter",
    "openbox with picom",
    "sway",
];

/// Intervals between clicks or key presses in milliseconds, that is, 10 to 2 per second.
const PACES: [u64; 5] = [100, 150, 250, 333, 500];

/// One run of a scene, and its result.
struct Try {
    name: String,
    /// `true` if accidental input allowed a call.
    accident: bool,
    /// Duration of the deliberate answer that followed, or `None` if there was none.
    meant: Option<Result<Duration, String>>,
}

#[test]
fn allow_needs_intent_under_every_window_manager() {
    let all = std::env::var("IRONCURTAIN_RACES").is_ok_and(|value| value == "all");
    let tries: Vec<Try> = std::thread::scope(|scope| {
        let races = MANAGERS
            .iter()
            .enumerate()
            .map(|(number, manager)| scope.spawn(move || race(manager, number, all)));
        let races: Vec<_> = races.collect();
        races.into_iter().flat_map(|race| race.join().expect("a finished race")).collect()
    });
    let accidents: Vec<&str> = tries.iter().filter(|one| one.accident).map(|one| one.name.as_str()).collect();
    let twins = || tries.iter().filter_map(|one| Some((one.name.as_str(), one.meant.as_ref()?)));
    let refused: Vec<_> = twins().filter_map(|(name, meant)| Some((name, meant.as_ref().err()?))).collect();
    let mut times: Vec<Duration> = twins().filter_map(|(_, meant)| meant.as_ref().ok().copied()).collect();
    times.sort();
    println!(
        "{} tries, {} accidents; meant and allowed {} of {}, in {:?} to {:?}",
        tries.len(),
        accidents.len(),
        times.len(),
        twins().count(),
        times.first(),
        times.last()
    );
    assert_eq!(accidents, [""; 0], "accidental approvals");
    assert_eq!(refused, [], "deliberate answers that were refused");
    // Allow is armed after 0.8 s. The median is compared, because a busy machine can delay single tries.
    assert!(times.get(times.len() / 2).is_some_and(|usual| *usual <= MEANT_WITHIN), "{times:?}");
    assert!(tries.len() >= if all { 500 } else { MANAGERS.len() * SCENES.len() });
}

fn race(manager: &'static str, number: usize, all: bool) -> Vec<Try> {
    let mut desk = Desk::start(manager);
    let spots = Spots::look(&desk);
    let paces: Vec<u64> = if all { PACES.to_vec() } else { vec![PACES[number % PACES.len()]] };
    let mut tries = Vec::new();
    for (round, pace) in paces.into_iter().enumerate() {
        for scene in SCENES {
            let one = scene.run(&mut desk, &spots, pace, round == 0);
            let outcome = match (&one.accident, &one.meant) {
                (true, _) => "AN ACCIDENT".to_owned(),
                (false, None) => "no".to_owned(),
                (false, Some(meant)) => format!("no; meant: {meant:?}"),
            };
            println!("{:70} {outcome}", one.name);
            tries.push(one);
        }
    }
    tries
}
