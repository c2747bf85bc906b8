//! Tests entries that are sent again, dropped, or reported as lost.

use crate::fake_collector::attribute;
use crate::stage::{Fixture, eventually};
use ironcurtain_audit::{ChainPosition, check_all_written};
use ironcurtain_export::{DeviceKey, ExportState, SignedHead};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[tokio::test]
async fn only_entries_after_the_start_are_sent_once_each() {
    let mut fixture = Fixture::new().await;
    fixture.start();
    fixture.record(3).await;
    eventually("the entries are sent", || fixture.collector.numbers() == [2, 3, 4]).await;
    fixture.record(2).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), [2, 3, 4, 5, 6]);
    let state = fixture.state();
    assert_eq!((state.sent, state.dropped, state.refused, state.failure), (5, 0, 0, None));
    let received = fixture.collector.received();
    let paths: BTreeSet<&str> = received.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["/v1/logs", "/v1/metrics"]));
    for request in &received {
        assert!(!String::from_utf8_lossy(&request.body).contains("summary"), "summaries stay here");
    }
    // After a restart, the export continues from the stored position.
    fixture.start();
    fixture.record(1).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), [2, 3, 4, 5, 6, 7]);
}

/// Time at which the exporter is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// Before the exporter runs.
    Before,
    /// After the collector receives the request but before it answers.
    During,
    /// After the exporter stores the answer.
    After,
}

#[tokio::test]
async fn nothing_is_lost_by_kills_and_ids_are_stable() {
    let mut fixture = Fixture::new().await;
    fixture.start();
    fixture.kill().await;
    let mut last = 1;
    for kill in [Kill::Before, Kill::During, Kill::After, Kill::During, Kill::Before] {
        fixture.record(20).await;
        last += 20;
        let requests = fixture.collector.received().len();
        match kill {
            Kill::Before => fixture.start(),
            Kill::During => {
                let hold = fixture.collector.hold();
                fixture.start();
                eventually("a request arrives", || fixture.collector.received().len() > requests).await;
                fixture.kill().await;
                drop(hold);
                continue;
            }
            Kill::After => {
                fixture.start();
                eventually("the answer is noted", || fixture.state().position.written.entries == last).await;
            }
        }
        fixture.kill().await;
        assert_eq!(fixture.collector.received().len() > requests, matches!(kill, Kill::After), "{kill:?}");
    }
    fixture.start();
    eventually("everything is sent", || fixture.collector.numbers().contains(&last)).await;
    fixture.stop().await;
    let records = fixture.collector.accepted();
    let distinct: BTreeSet<(u64, String)> = records
        .iter()
        .map(|record| {
            let number = attribute(record, "ironcurtain.seq").unwrap().parse().unwrap();
            (number, attribute(record, "log.record.uid").unwrap())
        })
        .collect();
    assert!(distinct.iter().map(|(number, _)| *number).eq(2..=last), "each entry has one id");
    assert!(records.len() > distinct.len(), "the kills during a request made the exporter send again");
    let written: Vec<_> =
        distinct.into_iter().map(|(entries, head)| ChainPosition { entries, head }).collect();
    assert_eq!(
        check_all_written(&fixture.log(), &written).unwrap().problem,
        None,
        "ids are the hashes of the log"
    );
}

#[tokio::test]
async fn entries_beyond_the_limit_are_given_up_and_reported_with_their_hashes() {
    let mut fixture = Fixture::new().await;
    fixture.backlog = 6000;
    fixture.collector.answer("503 Service Unavailable", "");
    fixture.start();
    fixture.record(100).await;
    eventually("entries are given up", || fixture.state().dropped > 0).await;
    fixture.collector.accept();
    eventually("the rest is sent", || fixture.collector.numbers().last() == Some(&101)).await;
    fixture.stop().await;
    let numbers = fixture.collector.numbers();
    let state = fixture.state();
    let first = *numbers.first().unwrap();
    assert_eq!(numbers, (first..=101).collect::<Vec<_>>());
    assert_eq!((state.dropped, state.sent), (first - 2, 102 - first + 1), "{state:?}");
    assert!(state.lost.is_empty(), "the loss is reported");
    let lost = fixture
        .collector
        .accepted()
        .into_iter()
        .find(|record| record.event_name == "ironcurtain.lost")
        .unwrap();
    let number = |name: &str| attribute(&lost, name).unwrap().parse::<u64>().unwrap();
    assert_eq!((number("ironcurtain.lost.first"), number("ironcurtain.lost.last")), (2, first - 1));
    let hash = |name: &str| attribute(&lost, name).unwrap();
    let around = [
        ChainPosition { entries: 1, head: hash("ironcurtain.lost.after") },
        ChainPosition { entries: first - 1, head: hash("ironcurtain.lost.until") },
    ];
    assert_eq!(check_all_written(&fixture.log(), &around).unwrap().problem, None, "the chain proves which");
}

#[tokio::test]
async fn damaged_state_sends_again_with_the_same_ids() {
    let mut fixture = Fixture::new().await;
    fixture.start();
    fixture.record(10).await;
    fixture.stop().await;
    let before: BTreeSet<_> =
        fixture.collector.accepted().iter().map(|record| attribute(record, "log.record.uid")).collect();
    std::fs::write(fixture.state_file(), "{\"place\":").unwrap();
    fixture.start();
    fixture.record(1).await;
    fixture.stop().await;
    let after: BTreeSet<_> =
        fixture.collector.accepted().iter().map(|record| attribute(record, "log.record.uid")).collect();
    assert!(after.is_superset(&before));
    // Entry 1 was written before the export started. It is sent because the position is unknown.
    assert_eq!(after.len(), before.len() + 2);
    assert_eq!(fixture.state().dropped, 0);
}

#[tokio::test]
async fn state_that_cannot_be_written_does_not_stop_the_export() {
    let mut fixture = Fixture::new().await;
    let folder = fixture.dir.path().join("export.json");
    std::fs::create_dir(&folder).unwrap();
    fixture.start();
    fixture.record(3).await;
    eventually("the entries are sent", || fixture.collector.numbers().ends_with(&[2, 3, 4])).await;
    std::fs::remove_dir(&folder).unwrap();
    fixture.record(1).await;
    fixture.stop().await;
    assert_eq!(fixture.state().position.written.entries, 5);
}

#[tokio::test]
async fn signed_head_is_sent_until_it_is_accepted() {
    let mut fixture = Fixture::new().await;
    let key = DeviceKey::generate().unwrap();
    fixture.collector.answer("503 Service Unavailable", "");
    fixture.start();
    fixture.record(1).await;
    let head = SignedHead::sign(&key, &fixture.audit.status().0, 7);
    fixture.head.send_replace(Some(head.clone()));
    eventually("the collector was asked", || !fixture.collector.received().is_empty()).await;
    fixture.collector.accept();
    eventually("the head is sent", || fixture.state().head == 2).await;
    fixture.stop().await;
    let heads: Vec<_> = fixture
        .collector
        .accepted()
        .into_iter()
        .filter(|record| record.event_name == "ironcurtain.head")
        .collect();
    assert_eq!(heads.len(), 1);
    assert!(format!("{:?}", heads[0].body).contains(&head.signature));
    assert_eq!(ExportState::read(&fixture.state_file()).unwrap().unwrap().head, 2);
}

#[tokio::test]
async fn shutdown_during_a_request_sends_the_rest_and_the_newest_head() {
    let mut fixture = Fixture::new().await;
    let key = DeviceKey::generate().unwrap();
    let hold = fixture.collector.hold();
    fixture.start();
    fixture.record(1).await;
    eventually("a request arrives", || !fixture.collector.received().is_empty()).await;
    fixture.record(5).await;
    let head = SignedHead::sign(&key, &fixture.audit.status().0, 7);
    fixture.head.send_replace(Some(head));
    fixture.cancel();
    drop(hold);
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), (2..=7).collect::<Vec<_>>());
    assert_eq!(fixture.state().head, 7);
    let is_head = |record: &LogRecord| record.event_name == "ironcurtain.head";
    assert_eq!(fixture.collector.accepted().iter().filter(|record| is_head(record)).count(), 1);
}

/// Returns the log file that contains a text.
fn file_with(fixture: &Fixture, text: &str) -> PathBuf {
    let mut files = std::fs::read_dir(fixture.log()).unwrap().map(|file| file.unwrap().path());
    let is_it = |file: &PathBuf| {
        file.extension().is_some_and(|kind| kind == "jsonl")
            && std::fs::read_to_string(file).unwrap().contains(text)
    };
    files.find(is_it).unwrap()
}

#[tokio::test]
async fn entries_of_a_new_log_beyond_the_limit_are_counted() {
    let mut fixture = Fixture::new().await;
    fixture.start();
    fixture.record(30).await;
    eventually("they are sent", || fixture.collector.numbers().last() == Some(&31)).await;
    fixture.stop().await;
    let before = fixture.collector.numbers().len();
    fixture.replace_log();
    fixture.record(100).await;
    fixture.backlog = 6000;
    fixture.start();
    eventually("the rest is sent", || fixture.collector.numbers().last() == Some(&100)).await;
    fixture.stop().await;
    let numbers = fixture.collector.numbers().split_off(before);
    let first = numbers[0];
    assert!(first > 1 && numbers == (first..=100).collect::<Vec<_>>(), "{numbers:?}");
    assert_eq!(fixture.state().dropped, first - 1);
}

#[tokio::test]
async fn missing_file_is_reported_and_the_rest_is_sent() {
    let mut fixture = Fixture::new().await;
    fixture.collector.answer("503 Service Unavailable", "");
    fixture.start();
    eventually("the position is stored", || fixture.state_file().exists()).await;
    fixture.stop().await;
    fixture.record(100).await;
    let file = file_with(&fixture, "\"seq\":40,");
    let text = std::fs::read_to_string(&file).unwrap();
    let missing: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    std::fs::remove_file(file).unwrap();
    fixture.collector.accept();
    fixture.start();
    eventually("the rest is sent", || fixture.collector.numbers().last() == Some(&101)).await;
    fixture.stop().await;
    let expected: Vec<u64> = (2..=101).filter(|number| !missing.contains(number)).collect();
    assert_eq!(fixture.collector.numbers(), expected);
    assert_eq!(fixture.state().dropped, missing.len() as u64);
    let lost = fixture.collector.accepted();
    let lost = lost.iter().find(|record| record.event_name == "ironcurtain.lost").unwrap();
    let number = |name| attribute(lost, name).unwrap().parse::<u64>().unwrap();
    assert_eq!(number("ironcurtain.lost.first"), missing[0]);
    assert_eq!(number("ironcurtain.lost.last"), *missing.last().unwrap());
}
