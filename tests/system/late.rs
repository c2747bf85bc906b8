//! Identical questions are one, and a question outlives its call: what a yes to either lets happen, and what it does not.

use crate::client::{BOUND, Client};
use crate::consent::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Question, Reach, Withdrawn};
use ironcurtain_protocol::{QuestionState, Reply, Request};
use serde_json::{Value, json};
use std::path::Path;

const ONCE: Answer = Answer::Allow { offer: 0, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { note: None, reach: DenialReach::Call };

/// Waits until calls have come to wait for the answer to another one so many times.
fn waited(world: &World, times: usize) {
    let joined = || world.log().matches("it waits for the answer to the same question").count() == times;
    eventually("calls wait for the answer to another one", BOUND, joined);
}

/// Three identical calls that wait for the answer to one question.
fn three(world: &World, client: &mut Client, path: &Path) -> Vec<u64> {
    world.person.will(Next::Ignore);
    let calls = (0..3).map(|_| client.begin_call("read_text_file", json!({ "path": path }))).collect();
    waited(world, 2);
    eventually("that is asked about", BOUND, || world.person.count() == 1);
    world.person.asked();
    assert_eq!((world.questions().waiting.len(), world.status().questions), (1, 1));
    calls
}

#[test]
fn a_no_to_one_of_identical_calls_is_a_no_to_all_of_them() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let calls = three(&world, &mut client, &report);
    world
        .person
        .answers_late(Answer::Deny { note: Some("read the summary".into()), reach: DenialReach::Call });
    for call in calls {
        client.outcome(call).refused("the user denied this call and says: read the summary");
    }
    assert_eq!(world.person.asked(), []);
    let record = world.log();
    assert!(record.contains("the question ended: denied, with the note: read the summary"), "{record}");
    assert!(world.audit().intact);
}

#[test]
fn a_yes_for_once_serves_one_of_identical_calls_and_the_others_are_asked_about_again() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let calls = three(&world, &mut client, &report);
    world.person.will(Next::Ignore);
    world.person.answers_late(ONCE);
    eventually("the others are asked about", BOUND, || world.person.count() == 1);
    waited(&world, 3);
    world.person.answers_late(NO);
    let outcomes: Vec<_> = calls.into_iter().map(|call| client.outcome(call)).collect();
    let (allowed, denied): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|outcome| !outcome.is_error);
    assert_eq!((allowed.len(), denied.len()), (1, 2), "{denied:?}");
    for outcome in &denied {
        outcome.refused("the user denied this call");
    }
    assert_eq!((world.person.asked().len(), allowed[0].ok()), (1, "the report"));
}

#[test]
fn a_yes_for_longer_serves_all_of_them_and_what_else_waits_is_judged_again() {
    let world = World::new();
    let (report, other) = (world.file("docs/report.txt", "the report"), world.file("docs/other.txt", "more"));
    let mut client = world.connect("filesystem");
    let calls = three(&world, &mut client, &report);
    world.person.will(Next::Ignore);
    let beside = client.begin_call("read_text_file", json!({ "path": other }));
    eventually("another one is asked about", BOUND, || world.person.count() == 1);
    let folder =
        world.person.asked()[0].offers.iter().position(|offer| offer.reach == Reach::Folders).unwrap();
    world.person.answers_late(Answer::Allow { offer: folder, lifetime: Lifetime::Session });
    for call in calls {
        assert_eq!(client.outcome(call).ok(), "the report");
    }
    assert_eq!(client.outcome(beside).ok(), "more");
    assert_eq!((world.person.asked(), world.person.withdrawn()), (vec![], vec![Withdrawn::Settled]));
    assert_eq!(world.grants().len(), 1);
}

#[test]
fn a_yes_settles_what_is_just_about_to_be_asked() {
    let world = World::new();
    let mut client = world.connect("filesystem");
    for n in 0..100 {
        let pair = ["a", "b"].map(|name| world.file(&format!("docs{n}/{name}.txt"), name));
        world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
        world.person.will(Next::Ignore);
        let calls = pair.map(|path| client.begin_call("read_text_file", json!({ "path": path })));
        assert_eq!(calls.map(|call| client.outcome(call).ok().to_owned()), ["a", "b"]);
        world.person.forget();
    }
}

#[test]
fn calls_that_differ_in_anything_are_questions_of_their_own() {
    let world = World::new();
    let report = world.file("docs/report.txt", "the report");
    let (mut one, mut two) = (world.connect("filesystem"), world.connect("filesystem"));
    let ask = |client: &mut Client, tool: &str, arguments: Value, questions: usize| {
        world.person.will(Next::Ignore);
        client.begin_call(tool, arguments);
        eventually("it is asked about", BOUND, || world.person.count() == questions);
    };
    ask(&mut one, "read_text_file", json!({ "path": report }), 1);
    ask(&mut one, "read_text_file", json!({ "path": report, "head": 1 }), 2);
    ask(&mut one, "read_text_file", json!({ "path": "~/docs/../docs/report.txt" }), 3);
    ask(&mut one, "get_file_info", json!({ "path": report }), 4);
    // The same program, and the same words, in another session.
    ask(&mut two, "read_text_file", json!({ "path": report }), 5);
}

/// A world whose questions wait for a second.
fn hasty() -> World {
    World::with(|w| {
        let settings =
            json!({ "questionDeadlineSeconds": 1, "denialHoldsSeconds": 0, "questionsPerMinute": 1000 });
        std::fs::write(w.home.config.join("config.json"), settings.to_string()).unwrap();
    })
}

/// Nobody answers a call in time.
fn missed(world: &World, client: &mut Client, path: &Path) {
    world.person.will(Next::Ignore);
    client.read(path).refused("did not answer within 1 s");
    assert_eq!(world.person.asked().len(), 1);
    let missed = world.questions().missed;
    assert_eq!(missed.iter().map(|one| one.state).collect::<Vec<_>>(), [QuestionState::Missed]);
    assert_eq!(missed[0].lines, [format!("read {}", path.display())]);
}

/// Nobody answers a call in time, and then the person allows it: the question that they are shown.
fn allowed_late(world: &World, client: &mut Client, path: &Path) -> Question {
    missed(world, client, path);
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(world.ask_again());
    world.person.asked().remove(0)
}

fn state(world: &World) -> Vec<QuestionState> {
    world.questions().missed.iter().map(|one| one.state).collect()
}

#[test]
fn a_late_yes_serves_the_identical_retry_once_and_nothing_else() {
    let world = hasty();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    let shown = allowed_late(&world, &mut client, &report);
    assert!(shown.also[0].starts_with("Nobody answered in time"), "{shown:?}");
    assert_eq!((shown.offers.len(), shown.offers[0].lifetimes.as_slice()), (1, &[Lifetime::Once][..]));
    assert_eq!(state(&world), [QuestionState::AllowedLate]);
    // Whatever differs is asked about.
    let asks = |client: &mut Client, arguments: Value| {
        world.person.will(Next::Close);
        client.call("read_text_file", arguments).refused("closed without an answer");
        assert_eq!(world.person.asked().len(), 1);
        assert_eq!(state(&world), [QuestionState::AllowedLate]);
    };
    asks(&mut client, json!({ "path": report, "head": 1 }));
    asks(&mut client, json!({ "path": "~/docs/report.txt" }));
    asks(&mut world.connect("filesystem"), json!({ "path": report }));
    assert_eq!(client.read(&report).ok(), "the report");
    assert_eq!((world.person.asked(), world.questions().missed), (vec![], vec![]));
    // It is used up.
    client.read(&report).refused("the user denied this call");
    assert_eq!(world.person.asked().len(), 1);
    let record = world.log();
    assert!(record.contains("a late approval of this question was used by an identical call"), "{record}");
    assert!(world.audit().intact);
}

#[test]
fn a_late_yes_is_for_what_stood_there_and_ends_with_its_session() {
    let world = hasty();
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
        allowed_late(&world, &mut client, &report);
        change();
        world.person.will(Next::Close);
        client.read(&report).refused("closed without an answer");
        assert_eq!(world.person.asked().len(), 1, "it is asked about as something new");
        let id = world.questions().missed[0].id.clone();
        assert_eq!(world.request(Request::Forget { question: id }), Reply::Done);
    }
    std::fs::remove_file(&report).unwrap();
    std::fs::write(&report, "the report").unwrap();
    allowed_late(&world, &mut client, &report);
    client.hang_up();
    eventually("its session ends", BOUND, || world.sessions().is_empty());
    assert_eq!(world.questions().missed, []);
    world.connect("filesystem").read(&report).refused("the user denied this call");
    assert_eq!(world.person.asked().len(), 1);
}

#[test]
fn a_missed_question_is_asked_again_with_its_retry_and_a_late_no_is_no_yes() {
    let world = hasty();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    missed(&world, &mut client, &report);
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&report).ok(), "the report");
    assert_eq!((world.person.asked().len(), world.questions().missed), (1, vec![]));
    for (answer, left) in [(Next::Deny, 0), (Next::Close, 1), (Next::Ignore, 1)] {
        missed(&world, &mut client, &report);
        world.person.will(answer);
        assert!(!world.ask_again());
        world.person.asked();
        assert_eq!(state(&world), vec![QuestionState::Missed; left]);
        client.read(&report).refused("the user denied this call");
        assert_eq!((world.person.asked().len(), world.questions().missed), (1, vec![]));
    }
}

#[test]
fn a_late_yes_serves_one_of_two_retries_at_once_and_not_the_same_call_as_a_task() {
    let world = hasty();
    let report = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    allowed_late(&world, &mut client, &report);
    // What it is asked to be beside its arguments makes it another call.
    let arguments = json!({ "path": report });
    let task = json!({ "name": "read_text_file", "arguments": arguments, "task": { "ttl": 60_000 } });
    world.person.will(Next::Close);
    let refused = client.request("tools/call", task);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("closed without an answer"), "{refused}");
    assert_eq!((world.person.asked().len(), state(&world)), (1, vec![QuestionState::AllowedLate]));
    let calls = [(); 4].map(|()| client.begin_call("read_text_file", arguments.clone()));
    let outcomes = calls.map(|call| client.outcome(call));
    let (allowed, denied): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| !outcome.is_error);
    assert_eq!((allowed.len(), denied.len(), allowed[0].ok()), (1, 3, "the report"));
    for outcome in denied {
        outcome.refused("the user denied this call");
    }
}

#[test]
fn a_late_yes_does_not_outlive_a_pause_or_a_no_for_the_session() {
    let world = hasty();
    let (report, other) = (world.file("docs/report.txt", "the report"), world.file("docs/other.txt", "more"));
    let mut client = world.connect("filesystem");
    allowed_late(&world, &mut client, &report);
    let session = world.sessions()[0].id.clone();
    assert_eq!(world.request(Request::Pause { session: session.clone() }), Reply::Done);
    client.read(&report).refused("the user paused this agent");
    assert_eq!(world.request(Request::Resume { session }), Reply::Done);
    client.read(&report).refused("the user denied this call");
    assert_eq!((world.person.asked().len(), state(&world)), (1, vec![]));
    allowed_late(&world, &mut client, &report);
    world.person.will(Next::DenyMore(DenialReach::Session, None));
    client.read(&other).refused("the user denied this call");
    client.read(&report).refused("the user denied this for the rest of the session");
    assert_eq!(world.person.asked().len(), 1);
    // The twin: without either it serves.
    let denied = world.questions().denied.remove(0).id;
    assert_eq!(world.request(Request::Forget { question: denied }), Reply::Done);
    assert_eq!(client.read(&report).ok(), "the report");
}
