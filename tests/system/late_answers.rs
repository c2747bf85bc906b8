//! Checks which calls an approval allows after identical questions were merged or after the asking call has ended.

use crate::client::{Client, TIMEOUT};
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Question, Reach, WithdrawalReason};
use ironcurtain_protocol::{QuestionState, Reply, Request};
use serde_json::{Value, json};
use std::path::Path;

const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { note: None, reach: DenialReach::Call };

/// Waits until this many calls have joined another call's question.
fn wait_for_joined_calls(world: &World, times: usize) {
    let joined = || world.log().matches("it waits for the answer to the same question").count() == times;
    eventually("calls wait for another call's answer", TIMEOUT, joined);
}

/// Sends three identical calls, which share one question.
fn start_identical_calls(world: &World, client: &mut Client, path: &Path) -> Vec<u64> {
    world.user.will(Next::Ignore);
    let calls = (0..3).map(|_| client.begin_call("read_text_file", json!({ "path": path }))).collect();
    wait_for_joined_calls(world, 2);
    eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
    world.user.asked();
    assert_eq!((world.questions().waiting.len(), world.status().questions), (1, 1));
    calls
}

#[test]
fn denying_one_of_identical_calls_denies_all() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let calls = start_identical_calls(&world, &mut client, &report);
    world.user.answer_late(Answer::Deny { note: Some("read the summary".into()), reach: DenialReach::Call });
    for call in calls {
        client.outcome(call).refused("the user denied this call with this note: read the summary");
    }
    assert_eq!(world.user.asked(), []);
    let record = world.log();
    assert!(record.contains("the question ended: denied, with the note: read the summary"), "{record}");
    assert!(world.audit().intact);
}

#[test]
fn one_time_approval_serves_one_identical_call_and_asks_for_the_rest() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let calls = start_identical_calls(&world, &mut client, &report);
    world.user.will(Next::Ignore);
    world.user.answer_late(ONCE);
    eventually("the other calls are asked about", TIMEOUT, || world.user.count() == 1);
    wait_for_joined_calls(&world, 3);
    world.user.answer_late(NO);
    let outcomes: Vec<_> = calls.into_iter().map(|call| client.outcome(call)).collect();
    let (allowed, denied): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|outcome| !outcome.is_error);
    assert_eq!((allowed.len(), denied.len()), (1, 2), "{denied:?}");
    for outcome in &denied {
        outcome.refused("the user denied this call");
    }
    assert_eq!((world.user.asked().len(), allowed[0].ok()), (1, "the report"));
}

#[test]
fn lasting_approval_serves_identical_calls_and_rejudges_pending_ones() {
    let world = World::new();
    let (report, other) = (world.file("docs/report.txt", "the report"), world.file("docs/other.txt", "more"));
    let mut client = world.connect("filesystem");
    let calls = start_identical_calls(&world, &mut client, &report);
    world.user.will(Next::Ignore);
    let beside = client.begin_call("read_text_file", json!({ "path": other }));
    eventually("another call is asked about", TIMEOUT, || world.user.count() == 1);
    let folder = world.user.asked()[0].offers.iter().position(|offer| offer.reach == Reach::Folders).unwrap();
    world.user.answer_late(Answer::Allow { offer: folder, lifetime: Lifetime::Session });
    for call in calls {
        assert_eq!(client.outcome(call).ok(), "the report");
    }
    assert_eq!(client.outcome(beside).ok(), "more");
    assert_eq!((world.user.asked(), world.user.withdrawn()), (vec![], vec![WithdrawalReason::Settled]));
    assert_eq!(world.grants().len(), 1);
}

#[test]
fn approval_covers_questions_about_to_be_asked() {
    let world = World::new();
    let mut client = world.connect("filesystem");
    for n in 0..100 {
        let pair = ["a", "b"].map(|name| world.file(&format!("docs{n}/{name}.txt"), name));
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        world.user.will(Next::Ignore);
        let calls = pair.map(|path| client.begin_call("read_text_file", json!({ "path": path })));
        assert_eq!(calls.map(|call| client.outcome(call).ok().to_owned()), ["a", "b"]);
        world.user.forget();
    }
}

#[test]
fn calls_differing_in_any_way_are_separate_questions() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let (mut one, mut two) = (world.connect("filesystem"), world.connect("filesystem"));
    let ask = |client: &mut Client, tool: &str, arguments: Value, questions: usize| {
        world.user.will(Next::Ignore);
        client.begin_call(tool, arguments);
        eventually("the question is asked", TIMEOUT, || world.user.count() == questions);
    };
    ask(&mut one, "read_text_file", json!({ "path": report }), 1);
    ask(&mut one, "read_text_file", json!({ "path": report, "head": 1 }), 2);
    ask(&mut one, "read_text_file", json!({ "path": "~/docs/../docs/report.txt" }), 3);
    ask(&mut one, "get_file_info", json!({ "path": report }), 4);
    // A different session uses the same program and arguments.
    ask(&mut two, "read_text_file", json!({ "path": report }), 5);
}

/// Creates a test environment in which questions expire after one second.
pub fn with_short_timeout() -> World {
    World::with(|w| {
        let settings =
            json!({ "questionDeadlineSeconds": 1, "denialHoldsSeconds": 0, "questionsPerMinute": 1000 });
        std::fs::write(w.home.config.join("config.json"), settings.to_string()).unwrap();
    })
}

/// Makes a call whose question expires.
fn let_question_time_out(world: &World, client: &mut Client, path: &Path) {
    world.user.will(Next::Ignore);
    client.read(path).refused("did not answer within 1 s");
    assert_eq!(world.user.asked().len(), 1);
    let missed = world.questions().missed;
    assert_eq!(missed.iter().map(|one| one.state).collect::<Vec<_>>(), [QuestionState::Missed]);
    assert_eq!(missed[0].lines, [format!("read {}", path.display())]);
}

/// Makes a call, lets its question expire and then allows it. Returns the question.
fn approve_after_timeout(world: &World, client: &mut Client, path: &Path) -> Question {
    let_question_time_out(world, client, path);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(world.ask_again());
    world.user.asked().remove(0)
}

fn state(world: &World) -> Vec<QuestionState> {
    world.questions().missed.iter().map(|one| one.state).collect()
}

#[test]
fn late_approval_serves_one_identical_retry() {
    let world = with_short_timeout();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let shown = approve_after_timeout(&world, &mut client, &report);
    assert!(shown.also[0].starts_with("This question was not answered in time"), "{shown:?}");
    assert_eq!((shown.offers.len(), shown.offers[0].lifetimes.as_slice()), (1, &[Lifetime::Once][..]));
    assert_eq!(state(&world), [QuestionState::AllowedLate]);
    // A call that differs in any way raises another question.
    let asks = |client: &mut Client, arguments: Value| {
        world.user.will(Next::Close);
        client.call("read_text_file", arguments).refused("closed without an answer");
        assert_eq!(world.user.asked().len(), 1);
        assert_eq!(state(&world), [QuestionState::AllowedLate]);
    };
    asks(&mut client, json!({ "path": report, "head": 1 }));
    asks(&mut client, json!({ "path": "~/docs/report.txt" }));
    asks(&mut world.connect("filesystem"), json!({ "path": report }));
    assert_eq!(client.read(&report).ok(), "the report");
    assert_eq!((world.user.asked(), world.questions().missed), (vec![], vec![]));
    // The approval has already been used.
    client.read(&report).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
    let record = world.log();
    assert!(record.contains("a late approval of this question was used by an identical call"), "{record}");
    assert!(world.audit().intact);
}

#[test]
fn late_approval_is_bound_to_path_state_and_session() {
    let world = with_short_timeout();
    let (report, secret) =
        (world.file("docs/report.txt", "the report"), world.file("docs/other.txt", "other"));
    let changes: [&dyn Fn(); 3] = [
        &|| std::fs::write(&report, "the_report").unwrap(),
        &|| {
            std::fs::remove_file(&report).unwrap();
            std::fs::write(&report, "the report").unwrap();
        },
        &|| {
            std::fs::remove_file(&report).unwrap();
            std::os::unix::fs::symlink(&secret, &report).unwrap();
        },
    ];
    let mut client = world.connect("filesystem");
    for change in changes {
        approve_after_timeout(&world, &mut client, &report);
        change();
        world.user.will(Next::Close);
        client.read(&report).refused("closed without an answer");
        assert_eq!(world.user.asked().len(), 1, "it is asked as a new question");
        let id = world.questions().missed[0].id.clone();
        assert_eq!(world.request(Request::Forget { question: id }), Reply::Done);
    }
    std::fs::remove_file(&report).unwrap();
    std::fs::write(&report, "the report").unwrap();
    approve_after_timeout(&world, &mut client, &report);
    client.hang_up();
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty());
    assert_eq!(world.questions().missed, []);
    world.connect("filesystem").read(&report).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn missed_question_is_asked_again_on_retry_and_late_denial_allows_nothing() {
    let world = with_short_timeout();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let_question_time_out(&world, &mut client, &report);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&report).ok(), "the report");
    assert_eq!((world.user.asked().len(), world.questions().missed), (1, vec![]));
    for (answer, left) in [(Next::Deny, 0), (Next::Close, 1), (Next::Ignore, 1)] {
        let_question_time_out(&world, &mut client, &report);
        world.user.will(answer);
        assert!(!world.ask_again());
        world.user.asked();
        assert_eq!(state(&world), vec![QuestionState::Missed; left]);
        client.read(&report).refused("the user denied this call");
        assert_eq!((world.user.asked().len(), world.questions().missed), (1, vec![]));
    }
}

#[test]
fn late_approval_serves_one_of_two_concurrent_retries_and_no_task() {
    let world = with_short_timeout();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    approve_after_timeout(&world, &mut client, &report);
    // Calls also differ if other fields of the request differ.
    let arguments = json!({ "path": report });
    let task = json!({ "name": "read_text_file", "arguments": arguments, "task": { "ttl": 60_000 } });
    world.user.will(Next::Close);
    let refused = client.request("tools/call", task);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("closed without an answer"), "{refused}");
    assert_eq!((world.user.asked().len(), state(&world)), (1, vec![QuestionState::AllowedLate]));
    let calls = [(); 4].map(|()| client.begin_call("read_text_file", arguments.clone()));
    let outcomes = calls.map(|call| client.outcome(call));
    let (allowed, denied): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| !outcome.is_error);
    assert_eq!((allowed.len(), denied.len(), allowed[0].ok()), (1, 3, "the report"));
    for outcome in denied {
        outcome.refused("the user denied this call");
    }
}

#[test]
fn pause_or_session_denial_cancels_late_approval() {
    let world = with_short_timeout();
    let (report, other) = (world.file("docs/report.txt", "the report"), world.file("docs/other.txt", "more"));
    let mut client = world.connect("filesystem");
    approve_after_timeout(&world, &mut client, &report);
    let session = world.sessions()[0].id.clone();
    assert_eq!(world.request(Request::Pause { session: session.clone() }), Reply::Done);
    client.read(&report).refused("the user paused this agent");
    assert_eq!(world.request(Request::Resume { session }), Reply::Done);
    client.read(&report).refused("the user denied this call");
    assert_eq!((world.user.asked().len(), state(&world)), (1, vec![]));
    approve_after_timeout(&world, &mut client, &report);
    world.user.will(Next::DenyMore(DenialReach::Session, None));
    client.read(&other).refused("the user denied this call");
    client.read(&report).refused("the user denied this for the rest of the session");
    assert_eq!(world.user.asked().len(), 1);
    // Permitted counterpart: without a pause or denial, the approval applies.
    let denied = world.questions().denied.remove(0).id;
    assert_eq!(world.request(Request::Forget { question: denied }), Reply::Done);
    assert_eq!(client.read(&report).ok(), "the report");
}
