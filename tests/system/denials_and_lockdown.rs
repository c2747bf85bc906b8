//! Denials, pauses and lockdown take effect immediately. The user does not see questions from a client that exceeds
//! its rate limit.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach, WithdrawalReason};
use ironcurtain_protocol::{ErrorCode, Protection, QuestionSelection, Reply, Request};
use serde_json::{Value, json};
use std::path::Path;

fn with_settings(settings: &Value) -> World {
    World::with(|w| {
        hostile::install(w);
        std::fs::write(w.home.config.join("config.json"), settings.to_string()).unwrap();
    })
}

fn look(client: &mut Client, path: &Path) -> crate::client::Outcome {
    client.call("open", json!({ "path": path }))
}

/// Returns the id of the only session.
fn only_session(world: &World) -> String {
    let sessions = world.sessions();
    assert_eq!(sessions.len(), 1);
    sessions[0].id.clone()
}

fn lockdown(world: &World, on: bool) {
    assert_eq!(world.request(Request::Lockdown { on, end_servers: false }), Reply::Done);
    assert_eq!(world.status().lockdown, on);
}

#[test]
fn question_rate_limit_denies_and_notifies_once() {
    let world = with_settings(&json!({ "questionsPerMinute": 2, "denialHoldsSeconds": 0 }));
    let files: Vec<_> = (0..4).map(|n| world.file(&format!("docs/{n}.txt"), "text")).collect();
    let mut client = world.connect("hostile");
    look(&mut client, &files[0]).refused("the user denied this call");
    // Calls covered by a grant or a rule raise no question.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    look(&mut client, &files[1]).ok();
    for file in &files[2..] {
        look(&mut client, file)
            .refused("too many questions: the user was asked 2 times within a minute; try again in ");
    }
    look(&mut client, &files[1]).ok();
    // Each session has its own limit, and the client has a limit across all its sessions.
    for _ in 0..3 {
        let mut other = world.connect("hostile");
        look(&mut other, &files[2]).refused("the user denied this call");
        look(&mut other, &files[2]).refused("the user denied this call");
    }
    look(&mut world.connect("hostile"), &files[2]).refused("was asked 8 times within a minute");
    assert_eq!((world.user.asked().len(), world.user.notices().len()), (8, 2));
    assert!(world.user.notices()[0].contains("has asked you 2 questions within a minute"));
    let record = world.log();
    assert_eq!(record.matches("\"too-many-questions\"").count(), 6, "rule and reason, three times: {record}");
}

#[test]
fn questions_of_other_servers_join_the_list_beyond_the_total() {
    let world = World::with(|prepared| {
        hostile::install_as(prepared, &["hostile", "git", "notes"]);
        let settings = json!({ "questionsPerMinute": 1, "denialHoldsSeconds": 0 });
        std::fs::write(prepared.home.config.join("config.json"), settings.to_string()).unwrap();
    });
    let files: Vec<_> = (0..7).map(|n| world.file(&format!("docs/{n}.txt"), &format!("text {n}"))).collect();
    let begin = |client: &mut Client, tool: &str, file: &Path| {
        world.user.will(Next::Ignore);
        client.begin_call(tool, json!({ "path": file }))
    };
    let (mut first, mut git, mut notes) =
        (world.connect("hostile"), world.connect("git"), world.connect("notes"));
    let opened = begin(&mut first, "open", &files[0]);
    eventually("the question is open", TIMEOUT, || world.user.count() == 1);
    for file in &files[1..4] {
        world.user.will(Next::Deny);
        look(&mut world.connect("hostile"), file).refused("the user denied this call");
    }
    let full = "was asked 4 times within a minute";
    look(&mut world.connect("hostile"), &files[4]).refused(full);
    // Questions from two other servers join the open question. Each gets its own answer.
    let joined = begin(&mut git, "open", &files[5]);
    eventually("the question joins", TIMEOUT, || world.user.count() == 5);
    let changes = begin(&mut notes, "change", &files[6]);
    eventually("the question joins", TIMEOUT, || world.user.count() == 6);
    world.user.answer_late(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
    world.user.answer_late(Answer::Deny { note: None, reach: DenialReach::Call });
    assert_eq!(first.outcome(opened).ok(), "text 0");
    git.outcome(joined).refused("the user denied this call");
    assert_eq!(world.questions().waiting.len(), 1, "the third is not answered with the others");
    world.user.answer_late(Answer::Deny { note: None, reach: DenialReach::Call });
    notes.outcome(changes).refused("the user denied this call");
    // While no question is open, there is no list that a new question could join.
    look(&mut world.connect("git"), &files[4]).refused(full);
    assert_eq!(world.user.asked().len(), 6);
}

#[test]
fn questions_resolved_by_others_do_not_count_to_rate_limit() {
    let world = with_settings(&json!({ "questionsPerMinute": 2, "denialHoldsSeconds": 0 }));
    let files: Vec<_> = (0..3).map(|n| world.file(&format!("docs/{n}.txt"), "text")).collect();
    let mut client = world.connect("hostile");
    world.user.will(Next::Ignore);
    let waits = client.begin_call("open", json!({ "path": files[0] }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
    let joins = client.begin_call("open", json!({ "path": files[0] }));
    eventually("the identical call joins the question", TIMEOUT, || {
        world.log().contains("it waits for the answer to the same question")
    });
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    look(&mut client, &files[1]).ok();
    client.outcome(waits).ok();
    client.outcome(joins).ok();
    // The folder is now readable, so the limit leaves room for one more question.
    let change = |client: &mut Client, file: &Path| client.call("change", json!({ "path": file }));
    change(&mut client, &files[2]).refused("the user denied this call");
    change(&mut client, &files[0]).refused("too many questions");
}

#[test]
fn denied_call_is_not_asked_again_at_once() {
    let world = with_settings(&json!({ "questionsPerMinute": 1000, "denialHoldsSeconds": 60 }));
    let (one, two) = (world.file("docs/one.txt", "1"), world.file("docs/two.txt", "2"));
    let mut client = world.connect("hostile");
    world.user.will(Next::DenyMore(DenialReach::Call, Some("not this one".into())));
    look(&mut client, &one).refused("the user denied this call with this note: not this one");
    let again = "the user already denied this call, with this note: not this one; it is denied without asking for another 60 s";
    look(&mut client, &one).refused(again);
    look(&mut world.connect("hostile"), &one).refused("already denied this call");
    look(&mut client, &two).refused("the user denied this call.");
    assert_eq!(world.user.asked().len(), 2);
    // A grant is not an answer to this question.
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    look(&mut client, &world.file("docs/three.txt", "3")).ok();
    look(&mut client, &one).ok();
}

#[test]
fn paused_agent_is_denied_until_resumed() {
    let world = World::with(hostile::install);
    let file = world.file("docs/one.txt", "1");
    let mut client = world.connect("hostile");
    let sandbox = world.sandbox();
    client.call("echo", json!({ "n": 1 })).ok();
    world.user.will(Next::Ignore);
    let waits = client.begin_call("open", json!({ "path": file }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
    let id = only_session(&world);
    assert_eq!(world.request(Request::Pause { session: id.clone() }), Reply::Done);
    client.outcome(waits).refused("the user paused this agent");
    assert_eq!(world.user.withdrawn(), [WithdrawalReason::Stopped]);
    assert!(world.sessions()[0].paused);
    client.call("echo", json!({ "n": 1 })).refused("the user paused this agent");
    look(&mut client, &sandbox).refused("the user paused this agent");
    let prompt = client.request("prompts/get", json!({ "name": "x" }));
    assert!(prompt["error"]["message"].as_str().unwrap().contains("paused this agent"), "{prompt}");
    assert!(client.request("tools/list", json!({})).get("result").is_some());
    // Other agents are not affected.
    world.connect("hostile").call("echo", json!({ "n": 2 })).ok();
    assert_eq!(world.request(Request::Resume { session: id.clone() }), Reply::Done);
    client.call("echo", json!({ "n": 1 })).ok();
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    look(&mut client, &file).ok();
    let record = world.log();
    for words in ["the session was paused, by the user", "the session was resumed, by the user"] {
        assert!(record.contains(words), "{words}: {record}");
    }
    let unknown = world.request(Request::Pause { session: "nobody".into() });
    assert!(matches!(unknown, Reply::Failed { code: ErrorCode::NotFound, .. }), "{unknown:?}");
}

#[test]
fn denial_can_pause_the_agent() {
    let world = World::with(hostile::install);
    let mut client = world.connect("hostile");
    world.user.will(Next::DenyMore(DenialReach::Pause, Some("stop it".into())));
    look(&mut client, &world.file("docs/one.txt", "1"))
        .refused("the user denied this call with this note: stop it");
    client.call("echo", json!({ "n": 1 })).refused("the user paused this agent");
    assert!(
        world.log().contains("the question ended: denied, and the agent is paused, with the note: stop it")
    );
    assert_eq!(world.request(Request::Resume { session: only_session(&world) }), Reply::Done);
    client.call("echo", json!({ "n": 1 })).ok();
}

#[test]
fn session_denial_covers_tool_and_path_and_can_be_undone() {
    let world = World::with(hostile::install);
    let (one, deep) = (world.file("docs/one.txt", "1"), world.file("docs/deep/two.txt", "2"));
    let other = world.file("other/three.txt", "3");
    let mut client = world.connect("hostile");
    // Pending identical calls are denied too.
    world.user.will(Next::Ignore);
    let waits = client.begin_call("open", json!({ "path": deep }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
    world.user.will(Next::DenyMore(DenialReach::Session, Some("not the docs".into())));
    look(&mut client, &one).refused("the user denied this call with this note: not the docs");
    let denied = "the user denied this for the rest of the session with this note: not the docs";
    client.outcome(waits).refused(denied);
    look(&mut client, &one).refused(denied);
    look(&mut client, &deep).refused(denied);
    let questions = world.user.asked();
    assert_eq!((questions.len(), questions[1].denial.as_str()), (2, "open in ~/docs"));
    // Other tools, paths and sessions still require approval.
    client.call("change", json!({ "path": one })).refused("the user denied this call.");
    look(&mut client, &other).refused("the user denied this call.");
    look(&mut world.connect("hostile"), &one).refused("the user denied this call.");
    assert_eq!(world.user.asked().len(), 3);
    let listed = world.questions().denied;
    assert_eq!((listed.len(), listed[0].what.as_str()), (1, "open in ~/docs"));
    assert_eq!(listed[0].note.as_deref(), Some("not the docs"));
    let forget = || world.request(Request::Forget { question: listed[0].id.clone() });
    assert_eq!(forget(), Reply::Done);
    assert!(matches!(forget(), Reply::Failed { code: ErrorCode::NotFound, .. }));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    look(&mut client, &one).ok();
}

#[test]
fn lockdown_survives_restart_and_keeps_rules_and_grants() {
    let mut world = World::with(hostile::install);
    let (one, two) = (world.file("docs/one.txt", "1"), world.file("docs/two.txt", "2"));
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    look(&mut client, &one).ok();
    world.user.will(Next::Ignore);
    let waits = client.begin_call("open", json!({ "path": two }));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 2);
    lockdown(&world, true);
    client.outcome(waits).refused("the user has locked IronCurtain down");
    assert_eq!(world.user.withdrawn(), [WithdrawalReason::Stopped]);
    look(&mut client, &two).refused("the user has locked IronCurtain down");
    look(&mut client, &one).ok();
    client.call("echo", json!({ "n": 1 })).ok();
    assert_eq!(world.status().protection, Protection::Lockdown);
    world.restart();
    let mut client = world.connect("hostile");
    assert_eq!(world.status().protection, Protection::Lockdown);
    world.user.asked();
    look(&mut client, &two).refused("the user has locked IronCurtain down");
    assert_eq!(world.user.asked(), []);
    lockdown(&world, false);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    look(&mut client, &two).ok();
    world.restart();
    assert_eq!(world.status().protection, Protection::Protecting);
    let record = world.log();
    for words in ["lockdown began, by the user", "lockdown is ending, by the user"] {
        assert!(record.contains(words), "{words}: {record}");
    }
}

#[test]
fn lockdown_can_end_all_sessions_and_late_approvals() {
    let world = with_settings(&json!({ "questionDeadlineSeconds": 1, "denialHoldsSeconds": 0 }));
    let file = world.file("docs/one.txt", "1");
    let (mut client, mut other) = (world.connect("hostile"), world.connect("hostile"));
    world.user.will(Next::Ignore);
    look(&mut client, &file).refused("did not answer within 1 s");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(world.ask_again());
    world.user.asked();
    lockdown(&world, true);
    look(&mut client, &file).refused("the user has locked IronCurtain down");
    lockdown(&world, false);
    look(&mut client, &file).refused("the user denied this call");
    assert_eq!((world.user.asked().len(), world.questions().missed), (1, vec![]));
    assert_eq!(world.request(Request::Lockdown { on: true, end_servers: true }), Reply::Done);
    assert!(client.wait_until_ended() && other.wait_until_ended());
    eventually("every session has ended", TIMEOUT, || world.sessions().is_empty());
    assert!(world.log().contains("lockdown began, and every session was ended"));
}

/// Starts one call in each of several sessions of one agent. Each call is waiting for an answer.
fn start_pending_calls(world: &World, clients: &mut [Client]) -> Vec<u64> {
    let mut calls = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        let file = world.file(&format!("docs/{n}.txt"), "text");
        world.user.will(Next::Ignore);
        calls.push(client.begin_call("open", json!({ "path": file })));
        eventually("the question is asked", TIMEOUT, || world.user.count() == n + 1);
    }
    calls
}

#[test]
fn pending_questions_are_denied_together_with_separate_results() {
    let world = with_settings(&json!({ "questionsPerMinute": 100, "denialHoldsSeconds": 0 }));
    let mut clients: Vec<Client> = (0..3).map(|_| world.connect("hostile")).collect();
    let calls = start_pending_calls(&world, &mut clients);
    let ids: Vec<String> = world.questions().waiting.into_iter().map(|question| question.id).collect();
    let deny = |which| world.request(Request::Deny { which, note: Some("later".into()) });
    let some = vec![ids[0].clone(), "none".to_owned()];
    assert_eq!(deny(QuestionSelection::These(some.clone())), Reply::Denied(vec![ids[0].clone()]));
    clients[0].outcome(calls[0]).refused("the user denied this call with this note: later");
    let again = deny(QuestionSelection::These(some));
    assert!(matches!(again, Reply::Failed { code: ErrorCode::NotFound, .. }), "{again:?}");
    assert_eq!(world.questions().waiting.len(), 2, "the other calls keep waiting");
    assert_eq!(deny(QuestionSelection::All), Reply::Denied(ids[1..].to_vec()));
    for at in [1, 2] {
        clients[at].outcome(calls[at]).refused("the user denied this call with this note: later");
    }
    assert_eq!(deny(QuestionSelection::All), Reply::Denied(Vec::new()));
    let record = world.log();
    assert_eq!(record.matches("the question ended: denied").count(), 3, "{record}");
    assert_eq!(record.matches("questions were denied together, by the user").count(), 2, "{record}");
    // The calls can raise questions again, and a later approval takes effect.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    look(&mut clients[1], &world.path("docs/1.txt")).ok();
}

#[test]
fn denial_can_cover_all_pending_questions_of_agent() {
    let world = with_settings(&json!({ "questionsPerMinute": 100, "denialHoldsSeconds": 0 }));
    let mut clients: Vec<Client> = (0..2).map(|_| world.connect("hostile")).collect();
    let calls = start_pending_calls(&world, &mut clients);
    let file = world.file("docs/last.txt", "text");
    world.user.will(Next::DenyMore(DenialReach::Waiting, Some("stop".into())));
    look(&mut clients[0], &file).refused("the user denied this call with this note: stop");
    for (client, call) in clients.iter_mut().zip(calls) {
        client.outcome(call).refused("the user denied this call with this note: stop");
    }
    assert_eq!(world.user.withdrawn(), [WithdrawalReason::Stopped, WithdrawalReason::Stopped]);
    assert!(world.log().contains("the question ended: denied, with the agent's other pending questions"));
    // The denial applies to pending questions but not to later ones.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    look(&mut clients[0], &file).ok();
}

/// Script of a server that answers `initialize` immediately when it first starts. After a restart, it answers only
/// while the file `go` exists.
const RELUCTANT: &str = r#"
first = number() == 1
for m in messages():
    if m.get("method") == "initialize":
        while not first and not os.path.exists("go"):
            time.sleep(0.01)
        greet(m)
    elif m.get("method") == "tools/call" and m["params"]["name"] == "die":
        os._exit(1)
    elif m.get("method") == "tools/call":
        answer(m)
    elif "id" in m:
        say(id=m["id"], result={})
"#;

#[test]
fn lockdown_cancels_approval_not_yet_forwarded() {
    let world = scripted::world(RELUCTANT);
    let file = world.file("docs/one.txt", "1");
    let mut client = world.connect("hostile");
    let go = world.sandbox().join("go");
    for (n, locked) in [(1, true), (2, false)] {
        assert!(client.plain("die").is_error);
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let call = client.begin_call("open", json!({ "path": file }));
        let answered = || world.log().matches("the question ended: approved").count() == n;
        eventually("the call is allowed", TIMEOUT, answered);
        if locked {
            lockdown(&world, true);
        }
        std::fs::write(&go, "").unwrap();
        let outcome = client.outcome(call);
        if locked {
            outcome.refused("locked IronCurtain down");
            eventually("the denial is recorded", TIMEOUT, || {
                world.log().contains("lockdown began in the meantime")
            });
            lockdown(&world, false);
        } else {
            outcome.ok();
        }
        std::fs::remove_file(&go).unwrap();
    }
}
