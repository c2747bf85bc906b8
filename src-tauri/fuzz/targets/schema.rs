//! Any arguments match any schema or do not. Keywords that the schema lacks never matter.

#![no_main]

use ironcurtain_policy::check_schema;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|pair: (&str, &str)| {
    let (schema, arguments) = pair;
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return };
    let fits = check_schema(&schema, &arguments);
    if let Err(misfit) = &fits {
        assert!(!misfit.to_string().is_empty());
    }
    assert!(check_schema(&json!({}), &arguments).is_ok());
    let Value::Object(mut fields) = schema else { return };
    let had = fields.contains_key("title");
    fields.insert("title".to_owned(), json!("a title"));
    if !had {
        assert_eq!(check_schema(&Value::Object(fields), &arguments), fits);
    }
});
