//! File locks taken inside a run exclude programs outside it, and vice versa.

use crate::runs::Shell;
use crate::runs_commands::world;
use crate::scripted_user::Next;
use crate::world::eventually;
use ironcurtain_consent::{Lifetime, Reach};
use std::fs::File;
use std::process::Command;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Python program that inserts 300 rows and waits for the lock each time.
const ADDING: &str = "import sqlite3, sys\n\
    c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\n\
    for i in range(300):\n    c.execute('begin immediate'); c.execute('insert into t values (?, ?)', (sys.argv[2], i)); c.execute('commit')\n";

#[test]
fn a_database_is_written_from_inside_and_outside_at_once() {
    let world = world();
    let database = world.path("data/db");
    world.file("data/other", "");
    let script = world.file("project/add.py", ADDING);
    let sqlite = |what: &str| {
        let output = Command::new("sqlite3").arg(&database).arg(what).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    sqlite("pragma journal_mode=delete; create table t (who, i)");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let mut outside =
        Command::new("/usr/bin/python3").arg(&script).arg(&database).arg("outside").spawn().unwrap();
    assert_eq!(shell.run("/usr/bin/python3 add.py ~/data/db inside"), "status 0\n");
    assert!(outside.wait().unwrap().success());
    assert_eq!(
        sqlite("select who, count(*), count(distinct i) from t group by who"),
        "inside|300|300\noutside|300|300\n"
    );
    assert_eq!(sqlite("pragma integrity_check"), "ok\n");
}

#[test]
fn a_lock_waits_for_a_program_outside_and_can_be_interrupted() {
    let world = world();
    let file = world.file("data/file", "");
    let mut shell = Shell::start(&world, &world.path("project"));
    let outside = File::options().read(true).write(true).open(&file).unwrap();
    outside.lock().unwrap();
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    // `flock` exits with status 1 if the file is locked, and `timeout` with status 124.
    assert_eq!(shell.run("flock -n ~/data/file true"), "status 1\n");
    assert_eq!(shell.run("timeout 0.3 flock ~/data/file true"), "status 124\n");
    assert_eq!(shell.run("flock ~/data/file echo locked > /tmp/out & echo started"), "started\nstatus 0\n");
    outside.unlock().unwrap();
    assert_eq!(shell.run("wait; cat /tmp/out"), "locked\nstatus 0\n");
    // Vice versa: the run holds the lock.
    assert_eq!(shell.run("exec 9>> ~/data/file && flock -x 9"), "status 0\n");
    assert!(outside.try_lock().is_err());
    assert_eq!(shell.run("exec 9>&-"), "status 0\n");
    eventually("the lock is released", TIMEOUT, || outside.try_lock().is_ok());
}
