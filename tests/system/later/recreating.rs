//! A server that makes a file again each time it is moved away loses the right to write in its folder.

use super::{ended, grant_folder_of, repository};
use crate::client::BOUND;
use crate::hostile;
use crate::world::eventually;
use serde_json::json;
use std::fs;

#[test]
fn a_file_that_is_made_again_and_again_is_gone_and_its_folder_is_read_only() {
    let world = hostile::world();
    let repo = repository(&world);
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    let servers = json!({ "mcpServers": { "evil": { "command": "evil" } } });
    // More often than the folder stays writable, and less often than the server is stopped for.
    let write = format!("echo '{servers}' > .mcp.json");
    let wait = "while [ -e .mcp.json ]; do :; done";
    let script = format!("for n in 1 2 3 4 5 6 7; do {write} || break; {wait}; done 2> /dev/null");
    let call = client.begin_call("run", json!({ "where": repo, "script": script }));
    let _ = client.outcome(call);
    eventually("the file is gone", BOUND, || !repo.join(".mcp.json").exists());
    let mut change = || client.call("change", json!({ "path": repo.join("text") }));
    eventually("the folder can only be read", BOUND, || change().is_error);
    change().refused("it can only be read in this session");
    client.run(&repo, "echo x > other").refused("Read-only file system");
    client.run(&repo, "cat text").ok();
    assert!(!repo.join(".mcp.json").exists());
    let kept = fs::read_dir(world.home.sandboxes().join("quarantine")).unwrap().count();
    assert!((5..=10).contains(&kept), "{kept}");
    let record = ended(&world, client);
    assert!(record.unfinished.iter().any(|reason| reason.contains("came back 5 times")), "{record:?}");
    assert!(world.log().contains("kept recreating"), "it is not on record");
}

#[test]
fn a_server_that_goes_on_making_a_file_again_is_stopped_for_the_session() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    // The server always writes in the session's folder, so that only its end stops it there.
    let folder = world.sandbox();
    let servers = json!({ "mcpServers": { "evil": { "command": "evil" } } });
    let script = format!("while echo '{servers}' > .mcp.json; do :; done 2> /dev/null");
    let call = client.begin_call("run", json!({ "where": folder, "script": script }));
    client.outcome(call).refused("it makes files again and again that programs of yours run");
    client.plain("heard").refused("it was stopped and will not be restarted in this session");
    // Another session starts it as before.
    world.connect("hostile").plain("heard").ok();
}
