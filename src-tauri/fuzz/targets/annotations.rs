//! Any bytes as a tool-annotations file are parsed or rejected, and calls of every tool in it are planned or denied.

#![no_main]

use ironcurtain_policy::Annotations;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fuzz_target!(|text: &str| {
    let annotations = match Annotations::from_json(text, "the file") {
        Ok(annotations) => annotations,
        Err(error) => {
            assert!(error.to_string().starts_with("`the file`"), "{error}");
            return;
        }
    };
    let servers: Vec<&str> = annotations.servers().collect();
    for server in servers {
        for (tool, annotation) in annotations.tools(server) {
            for value in [json!("/a"), json!(["/a", "b"]), json!({ "c": [1] }), json!(true)] {
                let named = annotation.arguments.iter().map(|(name, _)| (name.to_string(), value.clone()));
                let arguments: Arc<Map<String, Value>> = Arc::new(named.collect());
                let Ok(plan) = annotations.plan(server, tool, &arguments) else { continue };
                for planned in plan.values() {
                    assert!(!planned.roles.is_empty());
                    assert!(arguments.contains_key(&**planned.argument));
                }
            }
        }
    }
});
