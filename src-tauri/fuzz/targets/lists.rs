//! Any bytes as a dynamic-lists file are parsed or rejected, and values removed by hand are never in effect.

#![no_main]

use ironcurtain_policy::DynamicLists;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    match DynamicLists::from_json(text, "the file") {
        Err(error) => assert!(error.to_string().starts_with("`the file`"), "{error}"),
        Ok(lists) => {
            let Ok(Value::Object(file)) = serde_json::from_str(text) else { panic!("read, and not JSON") };
            for (name, list) in file["lists"].as_object().unwrap() {
                let removed = list.get("manualRemovals").and_then(Value::as_array).into_iter().flatten();
                let mut removed = removed.filter_map(Value::as_str);
                assert!(!removed.any(|value| lists.get(name).iter().any(|kept| kept == value)));
            }
        }
    }
});
