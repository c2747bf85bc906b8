//! An interrupted installation.

use super::registry::{Package, Registry};
use super::{command, folders, install, prepare, run};
use crate::client::TIMEOUT;
use crate::machine::descendants;
use crate::test_home::{Prepared, TestHome};
use crate::world::eventually;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn killed_install_leaves_nothing_runnable_and_next_install_cleans_up() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package::default());
    let place = TestHome::new(|_| {});
    prepare(&Prepared { home: place.home.clone() }, &registry, "npx", &["tiny"]);
    registry.hold("/files/tiny-1.0.0.tgz");
    let mut installing = command(&place.home, &["install", "tiny"]).spawn().unwrap();
    eventually("the archive is requested", TIMEOUT, || {
        registry.asked().iter().any(|path| path.contains(".tgz"))
    });
    let mut waiting = command(&place.home, &["install", "tiny"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "Waiting for another installation (tiny) to finish ...\n");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let below = descendants(installing.id());
    assert!(below.len() > 2, "{below:?}");
    installing.kill().unwrap();
    installing.wait().unwrap();
    eventually("every process has ended", TIMEOUT, || below.iter().all(|process| !process.is_alive()));
    assert_eq!(folders(&place.home), ["staging"]);
    let listed = run(&place.home, &["list"]).unwrap();
    assert!(listed.contains("NOT READY: its package `tiny` is not installed"), "{listed}");
    registry.release();
    install(&place.home, "tiny");
    assert_eq!(folders(&place.home), ["tiny/1.0.0"]);
}
