//! Tests files and variables that are hidden from a command by default or by the settings.

use std::fs;

use serde_json::json;

use super::{CommandFixture, Outcome};

#[test]
fn credentials_are_hidden_unless_named() {
    let desk = CommandFixture::new();
    for file in ["home/.ssh/id", "home/.ssh/known_hosts", "home/.aws/credentials", "home/notes"] {
        desk.fixture.file(file);
    }
    assert_eq!(desk.stdout_of("cat ~/notes"), "home/notes");
    for file in [".ssh/id", ".ssh/known_hosts", ".aws/credentials"] {
        assert!(desk.stderr_of_failure(&format!("cat ~/{file}")).contains("Permission denied"), "{file}");
    }
    let desk = desk.with("filesystem/allowRead", json!(["~/.ssh/known_hosts", "~/.aws"]));
    assert_eq!(
        desk.stdout_of("cat ~/.ssh/known_hosts ~/.aws/credentials"),
        "home/.ssh/known_hostshome/.aws/credentials"
    );
    desk.stderr_of_failure("cat ~/.ssh/id");
}

#[test]
fn ironcurtain_directories_are_never_opened() {
    let desk = CommandFixture::new();
    desk.fixture.file("home/.config/ironcurtain/config.json");
    desk.fixture.file("home/elsewhere/policy");
    desk.stderr_of_failure("cat ~/.config/ironcurtain/config.json");
    let mut desk = desk;
    for list in ["filesystem/allowRead", "filesystem/allowWrite"] {
        desk.set(list, json!(["~/.config/ironcurtain"]));
        assert!(desk.expect_rejected_settings().contains("belongs to IronCurtain"));
        desk.set(list, json!([]));
    }
    let line = "cat ~/elsewhere/policy";
    assert_eq!(desk.stdout_of(line), "home/elsewhere/policy");
    let hidden =
        desk.command(&["-c", line]).env("IRONCURTAIN_HOME", desk.path("home/elsewhere")).output().unwrap();
    assert!(!hidden.status.success() && hidden.stdout.is_empty());
}

#[test]
fn credentials_in_the_settings_are_hidden() {
    let desk = CommandFixture::new();
    desk.fixture.file("work/token");
    let see = |desk: &CommandFixture| {
        let mut command = desk.command(&["--pass-env", "TOKEN,OTHER", "-c", "cat token; echo $TOKEN $OTHER"]);
        Outcome::from_output(&command.env("TOKEN", "t").env("OTHER", "o").output().unwrap()).output
    };
    assert_eq!(see(&desk), "work/tokent o\n");
    let credentials = json!({
        "files": [{ "path": "token", "mode": "deny", "extract": "(x)" }],
        "envVars": [{ "name": "TOKEN", "mode": "deny" }],
    });
    let desk = desk.with("credentials", credentials).with("filesystem/allowRead", json!(["token"]));
    assert_eq!(see(&desk), "o\n");
    assert!(desk.stderr_of_failure("cat token").contains("Permission denied"));
}

#[test]
fn environment_is_an_allow_list() {
    let desk = CommandFixture::new();
    let given = |more: &[&str]| {
        let mut command = desk.command(&[more, &["-c", "env"]].concat());
        command.env("SECRET", "s").env("KEPT", "k").env("LC_TIME", "C").env("HTTPS_PROXY", "http://x");
        let output = Outcome::from_output(&command.output().unwrap()).output;
        let mut names: Vec<String> =
            output.lines().map(|line| line.split('=').next().unwrap().to_owned()).collect();
        // Removes variables that the shell itself sets.
        names.retain(|name| !["SHLVL", "_", "PWD", "OLDPWD"].contains(&name.as_str()));
        names.sort();
        names
    };
    let always = ["HOME", "LC_TIME", "PATH", "SANDBOX_RUNTIME", "TMPDIR"];
    assert_eq!(given(&[]), always);
    assert_eq!(
        given(&["--pass-env", "KEPT"]),
        ["HOME", "KEPT", "LC_TIME", "PATH", "SANDBOX_RUNTIME", "TMPDIR"]
    );
    let all = given(&["--pass-env", "*"]);
    assert_eq!(all, ["HOME", "KEPT", "LC_TIME", "PATH", "SANDBOX_RUNTIME", "SECRET", "TMPDIR"]);
}

#[test]
fn git_trusts_configured_directories() {
    let ask = "git config --get-all safe.directory";
    let desk = CommandFixture::new();
    desk.stderr_of_failure(ask);
    let desk = desk.with("git", json!({ "safeDirectories": ["/a", "/b"] }));
    assert_eq!(desk.stdout_of(ask), "/a\n/a/*\n/b\n/b/*\n");
}

#[test]
fn unix_sockets_are_available_only_if_allowed() {
    let desk = CommandFixture::new();
    let _host = std::os::unix::net::UnixListener::bind(desk.path("work/socket")).unwrap();
    let connect = "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\"); print(\"in\")'";
    assert!(desk.stderr_of_failure(connect).contains("Operation not permitted"));
    // On Linux, neither `srt` nor IronCurtain can allow sockets by path.
    let desk = desk.with("network/allowUnixSockets", json!(["socket"]));
    assert!(desk.stderr_of_failure(connect).contains("Operation not permitted"));
    let desk = desk.with("network/allowAllUnixSockets", json!(true));
    assert_eq!(desk.stdout_of(connect), "in\n");
    assert!(fs::exists(desk.path("work/socket")).unwrap());
}
