//! A full disk, simulated with a small tmpfs.

use crate::stage::{Fixture, eventually};
use ironcurtain_audit::{AuditError, Entry, Event, check};
use ironcurtain_export::ExportState;
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Fills the disk to the last byte.
fn fill(file: &Path) {
    let mut file = std::fs::File::create(file).unwrap();
    for size in [4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

#[tokio::test]
async fn full_disk_denies_and_loses_nothing_that_was_recorded() {
    if !is_inside() {
        return run_inside("full_disk::full_disk_denies_and_loses_nothing_that_was_recorded", &["--mount"]);
    }
    let disk = tempfile::tempdir().unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=512k", "none", disk.path().to_str().unwrap()];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
    let mut fixture = Fixture::in_folder(disk.path()).await;
    fixture.collector.answer("503 Service Unavailable", "");
    fixture.start();
    fixture.record(20).await;
    eventually("a request was refused", || fixture.state().failure.is_some()).await;
    let before = ExportState::read(&fixture.state_file()).unwrap();
    let filler = disk.path().join("filler");
    fill(&filler);
    // The last page of the log may have room for some entries.
    let mut last = 21;
    let refused = loop {
        match fixture.audit.record(Entry::new(Event::Session, "a summary that is not exported")).await {
            Ok(number) => last = number,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(&refused, AuditError::Write(why) if why.contains("No space left")), "{refused}");
    fixture.audit.flush().await;
    fixture.collector.accept();
    eventually("what is on the disk is sent", || fixture.collector.numbers().last() == Some(&last)).await;
    assert_eq!(
        ExportState::read(&fixture.state_file()).unwrap(),
        before,
        "no half of a state replaces the last one"
    );
    std::fs::remove_file(filler).unwrap();
    fixture.record(5).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), (2..=last + 5).collect::<Vec<_>>(), "each entry arrives once");
    assert_eq!(fixture.state().position.written.entries, last + 5);
    let checked = check(&fixture.log()).unwrap();
    assert_eq!((checked.problem, checked.entries), (None, last + 5));
}
