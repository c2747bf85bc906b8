//! An agent that abuses questions: it cancels one question to show another, floods the user with questions, and
//! varies ids and spellings so that an answer applies to the wrong call.

use crate::client::{Client, Outcome, TIMEOUT};
use crate::hostile;
use crate::late_answers::with_short_timeout;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach, WithdrawalReason};
use ironcurtain_protocol::{QuestionState, Reply, Request};
use serde_json::json;

const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { note: None, reach: DenialReach::Call };

fn world(settings: &serde_json::Value) -> World {
    World::with(|prepared| {
        hostile::install(prepared);
        std::fs::write(prepared.home.config.join("config.json"), settings.to_string()).unwrap();
    })
}

/// Sends a call with this id and with the arguments exactly as written.
fn begin_raw_call(client: &mut Client, id: u64, tool: &str, arguments: &str) {
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    client.send_raw(format!("{line}\n").as_bytes());
}

fn cancel(client: &mut Client, id: u64) {
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
}

fn wait_for_questions(world: &World, questions: usize) {
    eventually("the question is asked", TIMEOUT, || world.user.count() == questions);
}

#[test]
fn late_approval_applies_only_to_identical_bytes() {
    let world = with_short_timeout();
    let report = world.file("docs/r\u{e9}sum\u{e9}.txt", "one\ntwo\n");
    let path = report.to_str().unwrap();
    let mut client = world.connect("filesystem");
    let mut last = 1000;
    let mut call = |client: &mut Client, arguments: &str| -> Outcome {
        last += 1;
        begin_raw_call(client, last, "read_text_file", arguments);
        client.outcome(last)
    };
    let asked = format!(r#"{{"path":"{path}","head":1.0}}"#);
    world.user.will(Next::Ignore);
    call(&mut client, &asked).refused("did not answer within 1 s");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(world.ask_again());
    world.user.asked();
    for other in [format!(r#"{{"head":1.0,"path":"{path}"}}"#), format!(r#"{{"path":"{path}","head":1}}"#)] {
        world.user.will(Next::Close);
        call(&mut client, &other).refused("closed without an answer");
        assert_eq!(world.user.asked().len(), 1, "{other}");
    }
    let other_form = format!(r#"{{"path":"{}","head":1.0}}"#, path.replace('\u{e9}', "e\u{301}"));
    call(&mut client, &other_form).refused("the same text in another Unicode form");
    // A call with two possible meanings is rejected.
    for twice in ["head", "path", "p\\u0061th"] {
        let twice = format!(r#"{{"path":"{path}","head":1.0,"{twice}":1.0}}"#);
        call(&mut client, &twice).refused("comes twice");
    }
    let states: Vec<_> = world.questions().missed.iter().map(|one| one.state).collect();
    assert_eq!((world.user.count(), states), (0, vec![QuestionState::AllowedLate]));
    // The server receives decoded values, so a call that spells the same values differently is the same call.
    let escaped = path.replace("docs", "d\\u006fcs").replace('\u{e9}', "\\u00e9");
    call(&mut client, &format!(r#"{{"path":"{escaped}","head":10e-1}}"#));
    assert_eq!((world.user.count(), world.questions().missed), (0, vec![]));
    assert!(world.log().contains("a late approval of this question was used by an identical call"));
    call(&mut client, &asked).refused("the user denied this call");
}

#[test]
fn denial_of_equivalent_call_cancels_late_approval() {
    let world = with_short_timeout();
    let report = world.file("docs/report.txt", "the report");
    let other = world.file("docs/other.txt", "other");
    let mut client = world.connect("filesystem");
    for (denied, is_left) in [(json!("~/docs/report.txt"), false), (json!(other), true)] {
        world.user.will(Next::Ignore);
        client.read(&report).refused("did not answer within 1 s");
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert!(world.ask_again());
        client.call("read_text_file", json!({ "path": denied })).refused("the user denied this call");
        assert_eq!((world.user.asked().len(), world.questions().missed.len()), (3, usize::from(is_left)));
        let outcome = client.read(&report);
        assert_eq!((outcome.is_error, world.user.asked().len()), (!is_left, usize::from(!is_left)));
    }
}

#[test]
fn answer_to_cancelled_call_is_not_used_for_reused_id() {
    let world = hostile::world();
    let (harmless, secret) = (world.file("docs/a.txt", "a"), world.file("docs/secret.txt", "secret"));
    let mut client = world.connect("hostile");
    world.user.will(Next::Ignore);
    begin_raw_call(&mut client, 77, "open", &json!({ "path": harmless }).to_string());
    wait_for_questions(&world, 1);
    cancel(&mut client, 77);
    eventually("the question is withdrawn", TIMEOUT, || {
        world.user.withdrawn() == [WithdrawalReason::Cancelled]
    });
    world.user.will(Next::Ignore);
    begin_raw_call(&mut client, 77, "open", &json!({ "path": secret }).to_string());
    wait_for_questions(&world, 2);
    // The user's click was meant for the first question.
    world.user.answer_late(ONCE);
    assert_eq!(world.questions().waiting.len(), 1, "the second call keeps waiting");
    world.user.answer_late(NO);
    client.outcome(77).refused("the user denied this call");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    begin_raw_call(&mut client, 77, "open", &json!({ "path": secret }).to_string());
    assert_eq!(client.outcome(77).ok(), "secret");
}

#[test]
fn calls_queued_behind_a_cancelled_call_count_as_questions() {
    let world = world(&json!({ "questionsPerMinute": 3, "denialHoldsSeconds": 0 }));
    let file = world.file("docs/a.txt", "a");
    let mut client = world.connect("hostile");
    let waiting = |n: usize| {
        let joined = || world.log().matches("it waits for the answer to the same question").count() == n;
        eventually("the call waits for the other call's answer", TIMEOUT, joined);
    };
    world.user.will(Next::Ignore);
    let mut first = client.begin_call("open", json!({ "path": file }));
    wait_for_questions(&world, 1);
    for n in 1..=3 {
        world.user.will(Next::Ignore);
        let next = client.begin_call("open", json!({ "path": file }));
        waiting(n);
        cancel(&mut client, first);
        first = next;
        if n < 3 {
            wait_for_questions(&world, n + 1);
        }
    }
    client.outcome(first).refused("too many questions: the user was asked 3 times within a minute");
    assert_eq!((world.user.count(), world.status().questions), (3, 0));
}

#[test]
fn question_flood_is_bounded_and_one_pause_ends_it() {
    const MAX_COUNT: usize = 100;
    let world = world(&json!({ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 }));
    let files: Vec<_> = (0..MAX_COUNT + 20).map(|n| world.file(&format!("docs/{n}.txt"), "x")).collect();
    let other = world.file("other/report.txt", "report");
    let (mut flood, mut quiet) = (world.connect("hostile"), world.connect("hostile"));
    let sessions: Vec<String> = world.sessions().into_iter().map(|session| session.id).collect();
    (0..=files.len()).for_each(|_| world.user.will(Next::Ignore));
    let calls: Vec<u64> =
        files.iter().map(|file| flood.begin_call("open", json!({ "path": file }))).collect();
    wait_for_questions(&world, MAX_COUNT);
    for _ in MAX_COUNT..calls.len() {
        flood.next_outcome().1.refused("100 questions of this session are pending already");
    }
    let asked = quiet.begin_call("open", json!({ "path": other }));
    wait_for_questions(&world, MAX_COUNT + 1);
    let flooding = world.user.asked()[0].session.clone();
    assert!(sessions.contains(&flooding));
    assert_eq!(world.request(Request::Pause { session: flooding }), Reply::Done);
    for _ in 0..MAX_COUNT {
        flood.next_outcome().1.refused("the user paused this agent");
    }
    assert_eq!(world.questions().waiting.len(), 1);
    // The quiet agent's question is last in the queue.
    (0..MAX_COUNT).for_each(|_| world.user.answer_late(ONCE));
    assert_eq!(world.questions().waiting.len(), 1, "an approval of a closed question has no effect");
    world.user.answer_late(ONCE);
    assert_eq!(quiet.outcome(asked).ok(), "report");
}
