//! Other rules: tried before they are in force, and written only as they were read.
//!
//! - A text that the loader refuses is never written.
//! - Rules that somebody else changed meanwhile are not overwritten.

use crate::trial::{PolicyTrial, TrialError};
use ironcurtain_config::ConfigError;
use ironcurtain_config::home::Home;
use ironcurtain_daemon::PolicyFiles;
use ironcurtain_paths::atomic_file;
use std::io;
use std::path::PathBuf;

/// Why rules are not written.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// They, or those in force, are refused.
    #[error("{0}")]
    Trial(#[from] TrialError),
    /// The file cannot be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Somebody else wrote the file.
    #[error("`{0}` changed in the meantime; nothing was written, look at the rules again")]
    Changed(PathBuf),
    /// A file cannot be written.
    #[error("`{file}` cannot be written: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// The file that the person's rules are in.
#[must_use]
pub fn rules_file(home: &Home) -> PathBuf {
    home.policy().join("compiled-policy.json")
}

/// The rules in force, for trying calls on them.
///
/// # Errors
/// [`RulesError::Trial`], naming file and place.
pub fn rules_in_force(home: &Home) -> Result<PolicyTrial, RulesError> {
    Ok(PolicyTrial::open(home.clone(), &PolicyFiles::default(), &home.person)?)
}

/// Rules as this text says them, for trying calls on them. They are read from a file that is gone afterwards.
///
/// # Errors
/// [`RulesError`], with the line of the text.
pub fn rules_of(home: &Home, text: &str) -> Result<PolicyTrial, RulesError> {
    let file = home.state.join("tried-policy.json");
    let failed = |source| RulesError::Write { file: file.clone(), source };
    atomic_file::replace(&file, text).map_err(failed)?;
    let files = PolicyFiles { policy: Some(file.clone()), ..PolicyFiles::default() };
    let opened = PolicyTrial::open(home.clone(), &files, &home.person);
    std::fs::remove_file(&file).map_err(failed)?;
    Ok(opened?)
}

/// Writes rules in the place of `before`, the text of those that the person was looking at.
///
/// # Errors
/// [`RulesError`]: the file is as it was.
pub fn write_rules(home: &Home, text: &str, before: &str) -> Result<(), RulesError> {
    rules_of(home, text)?;
    let file = rules_file(home);
    if rules_in_force(home)?.snapshot.policy_text() != before {
        return Err(RulesError::Changed(file));
    }
    atomic_file::replace(&file, text).map_err(|source| RulesError::Write { file, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn rules_are_written_as_they_were_tried_and_not_over_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/"));
        home.prepare().unwrap();
        let shipped = rules_in_force(&home).unwrap().snapshot.policy_text().to_owned();
        let rule = r#"{ "rules": [{ "name": "n", "description": "d", "principle": "p", "if": {}, "then": "escalate", "reason": "r" }] }"#;
        let refused = write_rules(&home, "{ \"rules\": 3 }", &shipped).unwrap_err().to_string();
        assert!(refused.contains("line 1"), "{refused}");
        assert!(!rules_file(&home).exists());
        write_rules(&home, rule, &shipped).unwrap();
        assert_eq!(std::fs::read_to_string(rules_file(&home)).unwrap(), rule);
        assert!(matches!(write_rules(&home, rule, &shipped), Err(RulesError::Changed(_))));
        assert_eq!(rules_of(&home, rule).unwrap().snapshot.policy.rules().len(), 1);
        assert!(!home.state.join("tried-policy.json").exists());
    }
}
