//! Tests that a log contains every entry that was reported as written, no matter when its writer was killed, for
//! example during a rotation.

use ironcurtain_audit::{Audit, Entry, Event, KnownHead, LogOptions, check_written};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable that contains the log's directory. If it is set, this program acts as the writer that will be
/// killed.
const DIR: &str = "IRONCURTAIN_KILLED_LOG";

fn options(all: &Path) -> LogOptions {
    // Small enough for every third entry to start a new file.
    let head = Some(all.join("head.json"));
    LogOptions { head, file_bytes: 400, ..LogOptions::new(&all.join("audit")) }
}

/// Writes and reports entries until the process is killed.
#[tokio::test]
async fn writes() {
    let Some(all) = std::env::var_os(DIR) else { return };
    let audit = Audit::open_with(options(Path::new(&all)), |_| ()).unwrap();
    let mut out = std::io::stdout();
    loop {
        let number = audit.record(Entry::new(Event::Session, "an entry")).await.unwrap();
        writeln!(out, "\nwritten {number}").unwrap();
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn nothing_is_lost_by_a_kill_at_any_instant() {
    let all = tempfile::tempdir().unwrap();
    std::fs::create_dir(all.path().join("audit")).unwrap();
    let mut last = 0;
    for round in 0..30_u64 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes", "--nocapture"])
            .env(DIR, all.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut written =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("written ")?.parse::<u64>().ok());
        let first = written.next().unwrap();
        assert!(first > last, "{first} follows {last}");
        // Each round kills the writer at a different moment during the writes or the 200 ms after them.
        let until = Instant::now() + Duration::from_micros(round * 7_171);
        last = written.by_ref().find(|_| Instant::now() >= until).unwrap();
        writer.kill().unwrap();
        writer.wait().unwrap();
        last = written.last().unwrap_or(last);
        let head = KnownHead::read(&all.path().join("head.json"));
        let KnownHead::Entry(known) = head else { panic!("round {round}: {head:?}") };
        let checked = check_written(&options(all.path()).dir, &known).unwrap();
        assert!(checked.intact() || checked.torn, "round {round}: {checked:?}");
        assert!(checked.entries >= last, "round {round}: {last} was written, {checked:?}");
        // Entries that were written but not reported remain in the log.
        last = checked.entries;
    }
    assert!(std::fs::read_dir(all.path().join("audit")).unwrap().count() > 50);
}
