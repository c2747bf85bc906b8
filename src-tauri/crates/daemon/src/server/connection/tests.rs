//! The lines that pass a connection, and those that do not.

use super::*;
use crate::session_log::SessionLogs;
use crate::wire::Memory;
use std::io::{BufRead, Write};
use std::time::Duration;

#[tokio::test]
async fn a_server_that_does_not_read_its_answers_is_not_read_either() {
    const PINGS: usize = 50_000;
    let (stdin, to_server) = std::io::pipe().unwrap();
    let (from_server, mut stdout) = std::io::pipe().unwrap();
    let (_roots, roots) = watch::channel(ServerView::default());
    let (_takes, client_takes) = watch::channel(HashSet::new());
    let dir = tempfile::tempdir().unwrap();
    let options = ConnectionOptions {
        stdin: Output::new(to_server.into()).unwrap(),
        stdout: Input::new(from_server.into()).unwrap(),
        client: Outbox::unopened(),
        memory: Memory::new(8, 1).allowance(1),
        roots,
        client_takes,
        sampling: mpsc::unbounded_channel().0,
        noise: SessionLogs::start().unwrap().log(dir.path().join("log")),
    };
    let (_connection, _reading) = ServerConnection::start(options);
    let mut asking = tokio::task::spawn_blocking(move || {
        for n in 0..PINGS {
            writeln!(stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}").unwrap();
        }
        stdout
    });
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut asking).await.is_err(), "all of it was read");
    // As soon as it reads, everything is answered.
    let answers = tokio::task::spawn_blocking(move || {
        std::io::BufReader::new(stdin).lines().take(PINGS).map_while(Result::ok).count()
    });
    assert_eq!(answers.await.unwrap(), PINGS);
    drop(asking.await.unwrap());
}
