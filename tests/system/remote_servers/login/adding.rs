//! Tests that `servers add` offers a login only if the server needs one.

use super::{LoginHost, command, world_of};
use crate::terminal::Terminal;
use serde_json::json;

#[test]
fn adding_a_server_that_needs_a_login_offers_the_login() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": host.url() }));
    let mut terminal = Terminal::new(40, 1000);
    let started = terminal.start(&command(&world, &["servers", "add", &host.url(), "--name", "other"]));
    terminal.shows("to read its list of tools? [y/N]");
    terminal.types("y\n");
    terminal.shows("Its tools can be listed once you are logged in");
    terminal.shows("Add it as `other`? [y/N]");
    terminal.types("y\n");
    terminal.shows("Added `other`");
    terminal.shows(&format!("Authorization server: {}", host.base()));
    terminal.shows("in your browser, to log in for `other`? [y/N]");
    terminal.types("\n");
    terminal.shows("You are not logged in.");
    assert_eq!(started.wait(), 0, "the server was added");
    assert!(host.issued().is_empty());
}

#[test]
fn adding_a_server_with_a_token_does_not_ask_for_a_login() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": format!("{}/elsewhere", host.base()) }));
    let mut terminal = Terminal::new(40, 1000);
    let arguments = ["servers", "add", &host.url(), "--name", "other", "--token"];
    let started = terminal.start(&command(&world, &arguments));
    terminal.shows("Token for `other` (not shown): ");
    terminal.types("t0ken\n");
    terminal.shows("to read its list of tools? [y/N]");
    terminal.types("y\n");
    terminal.shows("Its tools can be listed when an agent uses it");
    terminal.shows("Add it as `other`? [y/N]");
    terminal.types("y\n");
    terminal.shows("Added `other`");
    assert_eq!(started.wait(), 0);
    let shown = terminal.all();
    assert!(!shown.contains("log in") && !shown.contains("t0ken"), "{shown}");
}
