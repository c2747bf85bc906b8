//! The strict parser agrees with the library on every text that it accepts, also after the value
//! was serialized again in any form, and reads every number exactly.

#![no_main]

use ironcurtain_policy::strict::{UniqueKeys, check_numbers};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(UniqueKeys(value)) = serde_json::from_str(text) else { return };
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "the library reads it differently");
    assert_eq!(
        serde_json::from_value::<Value>(value.clone()).unwrap(),
        value,
        "the library takes it otherwise"
    );
    let written = value.to_string();
    let UniqueKeys(again) = serde_json::from_str(&written).unwrap();
    assert_eq!(again, value, "it changed when it was serialized");
    assert_eq!(check_numbers(&written), Ok(()), "a number was lost");
    let numbers = (value.as_f64(), text.trim().parse::<f64>());
    assert!(!matches!(numbers, (Some(read), Ok(nearest)) if read != nearest), "another number is closer");
});
