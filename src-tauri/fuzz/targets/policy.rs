//! Any bytes as a compiled-policy file are parsed or rejected.
//!
//! - Names in a parsed policy are unique; an error names the file.

#![no_main]

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, DynamicLists, Policy, ProtectedPaths, defaults};
use ironcurtain_policy_tools::lint::lint;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|text: &str| {
    let home = CanonicalPath::assume_canonical("/home/ann").unwrap();
    let within = |raw: &str| {
        let absolute = raw.strip_prefix('~').map_or_else(|| raw.to_owned(), |rest| format!("{home}{rest}"));
        CanonicalPath::assume_canonical(&absolute).map_err(|error| error.to_string().into())
    };
    let lists =
        DynamicLists::from_json(r#"{"lists":{"hosts":{"values":["a.org","*.b.org"]}}}"#, "l").unwrap();
    match Policy::from_json(text, "the file", &within, &lists) {
        Ok(policy) => {
            let names: BTreeSet<&str> = policy.rules().iter().map(|rule| rule.name().as_ref()).collect();
            assert_eq!(names.len(), policy.rules().len());
            assert!(!names.contains(""));
            let annotations = Annotations::from_json(defaults::ANNOTATIONS_JSON, "a").unwrap();
            // Examples match their rule or reject the file, without a panic.
            if let Err(error) = policy.check_examples("the file", &annotations, &home) {
                assert!(error.to_string().starts_with("`the file`, line "), "{error}");
            }
            let protected: ProtectedPaths =
                ironcurtain_paths::protected::secrets(&home).into_iter().collect();
            for finding in lint(&policy, &annotations, &protected, &home) {
                assert!(!finding.to_string().is_empty());
            }
        }
        Err(error) => assert!(error.to_string().starts_with("`the file`"), "{error}"),
    }
});
