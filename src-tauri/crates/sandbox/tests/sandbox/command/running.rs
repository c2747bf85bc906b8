//! Tests how a command runs: its arguments, streams, exit status and working directory.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    process::{Command, Stdio},
};

use serde_json::json;

use super::{CommandFixture, Outcome, feed};
use crate::harness::{eventually, supervisor};

#[test]
fn line_goes_to_the_shell_and_words_are_passed_unchanged() {
    let desk = CommandFixture::new();
    desk.fixture.file("work/one");
    let line = r#"printf '%s|' "a  b" $((1+1)) 'it'\''s' "$0" *; cd /; pwd"#;
    assert_eq!(desk.stdout_of(line), "a  b|2|it's|/bin/bash|one|/\n");
    let words = ["--", "printf", "%s|", "a  b", "$((1+1))", "*", "'", "`id`", "-c", ""];
    let outcome = desk.run(&words);
    assert_eq!((outcome.output.as_str(), outcome.status), ("a  b|$((1+1))|*|'|`id`|-c||", Some(0)));
}

#[test]
fn exit_status_is_the_commands() {
    let desk = CommandFixture::new();
    for (line, status) in [
        ("true", 0),
        ("exit 3", 3),
        ("exit 125", 125),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("no-such", 127),
    ] {
        assert_eq!(desk.line(line).status, Some(status), "{line}");
    }
    let absent = desk.run(&["no-such-program"]);
    assert_eq!(absent.status, Some(127));
    assert!(absent.complained.starts_with("ironcurtain-sandbox: failed to start `no-such-program`"));
    let unusable = desk.run(&["/etc"]);
    assert!(
        unusable.status == Some(126) && unusable.complained.contains("Permission denied"),
        "{unusable:?}"
    );
    let usage = desk.run(&["--no-such-option"]);
    assert_eq!(usage.status, Some(125));
    assert!(usage.complained.contains("unknown option `--no-such-option`"));
}

#[test]
fn streams_are_passed_through() {
    let desk = CommandFixture::new();
    let outcome = feed(desk.start("cat; echo done"), "in\n");
    assert_eq!((outcome.output.as_str(), outcome.status), ("in\ndone\n", Some(0)));
    let outcome = desk.line("echo out; echo bad >&2");
    assert_eq!((outcome.output.as_str(), outcome.complained.as_str()), ("out\n", "bad\n"));
    // A stream that is a terminal stays a terminal.
    let settings = desk.path("settings.json");
    let ask = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", ask]).arg(supervisor()).args(["--allow-root", "-s", &settings]);
    command.args(["-c", "test -t 0 && test -t 1 && test -t 2 && exit 7"]).current_dir(desk.path("work"));
    desk.alone(&mut command);
    assert_eq!(command.output().unwrap().status.code(), Some(7));
}

#[test]
fn other_descriptors_are_not_inherited() {
    let desk = CommandFixture::new();
    let secret = fs::File::open(desk.fixture.file("secret")).unwrap();
    let mut shell = Command::new("bash");
    desk.line("true");
    let outer = format!("exec 9<&{}; exec \"$@\"", secret.as_raw_fd());
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    shell.args(["-c", &outer, "sh"]).arg(supervisor());
    shell.args(["--allow-root", "-s", &desk.path("settings.json"), "-c", "echo /proc/self/fd/*; cat <&9"]);
    desk.alone(shell.current_dir(desk.path("work")));
    let outcome = Outcome::from_output(&shell.output().unwrap());
    assert_eq!(
        outcome.output.split_whitespace().filter(|fd| !fd.ends_with(['0', '1', '2', '3'])).count(),
        0,
        "{outcome:?}"
    );
    assert!(outcome.complained.contains("9: Bad file descriptor"), "{outcome:?}");
}

#[test]
fn autostart_files_are_quarantined_in_a_private_directory() {
    let desk = CommandFixture::new();
    let placed = [
        (None, "home/.local/state/ironcurtain"),
        (Some(("XDG_STATE_HOME", "home/own")), "home/own/ironcurtain"),
        (Some(("XDG_STATE_HOME", "")), "home/.local/state/ironcurtain"),
        (Some(("IRONCURTAIN_HOME", "home/all")), "home/all/state"),
    ];
    for (variable, fixture) in placed {
        let mut command = desk.command(&["-c", "mkdir -p deep && echo >deep/.envrc && echo >deep/plain"]);
        if let Some((name, dir)) = variable {
            command.env(name, if dir.is_empty() { String::new() } else { desk.path(dir) });
        }
        let outcome = Outcome::from_output(&command.output().unwrap());
        let (left, kept) =
            (desk.path("work/deep/.envrc"), desk.path(&format!("{fixture}/sandboxes/quarantine")));
        assert!(
            outcome.complained.contains(&format!("`{left}` was moved to `{kept}/")),
            "{variable:?}: {outcome:?}"
        );
        assert!(fs::read_dir(&kept).unwrap().count() > 0);
        assert!(!fs::exists(&left).unwrap() && fs::exists(desk.path("work/deep/plain")).unwrap());
    }
    // The error names the directory to which other users have access.
    let fixture = desk.path("home/.local/state/ironcurtain/sandboxes");
    fs::set_permissions(&fixture, fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = desk.line("true");
    assert_eq!(outcome.status, Some(125));
    assert!(
        outcome.complained.contains(&format!("`{fixture}` is not a private directory of yours")),
        "{outcome:?}"
    );
    fs::set_permissions(&fixture, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(desk.line("true").status, Some(0));
}

#[test]
fn working_directory_is_kept_unless_hidden() {
    let desk = CommandFixture::new();
    assert_eq!(desk.stdout_of("pwd"), format!("{}\n", desk.path("work")));
    let desk = desk.with("filesystem/denyRead", json!([".."])).with("filesystem/allowWrite", json!([]));
    let outcome = desk.line("pwd");
    assert_eq!((outcome.output.as_str(), outcome.status), ("/\n", Some(0)));
    assert!(outcome.complained.contains("is hidden, so the command starts in `/`"), "{outcome:?}");
}

#[test]
fn limits_apply_unless_disabled() {
    let desk = CommandFixture::new();
    let outside = Command::new("sh").args(["-c", "ulimit -Hn"]).output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    assert_ne!(outside, "512\n");
    let mut lowered = desk.command(&["--no-limits", "-c", "ulimit -Hn; ulimit -Sd"]);
    assert_eq!(Outcome::from_output(&lowered.output().unwrap()).output, format!("{outside}unlimited\n"));
    assert_eq!(desk.stdout_of("ulimit -Sd"), format!("{}\n", (4_u64 << 30) / 1024));
}

#[test]
fn prints_version_and_usage() {
    let received = |word: &str| {
        let output = Command::new(supervisor()).arg(word).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let version = concat!("ironcurtain-sandbox ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(received("--version"), (Some(0), version.to_owned()));
    let (status, help) = received("--help");
    assert!(status == Some(0) && help.starts_with("usage: ironcurtain-sandbox [OPTIONS] -c COMMAND\n"));
}

#[test]
fn root_needs_allow_root() {
    let desk = CommandFixture::new();
    desk.line("true");
    let mut command = Command::new(supervisor());
    command.args(["-s", &desk.path("settings.json"), "-c", "echo ran"]).current_dir(desk.path("work"));
    desk.alone(&mut command);
    let outcome = Outcome::from_output(&command.output().unwrap());
    if rustix::process::getuid().is_root() {
        assert_eq!(outcome.status, Some(125));
        assert!(outcome.complained.contains("refusing to run the sandbox as root"), "{outcome:?}");
    } else {
        assert_eq!((outcome.status, outcome.output.as_str()), (Some(0), "ran\n"));
    }
}

#[test]
fn replaced_hidden_file_is_hidden_again_and_reported() {
    let desk = CommandFixture::new().with("filesystem/denyRead", json!(["~/.netrc"]));
    let (hidden, plain) = (desk.fixture.file("home/.netrc"), desk.fixture.file("home/plain"));
    let mut command = desk.command(&["-c", "while read line; do cat $line; echo said; done"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    // Keeps standard input open, because the command exits at EOF.
    let mut questions = child.stdin.take().unwrap();
    let mut ask = |path: &str| {
        writeln!(questions, "{path}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(ask(&hidden), "said\n");
    // A replaced file that is not hidden stays visible.
    fs::rename(desk.fixture.file("home/new"), &plain).unwrap();
    assert!(ask(&plain).starts_with("home/new"));
    fs::rename(desk.fixture.file("home/new"), &hidden).unwrap();
    eventually("the file is hidden again", || {
        let answer = ask(&hidden);
        // The command may have read the file before it was masked. In that case, the file's text precedes this line.
        answer == "said\n"
    });
    drop(questions);
    let outcome = Outcome::from_output(&child.wait_with_output().unwrap());
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let received = format!("`{hidden}` is hidden, but the command could read it for a moment");
    assert!(outcome.complained.contains(&received), "{outcome:?}");
}

#[test]
fn git_checks_a_complex_configuration_and_the_command_exits() {
    let desk = CommandFixture::new();
    let outcome =
        desk.line("git init -q p && git -C p config pull.rebase true && git -C p config core.fsmonitor evil");
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let text = fs::read_to_string(desk.path("work/p/.git/config")).unwrap();
    assert!(text.contains("rebase = true") && !text.contains("evil"), "{text}");
    assert!(outcome.complained.contains("core.fsmonitor"), "{outcome:?}");
    assert_eq!(desk.line("true").status, Some(0));
}
