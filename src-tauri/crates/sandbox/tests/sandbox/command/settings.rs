//! Tests the settings file: its location, strict parsing and the effect of each key.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use serde_json::{Value, json};

use super::{CommandFixture, Outcome};
use crate::harness::supervisor;

/// Runs a line without `--settings`.
fn by_default(desk: &CommandFixture, line: &str) -> Outcome {
    let mut command = Command::new(supervisor());
    command.args(["--allow-root", "-c", line]).current_dir(desk.path("work"));
    desk.alone(&mut command);
    Outcome::from_output(&command.output().unwrap())
}

#[test]
fn file_in_the_home_is_the_default() {
    let desk = CommandFixture::new();
    let none = by_default(&desk, "cat /etc/hostname >/dev/null; echo ran; echo x >new");
    assert_eq!((none.status, none.output.as_str()), (Some(1), "ran\n"));
    assert!(none.complained.contains("Read-only file system"), "{none:?}");
    fs::write(desk.path("home/.srt-settings.json"), desk.settings.to_string()).unwrap();
    assert_eq!(by_default(&desk, "echo x >new; cat new").output, "x\n");
    fs::write(desk.path("home/.srt-settings.json"), " \n").unwrap();
    let empty = by_default(&desk, "echo ran");
    assert_eq!((empty.status, empty.output.as_str()), (Some(125), ""));
    assert!(empty.complained.contains("is empty"), "{empty:?}");
}

#[test]
fn named_file_must_be_readable() {
    let desk = CommandFixture::new();
    let with = |path: &str| {
        let mut command = Command::new(supervisor());
        desk.alone(
            command.args(["--allow-root", "-s", path, "-c", "echo ran"]).current_dir(desk.path("work")),
        );
        let outcome = Outcome::from_output(&command.output().unwrap());
        assert_eq!((outcome.status, outcome.output.as_str()), (Some(125), ""), "{outcome:?}");
        outcome.complained
    };
    assert!(with("/no/such/file").contains("`/no/such/file` does not exist"));
    assert!(with("/etc").contains("failed to read `/etc`"));
    let file = desk.fixture.file("work/closed");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    assert!(rustix::process::getuid().is_root() || with("closed").contains("failed to read"));
}

#[test]
fn errors_name_the_key() {
    for (at, value, output) in [
        ("netwrok", json!({}), "`netwrok`: unknown field"),
        ("network/allowedDomain", json!([]), "`network.allowedDomain`: unknown field"),
        ("network/allowedDomains", json!("a.test"), "`network.allowedDomains`: invalid type: string"),
        ("network/allowedDomains", Value::Null, "`network.allowedDomains`: invalid type: null"),
        ("network/allowedDomains", json!([1]), "`network.allowedDomains[0]`: invalid type: integer"),
        ("network/strictAllowlist", Value::Null, "`network.strictAllowlist`: invalid type: null"),
        ("filesystem/denyRead", json!([{ "path": "x" }]), "`filesystem.denyRead[0]`: expected a path, or {"),
        ("filesystem/denyRead", json!([{ "path": "x", "literal": false }]), "`literal` can only be `true`"),
        ("filesystem/denyRead", json!([""]), "a path cannot be empty"),
        ("allowPty", json!("yes"), "`allowPty`: invalid type: string"),
        ("mandatoryDenySearchDepth", json!(11), "`mandatoryDenySearchDepth`: must be a number from 1 to 10"),
        ("credentials", json!({ "injectHosts": [] }), "`credentials.injectHosts`: unknown field"),
        (
            "credentials",
            json!({ "files": [{ "path": "x" }] }),
            "`credentials.files[0]`: missing field `mode`",
        ),
    ] {
        let complained = CommandFixture::new().with(at, value).expect_rejected_settings();
        assert!(complained.contains("settings.json`: ") && complained.contains(output), "{complained}");
    }
    let mut desk = CommandFixture::new();
    desk.settings["filesystem"].as_object_mut().unwrap().remove("denyRead");
    assert!(desk.expect_rejected_settings().contains("`filesystem`: missing field `denyRead`"));
}

#[test]
fn unsupported_keys_are_refused_by_name() {
    for (at, value, harmless) in [
        ("filesystem/disabled", json!(true), json!(false)),
        ("enableWeakerNestedSandbox", json!(true), json!(false)),
        ("allowNestedUserNamespaces", json!(true), json!(false)),
        ("javaAgentJarPath", json!("/a.jar"), Value::Null),
        ("bwrapPath", json!("/no/bwrap"), json!("/usr/bin/bwrap")),
        ("network/httpProxyPort", json!(8080), Value::Null),
        ("network/socksProxyPort", json!(1080), Value::Null),
        ("network/mitmProxy", json!({ "socketPath": "/s", "domains": ["a.test"] }), Value::Null),
        ("network/parentProxy", json!({ "http": "http://p.test" }), Value::Null),
        ("network/tlsTerminate", json!({}), Value::Null),
        ("network/filterRequest", json!("f"), Value::Null),
        ("network/refuseOpaqueTunnels", json!(true), json!(false)),
        ("network/requireHostMatch", json!(true), json!(false)),
        ("network/stripResponseHeaders", json!(["set-cookie"]), json!([])),
        ("network/deniedDomainReasons", json!({ "a.test": "no" }), json!({})),
        ("credentials/allowPlaintextInject", json!(true), json!(false)),
        ("credentials/awsPairs", json!([{}]), json!([])),
        ("credentials/sigv4", json!({}), Value::Null),
    ] {
        let complained = CommandFixture::new().with(at, value).expect_rejected_settings();
        let named = format!("`{}`: ", at.replace('/', "."));
        assert!(complained.contains(&named), "{named} {complained}");
        // Settings without the key, or with a value that requests nothing, are accepted.
        let desk =
            if harmless.is_null() { CommandFixture::new() } else { CommandFixture::new().with(at, harmless) };
        assert_eq!(desk.stdout_of("echo ran"), "ran\n", "{at}");
    }
    for (list, entry) in [
        ("files", json!({ "path": "x", "mode": "mask" })),
        ("envVars", json!({ "name": "x", "mode": "mask" })),
    ] {
        let complained =
            CommandFixture::new().with("credentials", json!({ list: [entry] })).expect_rejected_settings();
        assert!(complained.contains(&format!("`credentials.{list}[0].mode`: ")), "{complained}");
    }
}

#[test]
fn keys_without_effect_on_linux_are_accepted() {
    let mut desk = CommandFixture::new();
    for (at, value) in [
        ("network/strictAllowlist", json!(true)),
        ("network/allowUnixSockets", json!(["/run/x"])),
        ("network/allowLocalBinding", json!(true)),
        ("network/allowMachLookup", json!(["com.example.*"])),
        ("network/allowPlaintextHeaderSet", json!(true)),
        ("network/ambiguousRequestTarget", json!("refuse")),
        ("ignoreViolations", json!({ "*": ["/x"] })),
        ("enableWeakerNetworkIsolation", json!(true)),
        ("allowAppleEvents", json!(true)),
        ("ripgrep", json!({ "command": "rg", "args": ["-x"] })),
        ("mandatoryDenySearchDepth", json!(5)),
        ("allowPty", json!(true)),
        ("seccomp", json!({ "applyPath": "/x" })),
        ("socatPath", json!("/x")),
        ("windows", json!({ "sandboxUser": "x" })),
    ] {
        desk.set(at, value);
    }
    assert_eq!(desk.stdout_of("echo ran"), "ran\n");
}
