//! What is read strictly is what everybody reads, and is read so again however it is written down.

#![no_main]

use ironcurtain_policy::strict::Once;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(Once(value)) = serde_json::from_str(text) else { return };
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "the library reads it otherwise");
    assert_eq!(serde_json::from_value::<Value>(value.clone()).unwrap(), value, "the library takes it otherwise");
    let Once(again) = serde_json::from_str(&value.to_string()).unwrap();
    assert_eq!(again, value, "written down it is another");
});
