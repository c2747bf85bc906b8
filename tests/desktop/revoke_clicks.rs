//! Tests revoking grants in the app while an agent makes twenty calls per second. A click applies to the row on which
//! it started.

use crate::app::{App, agent, begin_reading, beside, listens};
use crate::harness::DIALOG;
use crate::screen::{Screen, until};
use crate::webdriver::Page;
use crate::{tray, window};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Answer, AnswerSlot, Consent, Lifetime, Question, WithdrawalReason};
use ironcurtain_daemon::{DaemonOptions, start};
use ironcurtain_grants::StandingGrant;
use ironcurtain_protocol::Request;
use ironcurtain_testkit::client::AgentClient;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of rows whose button is clicked.
const ROWS: usize = 5;

/// Interval between two calls.
const PACE: Duration = Duration::from_millis(50);

/// Number of calls between a press and its release. The page redraws the rows every 0.7 s during this time.
const MEANWHILE: usize = 16;

#[test]
fn clicks_hit_their_row_at_twenty_calls_per_second_and_undo_asks_again() {
    let screen = tray::with_panel();
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    let (rows, busy) = (files(&screen, "a", ROWS), files(&screen, "z", 1));
    grant_always(&screen, &home, rows.iter().chain(&busy));

    let _app = App::start(&screen, &[]);
    listens(&screen);
    let calls = Calls::begin(&screen, busy);
    window::open(&screen, "Permissions");
    for (n, row) in rows.iter().enumerate() {
        let button = screen.control(WINDOW, "push button", &format!("Revoke {}", row.display()));
        let before = (granted(&home), calls.done());
        screen.press_while(&button, || {
            until("further calls", || (calls.done() > before.1 + MEANWHILE).then_some(()))
        });
        until("the grant to be revoked", || (granted(&home).len() < before.0.len()).then_some(()));
        let gone: Vec<_> = before.0.difference(&granted(&home)).cloned().collect();
        assert_eq!(gone, std::slice::from_ref(row), "press {n}");
        window::says(&screen, &format!("~/notes/a{n}.txt Revoked, verified "));
    }
    screen.picture("taken-back");

    let first = &rows[0];
    let undo = screen.control(WINDOW, "push button", &format!("Undo: grant {} again", first.display()));
    screen.hold(&undo, "0.1");
    window::says(&screen, &format!("{} again", first.display()));
    assert!(!granted(&home).contains(first), "the confirmation is shown");
    screen.press(WINDOW, "push button", "Grant it again");
    until("the grant to be restored", || granted(&home).contains(first).then_some(()));
    drop(calls);
}

#[test]
fn revoke_buttons_hit_their_own_row_while_rows_move_and_undo_asks_again() {
    let mut screen = Screen::start();
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    let (rows, twins) = (files(&screen, "a", 8), files(&screen, "z", 3));
    grant_always(&screen, &home, rows.iter().chain(&twins));

    let (_app, page) = Page::open(&mut screen);
    let calls = Calls::begin(&screen, twins.clone());
    let mut other = agent(&screen);
    page.click("//a[@href='#permissions']");
    page.click("//button[@aria-label='Order']");
    page.click("//label[span='Sort']//option[@value='used']");
    let mut seen = order(&page);
    for (n, row) in rows.iter().enumerate() {
        until("rows to be reordered", || (order(&page) != seen).then_some(()));
        seen = order(&page);
        let (before, done, earlier) = (granted(&home), calls.done(), page.run(CLOCK));
        let button = format!("//button[@aria-label='Revoke {}']", row.display());
        if n % 2 == 0 {
            page.click(&button);
        } else {
            page.hold(&button, || {
                // The most recently used row moves to the top only after the button is released.
                other.read(row).ok();
                until("calls", || (calls.done() > done + 20).then_some(()));
            });
        }
        until("the grant to be revoked", || (granted(&home).len() < before.len()).then_some(()));
        let gone: Vec<_> = before.difference(&granted(&home)).cloned().collect();
        assert_eq!(gone, std::slice::from_ref(row), "press {n}");
        page.says(&of(row), "Revoked, verified ");
        let now = page.run(CLOCK);
        let proved = [earlier, now].map(|at| format!("Revoked, verified {}", at.as_str().expect("a time")));
        assert!(proved.iter().any(|proved| page.text(&of(row)).contains(proved)), "{proved:?}");
    }

    let first = &rows[0];
    let call = begin_reading(&mut other, first);
    let list = ["questions", "--json"];
    until("the question", || {
        let listed = screen.read(beside("ironcurtain").to_str().expect("a UTF-8 path"), &list);
        let listed: Value = serde_json::from_str(&listed).ok()?;
        listed["questions"]["waiting"][0]["lines"].to_string().contains("a0.txt").then_some(())
    });
    assert!(!granted(&home).contains(first), "the confirmation is shown");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    other.outcome(call).refused("DENIED: the user denied this call.");
    assert_eq!(other.read(&twins[0]).ok(), "z0.txt", "the neighbouring grant is unchanged");

    let undo = format!("//button[@aria-label='Undo: grant {} again']", first.display());
    for answer in ["Cancel", "Grant it again"] {
        page.click(&undo);
        page.says(&of(first), &format!("{} again, until you revoke it.", first.display()));
        assert!(!granted(&home).contains(first), "the confirmation is shown");
        page.click(&format!("//button[normalize-space()='{answer}']"));
    }
    until("the grant to be restored", || granted(&home).contains(first).then_some(()));
    assert_eq!(other.read(first).ok(), "a0.txt");
    drop(calls);
}

/// JavaScript expression for the current time in the page's format.
const CLOCK: &str =
    "return new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }).format(Date.now())";

/// Returns the XPath of a file's row.
fn of(file: &Path) -> String {
    format!("//*[@role='listitem'][.//*[@title='{}']]", file.display())
}

/// Returns the files in the list, from top to bottom.
fn order(page: &Page) -> Value {
    page.run("return [...document.querySelectorAll('#page-permissions .path')].map((path) => path.title)")
}

const WINDOW: &str = "^IronCurtain$";

/// Creates `number` files whose names and contents start with a letter.
fn files(screen: &Screen, letter: &str, number: usize) -> Vec<PathBuf> {
    let folder = screen.home().join("notes");
    std::fs::create_dir_all(&folder).expect("the folder");
    let names = (0..number).map(|n| format!("{letter}{n}.txt"));
    names
        .map(|name| {
            let path = folder.join(&name);
            std::fs::write(&path, name).expect("the file");
            path
        })
        .collect()
}

/// Returns the files that have a grant in the database.
pub(crate) fn granted(home: &Home) -> BTreeSet<PathBuf> {
    let grants = StandingGrant::on_disk(&home.database()).expect("the grants");
    grants.iter().map(|grant| PathBuf::from(grant.what.to_string())).collect()
}

/// An agent that reads files repeatedly, until it is dropped.
struct Calls {
    over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Calls {
    fn begin(screen: &Screen, files: Vec<PathBuf>) -> Self {
        let mut agent = agent(screen);
        let (over, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stop, count) = (over.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            let mut next = Instant::now();
            for file in files.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                assert_eq!(Some(agent.read(file).ok()), file.file_name().and_then(OsStr::to_str));
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

/// Consent front end that allows every call with the longest lifetime.
struct Generous;

impl Consent for Generous {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        let always = question.offers.iter().position(|offer| offer.lifetimes.contains(&Lifetime::Always));
        let offer = always.expect("a permanent offer");
        slot.answer(Answer::Allow { offer, lifetime: Lifetime::Always });
    }

    fn withdraw(&self, _question: &str, _why: WithdrawalReason) {}

    fn notify(&self, _notice: &str) {}
}

/// Grants these files permanently before the app starts.
fn grant_always<'a>(screen: &Screen, home: &Home, files: impl Iterator<Item = &'a PathBuf>) {
    home.prepare().expect("the folders");
    let settings = r#"{ "questionsPerMinute": 100 }"#;
    std::fs::write(home.config.join("config.json"), settings).expect("the settings");
    owner(screen, home, |agent| {
        let mut agent = agent();
        for file in files {
            agent.read(file).ok();
        }
    });
}

/// Runs agents before the app starts. All of their calls are allowed with the longest lifetime.
pub(crate) fn owner(screen: &Screen, home: &Home, act: impl FnOnce(&dyn Fn() -> AgentClient)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let programs = beside("ironcurtain-shim").parent().expect("a folder").to_path_buf();
    let allow_root = screen.read("id", &["-u"]) == "0";
    let options = DaemonOptions { home: home.clone(), programs, allow_root };
    let daemon = runtime.block_on(start(options, Arc::new(Generous))).expect("the trusted process");
    act(&|| agent(screen));
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
}
