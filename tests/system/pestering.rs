//! An agent that pesters: it takes questions back to have others shown, floods the person, and plays with ids and spellings to
//! have an answer serve something else.

use crate::client::{BOUND, Client, Outcome};
use crate::consent::Next;
use crate::hostile;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach, Withdrawn};
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

/// A world of files, whose questions wait for a second.
fn hasty() -> World {
    let settings =
        json!({ "questionDeadlineSeconds": 1, "denialHoldsSeconds": 0, "questionsPerMinute": 1000 });
    World::with(|w| std::fs::write(w.home.config.join("config.json"), settings.to_string()).unwrap())
}

/// Sends a call of this id, with arguments as they are written here.
fn begin_written(client: &mut Client, id: u64, tool: &str, arguments: &str) {
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    client.send_raw(format!("{line}\n").as_bytes());
}

fn take_back(client: &mut Client, id: u64) {
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
}

fn are_asked(world: &World, questions: usize) {
    eventually("it is asked about", BOUND, || world.person.count() == questions);
}

#[test]
fn a_late_yes_is_for_the_bytes_that_are_sent_and_for_no_others() {
    let world = hasty();
    let report = world.file("docs/r\u{e9}sum\u{e9}.txt", "one\ntwo\n");
    let path = report.to_str().unwrap();
    let mut client = world.connect("filesystem");
    let mut last = 1000;
    let mut call = |client: &mut Client, arguments: &str| -> Outcome {
        last += 1;
        begin_written(client, last, "read_text_file", arguments);
        client.outcome(last)
    };
    let asked = format!(r#"{{"path":"{path}","head":1.0}}"#);
    world.person.will(Next::Ignore);
    call(&mut client, &asked).refused("did not answer within 1 s");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(world.ask_again());
    world.person.asked();
    for other in [format!(r#"{{"head":1.0,"path":"{path}"}}"#), format!(r#"{{"path":"{path}","head":1}}"#)] {
        world.person.will(Next::Close);
        call(&mut client, &other).refused("closed without an answer");
        assert_eq!(world.person.asked().len(), 1, "{other}");
    }
    let other_form = format!(r#"{{"path":"{}","head":1.0}}"#, path.replace('\u{e9}', "e\u{301}"));
    call(&mut client, &other_form).refused("the same text in another Unicode form");
    // What could be read as two calls is none.
    for twice in ["head", "path", "p\\u0061th"] {
        let twice = format!(r#"{{"path":"{path}","head":1.0,"{twice}":1.0}}"#);
        call(&mut client, &twice).refused("comes twice");
    }
    let states: Vec<_> = world.questions().missed.iter().map(|one| one.state).collect();
    assert_eq!((world.person.count(), states), (0, vec![QuestionState::AllowedLate]));
    // The server is sent the values, so that another spelling of them is the same call.
    let escaped = path.replace("docs", "d\\u006fcs").replace('\u{e9}', "\\u00e9");
    call(&mut client, &format!(r#"{{"path":"{escaped}","head":10e-1}}"#));
    assert_eq!((world.person.count(), world.questions().missed), (0, vec![]));
    assert!(world.log().contains("a late approval of this question was used by an identical call"));
    call(&mut client, &asked).refused("the user denied this call");
}

#[test]
fn a_late_yes_is_none_once_the_person_has_said_no_to_the_same_call_in_other_words() {
    let world = hasty();
    let report = world.file("docs/report.txt", "the report");
    let other = world.file("docs/other.txt", "other");
    let mut client = world.connect("filesystem");
    for (denied, is_left) in [(json!("~/docs/report.txt"), false), (json!(other), true)] {
        world.person.will(Next::Ignore);
        client.read(&report).refused("did not answer within 1 s");
        world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert!(world.ask_again());
        client.call("read_text_file", json!({ "path": denied })).refused("the user denied this call");
        assert_eq!((world.person.asked().len(), world.questions().missed.len()), (3, usize::from(is_left)));
        let outcome = client.read(&report);
        assert_eq!((outcome.is_error, world.person.asked().len()), (!is_left, usize::from(!is_left)));
    }
}

#[test]
fn an_answer_to_a_call_that_was_taken_back_serves_no_later_call_of_its_id() {
    let world = hostile::world();
    let (harmless, secret) = (world.file("docs/a.txt", "a"), world.file("docs/secret.txt", "secret"));
    let mut client = world.connect("hostile");
    world.person.will(Next::Ignore);
    begin_written(&mut client, 77, "open", &json!({ "path": harmless }).to_string());
    are_asked(&world, 1);
    take_back(&mut client, 77);
    eventually("it is taken away", BOUND, || world.person.withdrawn() == [Withdrawn::Cancelled]);
    world.person.will(Next::Ignore);
    begin_written(&mut client, 77, "open", &json!({ "path": secret }).to_string());
    are_asked(&world, 2);
    // The press was meant for the first.
    world.person.answers_late(ONCE);
    assert_eq!(world.questions().waiting.len(), 1, "the second waits on");
    world.person.answers_late(NO);
    client.outcome(77).refused("the user denied this call");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    begin_written(&mut client, 77, "open", &json!({ "path": secret }).to_string());
    assert_eq!(client.outcome(77).ok(), "secret");
}

#[test]
fn calls_that_wait_for_one_that_is_taken_back_are_questions_that_count() {
    let world = world(&json!({ "questionsPerMinute": 3, "denialHoldsSeconds": 0 }));
    let file = world.file("docs/a.txt", "a");
    let mut client = world.connect("hostile");
    let waiting = |n: usize| {
        let joined = || world.log().matches("it waits for the answer to the same question").count() == n;
        eventually("it waits for the other", BOUND, joined);
    };
    world.person.will(Next::Ignore);
    let mut first = client.begin_call("open", json!({ "path": file }));
    are_asked(&world, 1);
    for n in 1..=3 {
        world.person.will(Next::Ignore);
        let next = client.begin_call("open", json!({ "path": file }));
        waiting(n);
        take_back(&mut client, first);
        first = next;
        if n < 3 {
            are_asked(&world, n + 1);
        }
    }
    client.outcome(first).refused("was asked 3 times within a minute: too many questions");
    assert_eq!((world.person.count(), world.status().questions), (3, 0));
}

#[test]
fn a_flood_of_questions_is_bounded_hides_no_other_agent_s_and_ends_with_one_pause() {
    const MOST: usize = 100;
    let world = world(&json!({ "questionsPerMinute": 1000, "denialHoldsSeconds": 0 }));
    let files: Vec<_> = (0..MOST + 20).map(|n| world.file(&format!("docs/{n}.txt"), "x")).collect();
    let other = world.file("other/report.txt", "report");
    let (mut flood, mut quiet) = (world.connect("hostile"), world.connect("hostile"));
    let sessions: Vec<String> = world.sessions().into_iter().map(|session| session.id).collect();
    (0..=files.len()).for_each(|_| world.person.will(Next::Ignore));
    let calls: Vec<u64> =
        files.iter().map(|file| flood.begin_call("open", json!({ "path": file }))).collect();
    are_asked(&world, MOST);
    for _ in MOST..calls.len() {
        flood.next_outcome().1.refused("100 questions of this session are pending already");
    }
    let asked = quiet.begin_call("open", json!({ "path": other }));
    are_asked(&world, MOST + 1);
    let flooding = world.person.asked()[0].session.clone();
    assert!(sessions.contains(&flooding));
    assert_eq!(world.request(Request::Pause { session: flooding }), Reply::Done);
    for _ in 0..MOST {
        flood.next_outcome().1.refused("the user paused this agent");
    }
    assert_eq!(world.questions().waiting.len(), 1);
    // Of all slots that of the quiet one is the last.
    (0..MOST).for_each(|_| world.person.answers_late(ONCE));
    assert_eq!(world.questions().waiting.len(), 1, "a yes to what is over is none");
    world.person.answers_late(ONCE);
    assert_eq!(quiet.outcome(asked).ok(), "report");
}
