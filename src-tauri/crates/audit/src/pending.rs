//! Entry that is serialized except for the fields that only the writer knows.

use crate::{AuditError, DecidedBy, Entry, Event};
use std::fmt::Write as _;

/// Initial capacity of the line in bytes, enough for most entries.
const INITIAL_CAPACITY: usize = 768;

/// Serialized entry that is not in the log yet.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Fields from `event` on, as a JSON object.
    object: String,
    /// Policy hash of a decision or question. Not in `object`, because it is written only if it changed.
    policy: Option<String>,
    /// `true` if the entry results from the user's decision. Such an entry is synced before `record` returns.
    pub(super) is_user_decision: bool,
}

impl Pending {
    /// Shortens and serializes an entry.
    ///
    /// # Errors
    /// Returns [`AuditError::Write`] if the entry cannot be serialized.
    pub fn new(mut entry: Entry) -> Result<Self, AuditError> {
        entry.shorten();
        entry.compact();
        (entry.seq, entry.timestamp, entry.prev) = (0, 0, None);
        let policy = matches!(entry.event, Event::Decision | Event::Question)
            .then(|| entry.policy_hash.take())
            .flatten();
        let mut object = Vec::with_capacity(INITIAL_CAPACITY);
        serde_json::to_writer(&mut object, &entry).map_err(|e| AuditError::Write(e.to_string()))?;
        let object = String::from_utf8(object).map_err(|e| AuditError::Write(e.to_string()))?;
        Ok(Self { object, policy, is_user_decision: entry.event.is_user_decision() })
    }

    /// Returns the contents of `object` without the braces.
    fn fields(&self) -> &str {
        self.object.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default()
    }

    /// Appends the line up to its hash. Includes the policy hash only if it differs from `policy`, the previous
    /// policy hash in the file.
    pub(super) fn write(
        &self,
        line: &mut String,
        (seq, timestamp): (u64, u64),
        prev: Option<&str>,
        policy: &mut Option<String>,
    ) {
        // Writing to a string cannot fail, and hashes need no escaping.
        let _ = write!(line, "{{\"seq\":{seq},\"timestamp\":{timestamp},{}", self.fields());
        if self.policy.is_some() && self.policy != *policy {
            policy.clone_from(&self.policy);
            let _ = write!(line, ",\"policyHash\":\"{}\"", policy.as_deref().unwrap_or_default());
        }
        if let Some(prev) = prev {
            let _ = write!(line, ",\"prev\":\"{prev}\"");
        }
    }
}

impl Entry {
    /// Removes fields that can be derived from other fields: paths that are values of arguments, a basis that the
    /// rule name implies, and a grant whose id is in the reason.
    fn compact(&mut self) {
        if let Some(decision) = &mut self.policy_decision
            && let Some(by) = decision.by.take()
            && decision.basis().as_ref() != Some(&by)
        {
            decision.by = Some(by);
        }
        if self.grant_id.is_some() && self.grant_id == self.grant_id_in_reason() {
            self.grant_id = None;
        }
        let Some(arguments) = &self.arguments else { return };
        let name = |path: &String| {
            let (name, _) = arguments.iter().find(|(_, value)| value.as_str() == Some(path))?;
            Some(name.clone())
        };
        if let Some(names) = self.paths.iter().map(name).collect::<Option<Vec<_>>>() {
            (self.path_arguments, self.paths) = (names, Vec::new());
        }
    }

    /// Restores the fields that [`Self::compact`] removed.
    pub(super) fn expand(&mut self) {
        let arguments = self.arguments.as_ref();
        let value = |name: &String| Some(arguments?.get(name)?.as_str()?.to_owned());
        if self.paths.is_empty() {
            self.paths = self.path_arguments.iter().filter_map(value).collect();
        }
        self.path_arguments.clear();
        if let Some(decision) = &mut self.policy_decision {
            decision.by = decision.basis();
        }
        self.grant_id = self.grant_id.take().or_else(|| self.grant_id_in_reason());
    }

    /// Returns the grant id in the decision's reason, if there is one.
    fn grant_id_in_reason(&self) -> Option<String> {
        let decision = self.policy_decision.as_ref().filter(|d| d.basis() == Some(DecidedBy::Grant))?;
        let id = decision.reason.strip_prefix("grant `")?.strip_suffix('`')?;
        id.bytes().all(|b| b.is_ascii_alphanumeric()).then(|| id.to_owned())
    }
}
