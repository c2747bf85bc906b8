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
    let script = format!("while echo '{servers}' > .mcp.json; do :; done 2> /dev/null");
    let call = client.begin_call("run", json!({ "where": repo, "script": script }));
    // It ends when nothing can be written any more, or with its process.
    let _ = client.outcome(call);
    eventually("the file is gone", BOUND, || !repo.join(".mcp.json").exists());
    client
        .call("change", json!({ "path": repo.join("text") }))
        .refused("it can only be read in this session");
    client.run(&repo, "echo x > other").refused("Read-only file system");
    client.run(&repo, "cat text").ok();
    assert!(!repo.join(".mcp.json").exists());
    let kept = fs::read_dir(world.home.sandboxes().join("quarantine")).unwrap().count();
    assert!((5..=10).contains(&kept), "{kept}");
    let record = ended(&world, client);
    assert!(record.unfinished.iter().any(|reason| reason.contains("came back 5 times")), "{record:?}");
    assert!(world.log().contains("again and again, so it can only read"), "it is not on record");
}
