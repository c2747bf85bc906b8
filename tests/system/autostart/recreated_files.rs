//! A server that keeps recreating a quarantined file loses write access to the folder.

use super::{end_session, grant_folder_of, repository};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::world::eventually;
use serde_json::json;
use std::fs;

#[test]
fn repeatedly_recreated_file_is_removed_and_folder_becomes_read_only() {
    let world = hostile::world();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    let servers = json!({ "mcpServers": { "evil": { "command": "evil" } } });
    // Enough repetitions to make the folder read-only, but too few to stop the server.
    let write = format!("echo '{servers}' > .mcp.json");
    let wait = "while [ -e .mcp.json ]; do :; done";
    let script = format!("for n in 1 2 3 4 5 6 7; do {write} || break; {wait}; done 2> /dev/null");
    let call = client.begin_call("run", json!({ "where": repo, "script": script }));
    let _ = client.outcome(call);
    eventually("the file is gone", TIMEOUT, || !repo.join(".mcp.json").exists());
    let mut change = || client.call("change", json!({ "path": repo.join("text") }));
    eventually("the folder is read-only", TIMEOUT, || change().is_error);
    change().refused("it is read-only in this session");
    client.run(&repo, "echo x > other").refused("Read-only file system");
    client.run(&repo, "cat text").ok();
    assert!(!repo.join(".mcp.json").exists());
    let kept = fs::read_dir(world.home.sandboxes().join("quarantine")).unwrap().count();
    assert!((5..=10).contains(&kept), "{kept}");
    let record = end_session(&world, client);
    assert!(record.unfinished.iter().any(|reason| reason.contains("was recreated 5 times")), "{record:?}");
    assert!(world.log().contains("kept recreating"), "the stop is not recorded");
}

#[test]
fn server_that_keeps_recreating_a_file_is_stopped() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    // The session folder is always writable, so only stopping the server helps.
    let folder = world.sandbox();
    let servers = json!({ "mcpServers": { "evil": { "command": "evil" } } });
    let script = format!("while echo '{servers}' > .mcp.json; do :; done 2> /dev/null");
    let call = client.begin_call("run", json!({ "where": folder, "script": script }));
    client.outcome(call).refused("it keeps creating files that your programs run automatically");
    client.plain("heard").refused("it was stopped and will not be restarted in this session");
    // The next session starts the server normally.
    world.connect("hostile").plain("heard").ok();
}
