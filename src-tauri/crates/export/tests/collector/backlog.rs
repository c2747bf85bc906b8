//! Tests entries that are sent again, dropped, or reported as lost.

use crate::fake_collector::attribute;
use crate::stage::{Stage, eventually};
use ironcurtain_audit::{Written, check_all_written};
use ironcurtain_export::{DeviceKey, ExportState, SignedHead};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[tokio::test]
async fn only_entries_after_the_start_are_sent_once_each() {
    let mut stage = Stage::new().await;
    stage.start();
    stage.record(3).await;
    eventually("the entries are sent", || stage.collector.numbers() == [2, 3, 4]).await;
    stage.record(2).await;
    stage.stop().await;
    assert_eq!(stage.collector.numbers(), [2, 3, 4, 5, 6]);
    let state = stage.state();
    assert_eq!((state.sent, state.dropped, state.refused, state.failure), (5, 0, 0, None));
    let received = stage.collector.received();
    let paths: BTreeSet<&str> = received.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["/v1/logs", "/v1/metrics"]));
    for request in &received {
        assert!(!String::from_utf8_lossy(&request.body).contains("summary"), "summaries stay here");
    }
    // After a restart, the export continues from the stored position.
    stage.start();
    stage.record(1).await;
    stage.stop().await;
    assert_eq!(stage.collector.numbers(), [2, 3, 4, 5, 6, 7]);
}

/// Time at which the exporter is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// Before the exporter ran.
    Before,
    /// After the collector received the request, before it answers.
    During,
    /// After the exporter stored the answer.
    After,
}

#[tokio::test]
async fn nothing_is_lost_by_kills_and_ids_are_stable() {
    let mut stage = Stage::new().await;
    stage.start();
    stage.kill().await;
    let mut last = 1;
    for kill in [Kill::Before, Kill::During, Kill::After, Kill::During, Kill::Before] {
        stage.record(20).await;
        last += 20;
        let requests = stage.collector.received().len();
        match kill {
            Kill::Before => stage.start(),
            Kill::During => {
                let hold = stage.collector.hold();
                stage.start();
                eventually("a request arrives", || stage.collector.received().len() > requests).await;
                stage.kill().await;
                drop(hold);
                continue;
            }
            Kill::After => {
                stage.start();
                eventually("the answer is noted", || stage.state().place.written.entries == last).await;
            }
        }
        stage.kill().await;
        assert_eq!(stage.collector.received().len() > requests, matches!(kill, Kill::After), "{kill:?}");
    }
    stage.start();
    eventually("everything is sent", || stage.collector.numbers().contains(&last)).await;
    stage.stop().await;
    let records = stage.collector.accepted();
    let distinct: BTreeSet<(u64, String)> = records
        .iter()
        .map(|record| {
            let number = attribute(record, "ironcurtain.seq").unwrap().parse().unwrap();
            (number, attribute(record, "log.record.uid").unwrap())
        })
        .collect();
    assert!(distinct.iter().map(|(number, _)| *number).eq(2..=last), "each entry has one id");
    assert!(records.len() > distinct.len(), "the kills during a request made the exporter send again");
    let written: Vec<_> = distinct.into_iter().map(|(entries, head)| Written { entries, head }).collect();
    assert_eq!(
        check_all_written(&stage.log(), &written).unwrap().problem,
        None,
        "ids are the hashes of the log"
    );
}

#[tokio::test]
async fn entries_beyond_the_limit_are_given_up_and_reported_with_their_hashes() {
    let mut stage = Stage::new().await;
    stage.backlog = 6000;
    stage.collector.answer("503 Service Unavailable", "");
    stage.start();
    stage.record(100).await;
    eventually("entries are given up", || stage.state().dropped > 0).await;
    stage.collector.accept();
    eventually("the rest is sent", || stage.collector.numbers().last() == Some(&101)).await;
    stage.stop().await;
    let numbers = stage.collector.numbers();
    let state = stage.state();
    let first = *numbers.first().unwrap();
    assert_eq!(numbers, (first..=101).collect::<Vec<_>>());
    assert_eq!((state.dropped, state.sent), (first - 2, 102 - first + 1), "{state:?}");
    assert!(state.lost.is_empty(), "the loss is reported");
    let lost = stage
        .collector
        .accepted()
        .into_iter()
        .find(|record| record.event_name == "ironcurtain.lost")
        .unwrap();
    let number = |name: &str| attribute(&lost, name).unwrap().parse::<u64>().unwrap();
    assert_eq!((number("ironcurtain.lost.first"), number("ironcurtain.lost.last")), (2, first - 1));
    let hash = |name: &str| attribute(&lost, name).unwrap();
    let around = [
        Written { entries: 1, head: hash("ironcurtain.lost.after") },
        Written { entries: first - 1, head: hash("ironcurtain.lost.until") },
    ];
    assert_eq!(check_all_written(&stage.log(), &around).unwrap().problem, None, "the chain proves which");
}

#[tokio::test]
async fn damaged_state_sends_again_with_the_same_ids() {
    let mut stage = Stage::new().await;
    stage.start();
    stage.record(10).await;
    stage.stop().await;
    let before: BTreeSet<_> =
        stage.collector.accepted().iter().map(|record| attribute(record, "log.record.uid")).collect();
    std::fs::write(stage.state_file(), "{\"place\":").unwrap();
    stage.start();
    stage.record(1).await;
    stage.stop().await;
    let after: BTreeSet<_> =
        stage.collector.accepted().iter().map(|record| attribute(record, "log.record.uid")).collect();
    assert!(after.is_superset(&before));
    // Entry 1 was written before the export started. It is sent because the position is unknown.
    assert_eq!(after.len(), before.len() + 2);
    assert_eq!(stage.state().dropped, 0);
}

#[tokio::test]
async fn state_that_cannot_be_written_does_not_stop_the_export() {
    let mut stage = Stage::new().await;
    let folder = stage.dir.path().join("export.json");
    std::fs::create_dir(&folder).unwrap();
    stage.start();
    stage.record(3).await;
    eventually("the entries are sent", || stage.collector.numbers().ends_with(&[2, 3, 4])).await;
    std::fs::remove_dir(&folder).unwrap();
    stage.record(1).await;
    stage.stop().await;
    assert_eq!(stage.state().place.written.entries, 5);
}

#[tokio::test]
async fn signed_head_is_sent_until_it_is_accepted() {
    let mut stage = Stage::new().await;
    let key = DeviceKey::generate().unwrap();
    stage.collector.answer("503 Service Unavailable", "");
    stage.start();
    stage.record(1).await;
    let head = SignedHead::sign(&key, &stage.audit.standing().0, 7);
    stage.head.send_replace(Some(head.clone()));
    eventually("the collector was asked", || !stage.collector.received().is_empty()).await;
    stage.collector.accept();
    eventually("the head is sent", || stage.state().head == 2).await;
    stage.stop().await;
    let heads: Vec<_> = stage
        .collector
        .accepted()
        .into_iter()
        .filter(|record| record.event_name == "ironcurtain.head")
        .collect();
    assert_eq!(heads.len(), 1);
    assert!(format!("{:?}", heads[0].body).contains(&head.signature));
    assert_eq!(ExportState::read(&stage.state_file()).unwrap().unwrap().head, 2);
}

#[tokio::test]
async fn shutdown_during_a_request_sends_the_rest_and_the_newest_head() {
    let mut stage = Stage::new().await;
    let key = DeviceKey::generate().unwrap();
    let hold = stage.collector.hold();
    stage.start();
    stage.record(1).await;
    eventually("a request arrives", || !stage.collector.received().is_empty()).await;
    stage.record(5).await;
    let head = SignedHead::sign(&key, &stage.audit.standing().0, 7);
    stage.head.send_replace(Some(head));
    stage.cancel();
    drop(hold);
    stage.stop().await;
    assert_eq!(stage.collector.numbers(), (2..=7).collect::<Vec<_>>());
    assert_eq!(stage.state().head, 7);
    let is_head = |record: &LogRecord| record.event_name == "ironcurtain.head";
    assert_eq!(stage.collector.accepted().iter().filter(|record| is_head(record)).count(), 1);
}

/// Returns the log file that contains a text.
fn file_with(stage: &Stage, text: &str) -> PathBuf {
    let mut files = std::fs::read_dir(stage.log()).unwrap().map(|file| file.unwrap().path());
    let is_it = |file: &PathBuf| {
        file.extension().is_some_and(|kind| kind == "jsonl")
            && std::fs::read_to_string(file).unwrap().contains(text)
    };
    files.find(is_it).unwrap()
}

#[tokio::test]
async fn entries_of_a_new_log_beyond_the_limit_are_counted() {
    let mut stage = Stage::new().await;
    stage.start();
    stage.record(30).await;
    eventually("they are sent", || stage.collector.numbers().last() == Some(&31)).await;
    stage.stop().await;
    let before = stage.collector.numbers().len();
    stage.replace_log();
    stage.record(100).await;
    stage.backlog = 6000;
    stage.start();
    eventually("the rest is sent", || stage.collector.numbers().last() == Some(&100)).await;
    stage.stop().await;
    let numbers = stage.collector.numbers().split_off(before);
    let first = numbers[0];
    assert!(first > 1 && numbers == (first..=100).collect::<Vec<_>>(), "{numbers:?}");
    assert_eq!(stage.state().dropped, first - 1);
}

#[tokio::test]
async fn missing_file_is_reported_and_the_rest_is_sent() {
    let mut stage = Stage::new().await;
    stage.collector.answer("503 Service Unavailable", "");
    stage.start();
    eventually("the position is stored", || stage.state_file().exists()).await;
    stage.stop().await;
    stage.record(100).await;
    let file = file_with(&stage, "\"seq\":40,");
    let text = std::fs::read_to_string(&file).unwrap();
    let missing: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    std::fs::remove_file(file).unwrap();
    stage.collector.accept();
    stage.start();
    eventually("the rest is sent", || stage.collector.numbers().last() == Some(&101)).await;
    stage.stop().await;
    let expected: Vec<u64> = (2..=101).filter(|number| !missing.contains(number)).collect();
    assert_eq!(stage.collector.numbers(), expected);
    assert_eq!(stage.state().dropped, missing.len() as u64);
    let lost = stage.collector.accepted();
    let lost = lost.iter().find(|record| record.event_name == "ironcurtain.lost").unwrap();
    let number = |name| attribute(lost, name).unwrap().parse::<u64>().unwrap();
    assert_eq!(number("ironcurtain.lost.first"), missing[0]);
    assert_eq!(number("ironcurtain.lost.last"), *missing.last().unwrap());
}
