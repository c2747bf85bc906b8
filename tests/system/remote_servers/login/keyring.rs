//! Tests a login whose tokens are in the desktop's keyring.

use super::{LoginHost, TypedLogin, command, log_in, world};
use crate::secrets::{LOCKED, UNLOCKED, command_lines_with, files_with, on_a_bus, text};
use crate::world::{World, programs};
use ironcurtain_secrets::{SecretError, SecretName, SecretStore};
use serde_json::json;
use std::process::Command;

/// Returns an `ironcurtain` command that uses the test's keyring.
fn with_keyring(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(arguments).env("IRONCURTAIN_HOME", world.ours());
    command
}

#[test]
fn a_login_is_kept_in_the_keyring_until_its_server_is_removed() {
    on_a_bus(
        "remote_servers::login::keyring::a_login_is_kept_in_the_keyring_until_its_server_is_removed",
        UNLOCKED,
        || {
            let host = LoginHost::start();
            let world = world(&json!({ "url": host.url() }));
            let kept = || SecretStore::of(&world.home.state).get(&SecretName::of_login("far"));
            let run = |arguments: &[&str]| {
                let output = with_keyring(&world, arguments).output().unwrap();
                assert!(output.status.success(), "{}", text(&output));
                text(&output)
            };
            log_in(with_keyring(&world, &[]));
            let mut client = world.connect("far");
            assert_eq!(client.say("hello").ok(), "hello");
            host.control("/expire");
            assert_eq!(client.say("again").ok(), "again");
            let issued = host.issued();
            let newest = &issued[issued.len() - 1];
            assert!(kept().unwrap().reveal().contains(newest), "the renewed tokens are in the keyring");
            for token in &issued {
                assert_eq!(files_with(token, &world.ours()), Vec::<String>::new());
                assert_eq!(command_lines_with(token), Vec::<String>::new());
            }
            assert!(!world.ours().join("state/secrets.age").exists());
            // A process without access to the keyring lists the login.
            let listed = command(&world, &["servers", "list"]).output().unwrap();
            assert!(text(&listed).contains("  logged in\n"), "{}", text(&listed));

            let removed = run(&["servers", "remove", "far", "--yes"]);
            assert!(removed.contains("You will be logged out of it."), "{removed}");
            assert!(removed.contains("You are logged out of `far`"), "{removed}");
            assert!(matches!(kept(), Err(SecretError::Missing(_))), "{:?}", kept().err());
            run(&["servers", "restore", "far"]);
            assert!(run(&["servers", "list"]).contains("  not logged in\n"));

            // Logging out also removes tokens without an entry in the list.
            log_in(with_keyring(&world, &[]));
            std::fs::remove_file(world.home.state.join("logins.json")).unwrap();
            assert!(kept().is_ok());
            assert!(run(&["servers", "logout", "far"]).contains("You were not logged in to `far`."));
            assert!(matches!(kept(), Err(SecretError::Missing(_))), "{:?}", kept().err());
        },
    );
}

#[test]
fn a_login_with_a_locked_keyring_is_refused_before_the_browser_opens() {
    on_a_bus(
        "remote_servers::login::keyring::a_login_with_a_locked_keyring_is_refused_before_the_browser_opens",
        LOCKED,
        || {
            let host = LoginHost::start();
            let world = world(&json!({ "url": host.url() }));
            let mut login = TypedLogin::start(with_keyring(&world, &[]));
            login.terminal.shows("unlock it and try again");
            assert_ne!(login.started.wait(), 0);
            assert!(!login.terminal.all().contains("[y/N]") && host.issued().is_empty());
        },
    );
}
