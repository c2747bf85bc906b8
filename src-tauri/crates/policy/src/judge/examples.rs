//! Checks the rules' examples after a policy is loaded.
//!
//! - Paths in examples and rules are taken as written, with `~` as the user's home directory. The disk is not
//!   accessed.
//! - A rule matches an example if it covers one of the example's values, regardless of earlier rules.

use super::cover::covers_any_value;
use crate::rules::examples::Example;
use crate::{Annotations, Fact, LoadError, PlannedValue, Policy, ResolvedCall, Rule, SourceLocation};
use ironcurtain_paths::{CanonicalPath, NotCanonicalError};
use std::sync::Arc;

/// Reason an example fails.
#[derive(Debug, thiserror::Error)]
enum ExampleError {
    /// The example is under `match`, but the rule does not cover it.
    #[error("the rule does not cover this call")]
    NotCovered,
    /// The example is under `noMatch`, but the rule covers it.
    #[error("the rule covers this call")]
    Covered,
    /// The call is invalid, so no rule would apply to it.
    #[error("{0}")]
    Denied(Arc<str>),
    /// A path is not canonical.
    #[error(transparent)]
    Path(#[from] NotCanonicalError),
}

impl Policy {
    /// Checks every example against its rule. `file` is the policy's file name for error messages.
    ///
    /// # Errors
    /// Returns an error for the first example that fails, with its file, line, rule and field.
    pub fn check_examples(
        &self,
        file: &str,
        annotations: &Annotations,
        home: &CanonicalPath,
    ) -> Result<(), LoadError> {
        for rule in self.rules() {
            for example in &rule.examples {
                example.check(rule, annotations, home).map_err(|problem| LoadError::Rule {
                    location: Box::new(SourceLocation { file: file.to_owned(), line: example.line }),
                    rule: rule.name().to_string(),
                    field: example.field.clone(),
                    message: problem.to_string(),
                })?;
            }
        }
        Ok(())
    }
}

impl Example {
    fn check(
        &self,
        rule: &Rule,
        annotations: &Annotations,
        home: &CanonicalPath,
    ) -> Result<(), ExampleError> {
        let call = self.call(annotations, home)?;
        let rule = with_literal_folder(rule, home)?;
        let covers =
            rule.condition.applies_to_tool(&self.server, &self.tool) && covers_any_value(&rule, &call);
        match (self.matches, covers) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(ExampleError::NotCovered),
            (false, true) => Err(ExampleError::Covered),
        }
    }

    fn call(&self, annotations: &Annotations, home: &CanonicalPath) -> Result<ResolvedCall, ExampleError> {
        let plan = annotations.plan(&self.server, &self.tool, &self.arguments);
        let plan = plan.map_err(|denial| ExampleError::Denied(denial.reason))?;
        let fact = |value: &PlannedValue<'_>| match value.raw {
            Some(raw) if value.is_path() => normalize_lexically(raw, home).map(Fact::Path),
            Some(_) | None => Ok(Fact::Plain),
        };
        let facts = plan.values().iter().map(fact).collect::<Result<Vec<_>, _>>()?;
        plan.resolve(facts).map_err(|denial| ExampleError::Denied(denial.reason))
    }
}

/// Returns a copy of the rule whose folder is taken as written, without resolving symlinks.
fn with_literal_folder(rule: &Rule, home: &CanonicalPath) -> Result<Rule, ExampleError> {
    let mut rule = rule.clone();
    if let Some(paths) = &mut rule.condition.paths {
        paths.within = normalize_lexically(&paths.written, home)?;
    }
    Ok(rule)
}

/// Converts a path to a canonical one without accessing the disk. `~` stands for `home`.
fn normalize_lexically(raw: &str, home: &CanonicalPath) -> Result<CanonicalPath, ExampleError> {
    let rest = raw.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let absolute = rest.map(|rest| format!("{home}{rest}"));
    let absolute = absolute.as_deref().unwrap_or(raw);
    let trimmed = absolute.strip_suffix('/').filter(|trimmed| !trimmed.is_empty()).unwrap_or(absolute);
    Ok(CanonicalPath::assume_canonical(trimmed)?)
}
