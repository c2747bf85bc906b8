//! Compares our program with the real `srt` on the same commands and settings. The results must be equal, except for
//! the listed differences, each of which states its reason.
//!
//! The tests look for `srt` at `IRONCURTAIN_SRT` and at the path where `cargo xtask bench --with-srt` installs it. The
//! tests compare exit status, output, and the files left behind.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "beside-srt/cases.rs"]
mod cases;

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use cases::{CASES, Case, Expected};
use serde_json::{Value, json};

/// Outcome of a case in one of the two programs.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: Option<i32>,
    said: String,
    left: String,
}

#[test]
fn settings_have_the_same_effect_in_both_programs() {
    let base = tempfile::Builder::new().prefix("beside").tempdir_in("/var/tmp").unwrap();
    let (srt, port) = (srt(), serve());
    let mut wrong = Vec::new();
    for case in CASES {
        let ours = run(case, base.path(), port, |settings| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ironcurtain-sandbox"));
            command.args(["--allow-root", "-s", settings]);
            command
        });
        let theirs = run(case, base.path(), port, |settings| {
            let mut command = Command::new(&srt);
            command.args(["-s", settings]);
            command
        });
        let as_expected = match case.expected {
            Expected::Same => ours == theirs,
            Expected::Differs { ours: said, theirs: other, .. } => {
                summary(&ours) == said && summary(&theirs) == other
            }
        };
        if !as_expected {
            wrong.push(format!("{}\n   ours {ours:?}\n   srt  {theirs:?}", case.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ from the list:\n{}",
        wrong.len(),
        CASES.len(),
        wrong.join("\n")
    );
}

/// Formats status and first line for the table of differences.
fn summary(outcome: &Outcome) -> String {
    let status = outcome.status.map_or("signal".to_owned(), |status| status.to_string());
    format!("{status} {}", outcome.said.lines().next().unwrap_or_default()).trim().to_owned()
}

fn run(case: &Case, base: &Path, port: u16, program: impl Fn(&str) -> Command) -> Outcome {
    let place = base.join("place");
    let _ = fs::remove_dir_all(&place);
    let prepare = "mkdir -p home/.ssh work/secret/open work/sub/.git/hooks beside
        for file in home/.ssh/id home/notes work/file work/.env work/sub/.env work/secret/deep work/secret/open/file \
            work/sub/.git/config work/sub/.git/HEAD beside/file; do echo $file >$file; done";
    fs::create_dir(&place).unwrap();
    shell(&place, prepare);
    let settings = place.join("settings.json");
    fs::write(&settings, case_settings(case, port).to_string()).unwrap();
    let mut command = program(settings.to_str().unwrap());
    let fill = |word: &str| word.replace("PORT", &port.to_string());
    command.args(case.arguments.iter().map(|word| fill(word)));
    command.current_dir(place.join("work")).env_clear().stdin(Stdio::null());
    let path = env::var("PATH").unwrap();
    command.envs([("PATH", path.as_str()), ("HOME", place.join("home").to_str().unwrap()), ("SECRET", "s")]);
    let output = command.output().unwrap();
    let left = shell(
        &place,
        "find work beside home -type f -size +0 | sort | while read file; do echo $file; cat $file; done",
    );
    Outcome { status: output.status.code(), said: String::from_utf8_lossy(&output.stdout).into_owned(), left }
}

fn case_settings(case: &Case, port: u16) -> Value {
    let mut settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] },
    });
    for (at, value) in case.settings {
        let value: Value = serde_json::from_str(&value.replace("PORT", &port.to_string())).unwrap();
        match at.split_once('/') {
            Some((section, key)) => settings[section][key] = value,
            None => settings[*at] = value,
        }
    }
    settings
}

fn shell(dir: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn srt() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/npm/node_modules/.bin/srt");
    let srt = env::var_os("IRONCURTAIN_SRT").map_or(installed, PathBuf::from);
    assert!(srt.exists(), "`{}` does not exist; run `cargo xtask bench --with-srt` once", srt.display());
    srt
}

/// Starts a server on the host's loopback that runs until the test ends.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for caller in listener.incoming() {
            let mut caller = caller.unwrap();
            // Ignores the error: the client may have hung up.
            let _ = caller.read(&mut [0; 4096]);
            let _ =
                caller.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere");
        }
    });
    port
}
