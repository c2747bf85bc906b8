//! What judging a call asks the allocator for.

use crate::scene::{Scene, grant, path, severity};
use allocation_counter::measure;
use ironcurtain_policy::{Access, GrantKind};
use serde_json::{Value, json};
use std::hint::black_box;

/// How strict the answer to a call is, and how often judging it asks for memory.
fn judged(scene: &Scene, server: &str, tool: &str, arguments: &Value) -> (u8, u64) {
    let call = scene.call(server, tool, arguments).unwrap();
    let said = severity(&scene.judge_call(&call));
    let asked = measure(|| drop(black_box(scene.judge_call(black_box(&call)))));
    (said, asked.count_total)
}

#[test]
fn an_allowed_call_and_one_that_asks_about_one_value_are_judged_without_memory() {
    let reads = json!({ "paths": { "roles": ["read-path"], "within": "/a" } });
    let web = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["*.ok.org"] } });
    let asks = json!({ "roles": ["read-path"] });
    let mut scene =
        Scene::new(&[("reads", reads, "allow"), ("web", web, "allow"), ("asks", asks, "escalate")]);
    scene.protected = [path("/a/secret"), path("/box/secret")].into_iter().collect();
    let allowed = [
        ("filesystem", "list_allowed_directories", json!({})),
        ("filesystem", "read", json!({ "path": "/box/a" })),
        ("filesystem", "read", json!({ "path": "/a/b" })),
        ("filesystem", "move", json!({ "source": "/box/a", "destination": "/box/b" })),
        ("other", "get", json!({ "url": "https://a.ok.org/x" })),
    ];
    for (server, tool, arguments) in &allowed {
        assert_eq!(judged(&scene, server, tool, arguments), (0, 0), "{tool} {arguments}");
    }
    let elsewhere = json!({ "path": "/b" });
    assert_eq!(judged(&scene, "filesystem", "read", &elsewhere), (1, 0));
    // A grant is named by the verdict, which asks for memory: the counter counts.
    scene.grants = vec![grant("g", "/b", GrantKind::Tree, &[Access::Read])];
    let (said, asked) = judged(&scene, "filesystem", "read", &elsewhere);
    assert!(said == 0 && asked > 0);
}
