//! What is read strictly is what the library reads, and stays so when it is taken apart.

#![no_main]

use ironcurtain_policy::strict::Once;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(Once(value)) = serde_json::from_str(text) else { return };
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "the library reads it otherwise");
    assert_eq!(serde_json::from_value::<Value>(value.clone()).unwrap(), value, "the library takes it otherwise");
});
