//! Status lines of a run on its terminal, and its questions: answered there, denied without asking, or raised with
//! `ironcurtain allow`.

use super::{Desk, run};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::terminal::Terminal;
use crate::test_home::TestHome;
use crate::world::{eventually, is_root, programs};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

#[test]
fn the_run_reports_its_access_and_its_use() {
    let mut desk = Desk::new();
    desk.world.user.will(Next::Ignore);
    desk.world.file("other.txt", "other");
    let run = desk.run(&[], &["sh", "-c", "cat ~/notes.txt; cat ~/other.txt; cat ~/other.txt"]);
    let start = desk.terminal.shows("ironcurtain: waiting for your answer about ~/notes.txt\r\n");
    let expected =
        "ironcurtain: sh may use ~/project; other files and hosts need your answer (profile plain)\r\n";
    assert!(start.starts_with(expected), "{start:?}");
    desk.answer(|question| Answer::Allow {
        offer: question.offers.iter().position(|offer| offer.reach == Reach::Paths).unwrap(),
        lifetime: Lifetime::Session,
    });
    // The lines and the program's output take different paths to the terminal, so either can come first.
    let (denied, end) = (
        "ironcurtain: denied ~/other.txt\r\n",
        "ironcurtain: read 1 other file, wrote 0, 1 denied · ironcurtain session ",
    );
    let rest = desk.terminal.shows_all(&["my notes\r\n", denied, end]);
    assert_eq!(rest.matches(denied).count(), 1, "{rest:?}");
    assert_eq!(run.wait(), 1);
    let log = desk.world.log();
    assert!(
        log.contains("the question ended: approved") && !log.contains("answered on the terminal"),
        "{log}"
    );
    // With `--quiet` or redirected standard error, no line appears unless `--verbose` is given.
    let lines = |options: &[&str]| {
        let mut command = super::run(&desk.world.ours(), &desk.world.path("project"), options, &["true"]);
        String::from_utf8(command.stdin(Stdio::null()).output().unwrap().stderr).unwrap()
    };
    assert_eq!(lines(&[]), "");
    assert_eq!(lines(&["--verbose"]).lines().count(), 2);
    let before = desk.terminal.all().len();
    let run = desk.run(&["--quiet"], &["true"]);
    assert_eq!(run.wait(), 0);
    assert_eq!(desk.terminal.all().len(), before);
}

#[test]
fn status_lines_wait_while_a_program_uses_the_full_screen() {
    let mut desk = Desk::new();
    desk.world.user.will(Next::Ignore);
    let script = "printf '\\033[?1049h\\033[Hfull screen'; read a; cat ~/notes.txt & read b; \
        printf '\\033[?1049lleft\\n'; wait; read c";
    let run = desk.run(&[], &["sh", "-c", script]);
    desk.terminal.shows("full screen");
    desk.terminal.types("\n");
    eventually("the question is open", TIMEOUT, || desk.world.user.count() == 1);
    desk.terminal.types("\n");
    let full = desk.terminal.shows("\x1b[?1049l");
    assert!(!full.contains("ironcurtain:"), "{full:?}");
    desk.terminal.shows_all(&["left\r\n", "ironcurtain: waiting for your answer about ~/notes.txt\r\n"]);
    desk.answer(|_| Answer::Deny { note: None, reach: DenialReach::Call });
    desk.terminal.shows("ironcurtain: denied ~/notes.txt\r\n");
    desk.terminal.types("\n");
    assert_eq!(run.wait(), 0);
}

#[test]
fn questions_are_answered_on_the_runs_own_terminal() {
    let mut desk = Desk::new();
    desk.world.file("other.txt", "other\n");
    let before = desk.terminal.modes();
    let script =
        "cat ~/notes.txt; cat ~/notes.txt; cat ~/other.txt; while read a; do echo \"typed <$a>\"; done";
    // Input typed before the question does not count as an answer.
    desk.terminal.types("2\n2\n");
    let run = desk.run(&["--ask", "terminal"], &["sh", "-c", script]);
    let begun = desk.terminal.shows("\x1b[?1049h");
    desk.terminal.types("2\n");
    let question = begun + "\x1b[?1049h" + &desk.terminal.shows("Your answer: ");
    assert!(question.contains("notes.txt") && question.contains("\x1b[?1049h"), "{question}");
    // The answers apply only to this run, so no longer lifetime is offered.
    assert!(
        question.contains("session") && !question.contains("15 minutes") && !question.contains("always"),
        "{question}"
    );
    assert_eq!(desk.world.status().questions, 1);
    desk.terminal.types("2\n");
    let after = desk.terminal.shows("my notes\r\nmy notes\r\n");
    assert!(after.contains("Allowed.") && after.contains("\x1b[?1049l"), "{after:?}");
    // Ctrl-C denies the question and does not reach the program.
    desk.terminal.shows("Your answer: ");
    desk.terminal.types("\x03");
    desk.terminal.shows("Permission denied");
    desk.terminal.types("for the program\n\x04");
    desk.terminal.shows("typed <for the program>\r\n");
    assert_eq!(run.wait(), 0);
    desk.terminal.has_modes(&before);
    // The record says where both questions were answered.
    let log = desk.world.log();
    for end in ["approved", "denied"] {
        let answer = format!("the question ended: {end}, answered on the terminal of the run");
        assert_eq!(log.matches(&answer).count(), 1, "{answer}: {log}");
    }
    // The daemon's own user interface showed no question, and the grant ended with the run.
    assert_eq!(desk.world.user.asked().len(), 0);
    eventually("the grant is gone", TIMEOUT, || desk.world.grants().is_empty());
}

#[test]
fn deny_denies_without_asking() {
    let mut desk = Desk::new();
    let run = desk.run(&["--deny"], &["sh", "-c", "cat own ~/notes.txt"]);
    desk.terminal.shows_all(&["own\r\n", "ironcurtain: denied ~/notes.txt"]);
    assert_eq!(run.wait(), 1);
    assert_eq!(desk.world.user.asked().len(), 0);
}

#[test]
fn one_line_reports_that_no_user_can_be_asked() {
    let place = TestHome::new(|_| {});
    place.file("project/own", "own");
    place.file("notes.txt", "notes");
    let mut daemon = Command::new(programs().join("ironcurtain"));
    daemon.args(["daemon", "--ask", "deny"]).args(is_root().then_some("--allow-root"));
    daemon.env("IRONCURTAIN_HOME", place.ours()).env("HOME", &place.home.user_home);
    let mut daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the daemon listens", TIMEOUT, || UnixStream::connect(&place.home.socket).is_ok());
    let mut terminal = Terminal::new(24, 80);
    let folder = place.home.user_home.join("project");
    let program = ["sh", "-c", "cat ~/notes.txt; cat ~/notes.txt; cat own"];
    let run = terminal.start(&run(&place.ours(), &folder, &[], &program));
    let before = terminal.shows("ironcurtain: read 0 other files, wrote 0, 1 denied");
    let lines: Vec<&str> = before.lines().filter(|line| line.starts_with("ironcurtain: ")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[1].starts_with("ironcurtain: denied ~/notes.txt: IronCurtain runs without a display"),
        "{lines:?}"
    );
    assert!(before.contains("\nown"), "{before}");
    assert_eq!(run.wait(), 0);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn allow_raises_a_question_and_does_not_answer_it() {
    let mut desk = Desk::new();
    let run = desk.run(&[], &["sh", "-c", "echo ready; while read a; do cat ~/notes.txt; done"]);
    desk.terminal.shows("\nready\r\n");
    eventually("the run is listed", TIMEOUT, || desk.world.sessions().len() == 1);
    let session = desk.world.sessions()[0].id.clone();
    let allow = |path: &str, more: &[&str]| {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.arg("allow").arg(path).args(["--session", &session]).args(more);
        command.current_dir(&desk.world.home.user_home).env("IRONCURTAIN_HOME", desk.world.ours());
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    desk.world.user.will(Next::Ignore);
    let (raised, said) = allow("notes.txt", &[]);
    assert!(raised && said.contains("You are asked about"), "{said}");
    // Nothing is allowed before the user answers.
    assert!(desk.world.grants().is_empty());
    eventually("the user sees the question", TIMEOUT, || desk.world.user.count() == 1);
    let question = desk.world.user.asked().remove(0);
    assert!(question.offers.iter().all(|offer| !offer.lifetimes.contains(&Lifetime::Once)));
    let offer = question.offers.iter().position(|offer| offer.reach == Reach::Paths).unwrap();
    desk.world.user.answer_late(Answer::Allow { offer, lifetime: Lifetime::Session });
    eventually("the grant exists", TIMEOUT, || desk.world.grants().len() == 1);
    desk.terminal.types("\n");
    desk.terminal.shows("my notes\r\n");
    assert_eq!(desk.world.user.asked().len(), 0);
    let (raised, said) = allow("notes.txt", &[]);
    assert!(!raised && said.contains("already"), "{said}");
    // The command reports a denial, and a protected path raises no question.
    let (_, said) = allow("notes.txt", &["--write"]);
    assert!(said.contains("the user denied it") || said.contains("You are asked"), "{said}");
    let (raised, said) = allow(".ssh/id_ed25519", &[]);
    assert!(!raised && said.contains("denied"), "{said}");
    let (raised, said) = {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["allow", "notes.txt", "--session", "none"]).env("IRONCURTAIN_HOME", desk.world.ours());
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(!raised && said.contains("no active run `none`"), "{said}");
    desk.terminal.types("\x04");
    assert_eq!(run.wait(), 0);
}
