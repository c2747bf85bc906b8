//! Entries that are sent again, given up, and reported.

use crate::fake_collector::attribute;
use crate::stage::{Stage, eventually};
use ironcurtain_audit::{Written, check_all_written};
use ironcurtain_export::{DeviceKey, ExportState, SignedHead};
use std::collections::BTreeSet;

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
    // A position that is stored continues after a restart.
    stage.start();
    stage.record(1).await;
    stage.stop().await;
    assert_eq!(stage.collector.numbers(), [2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn nothing_is_lost_by_kills_and_ids_are_stable() {
    let mut stage = Stage::new().await;
    for round in 0..6_u64 {
        stage.start();
        stage.record(20).await;
        // Killed before, during or after a request.
        let seen = stage.collector.accepted().len();
        if round % 2 == 1 {
            eventually("a request arrives", || stage.collector.accepted().len() > seen).await;
        }
        stage.kill().await;
    }
    stage.start();
    eventually("everything is sent", || stage.collector.numbers().last() == Some(&121)).await;
    stage.stop().await;
    let records = stage.collector.accepted();
    let distinct: BTreeSet<(u64, String)> = records
        .iter()
        .map(|record| {
            let number = attribute(record, "ironcurtain.seq").unwrap().parse().unwrap();
            (number, attribute(record, "log.record.uid").unwrap())
        })
        .collect();
    assert!(distinct.iter().map(|(number, _)| *number).eq(2..=121), "each entry has one id");
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
    // Entry 1, from before the export, is sent too, because the position is unknown.
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
