//! Tests edited policy rules and writes them.
//!
//! - Does not write an invalid policy.
//! - Does not overwrite rules that have changed since they were read.

use crate::trial::{PolicyTrial, TrialError};
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, PolicyFiles};
use ironcurtain_paths::atomic_file;
use std::io;
use std::path::PathBuf;

/// Error from testing or writing rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The old or new rules are invalid.
    #[error("{0}")]
    Trial(#[from] TrialError),
    /// The file could not be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Another program has changed the rules.
    #[error("`{0}` has changed since it was read; nothing was written; review the rules again")]
    Changed(PathBuf),
    /// A file could not be written.
    #[error("failed to write `{file}`: {source}")]
    Write {
        /// Path of the file.
        file: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// Returns the path of the user's policy file.
#[must_use]
pub fn rules_file(home: &Home) -> PathBuf {
    home.policy().join("compiled-policy.json")
}

/// Loads the rules in effect so that calls can be tested against them.
///
/// # Errors
/// Returns [`RulesError::Trial`] if the rules are invalid. The error names the file and the line.
pub fn current_rules(home: &Home) -> Result<PolicyTrial, RulesError> {
    Ok(PolicyTrial::open(home.clone(), &PolicyFiles::default(), &home.user_home)?)
}

/// Loads rules from text so that calls can be tested against them. Uses a temporary file.
///
/// # Errors
/// Returns a [`RulesError`] if the temporary file cannot be written or the rules are invalid. The error for invalid
/// rules names the line.
pub fn parse_rules(home: &Home, text: &str) -> Result<PolicyTrial, RulesError> {
    let file = home.state.join("tried-policy.json");
    let failed = |source| RulesError::Write { file: file.clone(), source };
    atomic_file::replace(&file, text).map_err(failed)?;
    let files =
        PolicyFiles { policy: Some(file.clone()), with_managed_rules: true, ..PolicyFiles::default() };
    let opened = PolicyTrial::open(home.clone(), &files, &home.user_home);
    std::fs::remove_file(&file).map_err(failed)?;
    Ok(opened?)
}

/// Replaces the rules if the current text is still `before`, the text that the user has seen.
///
/// # Errors
/// Returns a [`RulesError`] on failure, in which case the file is unchanged.
pub fn write_rules(home: &Home, text: &str, before: &str) -> Result<(), RulesError> {
    parse_rules(home, text)?;
    let file = rules_file(home);
    if current_rules(home)?.snapshot.policy_text() != before {
        return Err(RulesError::Changed(file));
    }
    atomic_file::replace(&file, text).map_err(|source| RulesError::Write { file, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn valid_rules_are_written_unless_the_file_changed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/"));
        home.prepare().unwrap();
        let shipped = current_rules(&home).unwrap().snapshot.policy_text().to_owned();
        let rule = r#"{ "rules": [{ "name": "n", "description": "d", "principle": "p", "if": {}, "then": "escalate", "reason": "r" }] }"#;
        let refused = write_rules(&home, "{ \"rules\": 3 }", &shipped).unwrap_err().to_string();
        assert!(refused.contains("line 1"), "{refused}");
        assert!(!rules_file(&home).exists());
        write_rules(&home, rule, &shipped).unwrap();
        assert_eq!(std::fs::read_to_string(rules_file(&home)).unwrap(), rule);
        assert!(matches!(write_rules(&home, rule, &shipped), Err(RulesError::Changed(_))));
        assert_eq!(parse_rules(&home, rule).unwrap().snapshot.policy.rules().len(), 1);
        assert!(!home.state.join("tried-policy.json").exists());
    }
}
