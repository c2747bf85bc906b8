//! Tests responses in which a collector refuses a request or asks the exporter to wait.

use crate::stage::{Fixture, eventually};
use std::time::Instant;

#[tokio::test]
async fn requests_that_are_too_large_become_smaller() {
    let mut fixture = Fixture::new().await;
    fixture.collector.behave(|request, _| {
        let is_large = request.path.ends_with("logs") && request.records().len() > 3;
        is_large.then(|| "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n".to_owned())
    });
    fixture.start();
    fixture.record(40).await;
    eventually("everything is sent", || fixture.collector.numbers().last() == Some(&41)).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), (2..=41).collect::<Vec<_>>());
    assert_eq!((fixture.state().sent, fixture.state().refused), (40, 0));
}

#[tokio::test]
async fn one_refused_entry_does_not_hold_up_the_others() {
    let mut fixture = Fixture::new().await;
    fixture.collector.behave(|request, _| {
        let is_bad = String::from_utf8_lossy(&request.body).contains("poison");
        is_bad.then(|| "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned())
    });
    fixture.start();
    fixture.record(5).await;
    let mut poison = ironcurtain_audit::Entry::new(ironcurtain_audit::Event::Decision, "");
    poison.tool_name = Some("poison".to_owned());
    fixture.audit.record(poison).await.unwrap();
    fixture.record(5).await;
    eventually("the rest is sent", || fixture.collector.numbers().last() == Some(&12)).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), (2..=6).chain(8..=12).collect::<Vec<_>>());
    assert_eq!((fixture.state().sent, fixture.state().refused), (10, 1));
}

#[tokio::test]
async fn partial_success_is_counted() {
    let mut fixture = Fixture::new().await;
    // A partial success that rejects two records.
    fixture.collector.behave(|request, _| {
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 4\r\n\r\n\n\u{2}\u{8}\u{2}";
        request.path.ends_with("logs").then(|| answer.to_owned())
    });
    fixture.start();
    fixture.record(5).await;
    eventually("they are sent", || fixture.state().position.written.entries == 6).await;
    fixture.stop().await;
    assert_eq!((fixture.state().sent, fixture.state().refused), (3, 2));
}

#[tokio::test]
async fn pause_is_as_long_as_the_collector_asks_for() {
    let mut fixture = Fixture::new().await;
    fixture.collector.answer("429 Too Many Requests", "Retry-After: 4\r\n");
    fixture.start();
    fixture.record(1).await;
    eventually("the collector was asked", || fixture.collector.received().len() == 1).await;
    let began = Instant::now();
    fixture.collector.accept();
    eventually("it is sent", || fixture.collector.numbers() == [2]).await;
    assert!(began.elapsed().as_secs() >= 3, "{:?}", began.elapsed());
    assert_eq!(fixture.collector.received().len(), 2);
    fixture.stop().await;
}

#[tokio::test]
async fn user_is_told_of_a_collector_that_fails_and_of_its_return() {
    let mut fixture = Fixture::new().await;
    for (status, words) in [
        ("401 Unauthorized", "refused the credentials (401)"),
        ("404 Not Found", "the status 404"),
        ("500 Internal Server Error", "the status 500"),
    ] {
        fixture.collector.answer(status, "");
        fixture.start();
        fixture.record(1).await;
        let trouble = fixture.trouble.clone();
        let is_told = || trouble.lock().unwrap().as_ref().is_some_and(|text: &String| text.contains(words));
        eventually(status, is_told).await;
        assert!(fixture.state().failure.unwrap().contains(words), "the state has it too");
        fixture.collector.accept();
        eventually("the problem is solved", || trouble.lock().unwrap().is_none()).await;
        eventually("the state has that too", || fixture.state().failure.is_none()).await;
        assert!(fixture.state().last_success.is_some());
        fixture.stop().await;
    }
    assert_eq!(fixture.collector.numbers(), [2, 3, 4], "nothing is lost meanwhile");
}

/// Asserts that this answer counts as a failure, and that a collector that always gives it receives few entries.
async fn assert_failing(answer: &'static str, words: &str) {
    let mut fixture = Fixture::new().await;
    fixture.collector.behave(move |_, _| Some(answer.to_owned()));
    fixture.start();
    fixture.record(5).await;
    eventually("the failure is noted", || fixture.state().failure.is_some()).await;
    fixture.record(35).await;
    let trouble = fixture.trouble.clone();
    let is_told = || trouble.lock().unwrap().as_ref().is_some_and(|text: &String| text.contains(words));
    eventually("the user is notified", is_told).await;
    let state = fixture.state();
    assert_eq!((state.sent, state.last_success), (0, None), "no success is reported");
    assert!(state.failure.unwrap().contains(words));
    fixture.collector.accept();
    eventually("the rest is sent", || fixture.collector.numbers().last() == Some(&41)).await;
    fixture.stop().await;
    let state = fixture.state();
    assert_eq!(state.sent, fixture.collector.numbers().len() as u64);
    assert_eq!(state.sent + state.refused, 40, "each entry is sent or counted: {state:?}");
    assert!(state.refused >= 1 && state.last_success.is_some() && state.failure.is_none(), "{state:?}");
}

#[tokio::test]
async fn collector_that_refuses_everything_is_a_failure_and_gets_few_entries() {
    let answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    assert_failing(answer, "refused the entries (400)").await;
}

#[tokio::test]
async fn collector_that_rejects_every_record_is_a_failure_and_gets_few_entries() {
    // A partial success that rejects more records than were sent.
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 4\r\n\r\n\n\u{2}\u{8}\u{7f}";
    assert_failing(answer, "rejected all").await;
}

#[tokio::test]
async fn changed_token_is_read_after_a_refusal() {
    let mut fixture = Fixture::new().await;
    "old".clone_into(&mut fixture.token.lock().unwrap());
    fixture.collector.behave(|request, _| {
        let is_valid = request.headers.contains(&"authorization: Bearer new".to_owned());
        (!is_valid).then(|| "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_owned())
    });
    fixture.record(1).await;
    fixture.start();
    fixture.record(1).await;
    eventually("the token is refused", || fixture.state().failure.is_some_and(|why| why.contains("401")))
        .await;
    "new".clone_into(&mut fixture.token.lock().unwrap());
    eventually("it is sent", || fixture.collector.numbers().ends_with(&[3])).await;
    fixture.stop().await;
    assert_eq!((fixture.state().refused, fixture.state().failure), (0, None));
}
