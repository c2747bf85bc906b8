//! The sequential-thinking server.

use super::{free, world};
use serde_json::json;

#[test]
fn thinking_server_works_and_unknown_argument_is_refused() {
    let world = world("sequential-thinking");
    let mut client = world.connect("sequential-thinking");
    let thought = |n: u32| json!({ "thought": "hm", "nextThoughtNeeded": true, "thoughtNumber": n, "totalThoughts": 3 });
    free(&world, &mut client, "sequentialthinking", thought(1)).ok();
    let second = free(&world, &mut client, "sequentialthinking", thought(2));
    assert!(second.ok().contains("\"thoughtHistoryLength\": 2"), "{}", second.text);
    let mut odd = thought(3);
    odd["path"] = json!("/etc/passwd");
    client.call("sequentialthinking", odd).refused("`path`");
    assert_eq!(world.user.asked().len(), 0);
}
