//! Taking back in the real app, while an agent calls twenty times a second: every press lands on the row on which it began.

use crate::app::{App, agent, beside};
use crate::screen::{Screen, until};
use crate::{tray, window};
use ironcurtain_daemon::consent::{Answer, Consent, Lifetime, Question, Slot, Withdrawn};
use ironcurtain_daemon::{DaemonOptions, Home, StandingGrant, start};
use ironcurtain_protocol::Request;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The rows whose buttons are pressed.
const ROWS: usize = 5;

/// A call every so often: twenty a second.
const PACE: Duration = Duration::from_millis(50);

/// The time between a press and its release: rows are drawn anew meanwhile.
const HELD: &str = "0.9";

#[test]
fn every_press_lands_on_its_row_under_twenty_calls_a_second_and_undo_asks_again() {
    let screen = tray::with_panel();
    let folder = screen.home().join("notes");
    std::fs::create_dir_all(&folder).expect("the folder");
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::write(&path, name).expect("the file");
        path
    };
    let rows: Vec<PathBuf> = (0..ROWS).map(|n| file(&format!("a{n}.txt"))).collect();
    let busy = file("z-busy.txt");
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    grant_always(&screen, &home, rows.iter().chain([&busy]));

    let _app = App::start(&screen, &[]);
    until("the app", || home.socket.exists().then_some(()));
    let calls = Calls::begin(&screen, &busy);
    window::open(&screen, "What you granted");
    for (n, row) in rows.iter().enumerate() {
        let button = screen.control(WINDOW, "push button", &format!("Take back {}", row.display()));
        let before = (granted(&home), calls.done());
        screen.hold(&button, HELD);
        until("the grant to go", || (granted(&home).len() < before.0.len()).then_some(()));
        let gone: Vec<_> = before.0.difference(&granted(&home)).cloned().collect();
        assert_eq!(gone, std::slice::from_ref(row), "press {n}");
        assert!(calls.done() > before.1 + 8, "nobody was calling meanwhile");
        window::says(&screen, &format!("~/notes/a{n}.txt ✓ Taken back, proved "));
    }
    screen.picture("taken-back");

    let first = &rows[0];
    let undo = screen.control(WINDOW, "push button", &format!("Undo: grant {} again", first.display()));
    screen.hold(&undo, "0.1");
    window::says(&screen, &format!("{} again", first.display()));
    assert!(!granted(&home).contains(first), "it asks first");
    screen.press(WINDOW, "push button", "Grant it again");
    until("the grant to be back", || granted(&home).contains(first).then_some(()));
    drop(calls);
}

const WINDOW: &str = "^IronCurtain$";

/// The files that are granted, as the database has them.
fn granted(home: &Home) -> BTreeSet<PathBuf> {
    let grants = StandingGrant::on_disk(&home.database()).expect("the grants");
    grants.iter().map(|grant| PathBuf::from(grant.what.to_string())).collect()
}

/// An agent that reads a file again and again until it is dropped.
struct Calls {
    over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Calls {
    fn begin(screen: &Screen, file: &Path) -> Self {
        let mut agent = agent(screen);
        let (over, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stop, count, file) = (over.clone(), done.clone(), file.to_path_buf());
        let thread = std::thread::spawn(move || {
            let mut next = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                let call = agent.begin_call("read_text_file", json!({ "path": file }));
                assert_eq!(agent.answer(call)["result"]["content"][0]["text"], "z-busy.txt");
                count.fetch_add(1, Ordering::Relaxed);
                next = (next + PACE).max(Instant::now());
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
        Self { over, done, thread: Some(thread) }
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("a call of the agent failed");
        }
    }
}

/// Someone who allows everything for as long as it is offered.
struct Generous;

impl Consent for Generous {
    fn ask(&self, question: Question, slot: Slot) {
        let always = question.offers.iter().position(|offer| offer.lifetimes.contains(&Lifetime::Always));
        let offer = always.expect("an offer for good");
        slot.answer(Answer::Allow { offer, lifetime: Lifetime::Always });
    }

    fn withdraw(&self, _question: &str, _why: Withdrawn) {}

    fn tell(&self, _notice: &str) {}
}

/// Has the person grant these files for good, before the app starts.
fn grant_always<'a>(screen: &Screen, home: &Home, files: impl Iterator<Item = &'a PathBuf>) {
    home.prepare().expect("the folders");
    let settings = r#"{ "questionsPerMinute": 100 }"#;
    std::fs::write(home.config.join("config.json"), settings).expect("the settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let programs = beside("ironcurtain-shim").parent().expect("a folder").to_path_buf();
    let allow_root = screen.read("id", &["-u"]) == "0";
    let options = DaemonOptions { home: home.clone(), programs, allow_root };
    let daemon = runtime.block_on(start(options, Arc::new(Generous))).expect("the trusted process");
    let mut agent = agent(screen);
    for file in files {
        let call = agent.begin_call("read_text_file", json!({ "path": file }));
        let read = agent.answer(call);
        assert!(!read["result"]["isError"].as_bool().unwrap_or_default(), "{read}");
    }
    drop(agent);
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
}
