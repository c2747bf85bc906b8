//! An entry as it waits to be written: its text, but for what only the writer knows.

use crate::{AuditError, DecidedBy, Entry, Event};
use std::fmt::Write as _;

/// The room that most entries need, in bytes.
const USUAL: usize = 768;

/// An entry that is not in the log yet.
#[derive(Debug)]
pub struct Pending {
    /// Its fields, from `event` on, as an object.
    object: String,
    /// The policy of a decision, which is not among the fields.
    policy: Option<String>,
    /// A person decided it.
    pub(super) persons: bool,
}

impl Pending {
    /// Shortens an entry and turns it into text.
    ///
    /// # Errors
    /// [`AuditError::Write`], when it is no JSON.
    pub fn of(mut entry: Entry) -> Result<Self, AuditError> {
        entry.shorten();
        entry.fold();
        (entry.seq, entry.timestamp, entry.prev) = (0, 0, None);
        let policy = matches!(entry.event, Event::Decision | Event::Question)
            .then(|| entry.policy_hash.take())
            .flatten();
        let mut object = Vec::with_capacity(USUAL);
        serde_json::to_writer(&mut object, &entry).map_err(|e| AuditError::Write(e.to_string()))?;
        let object = String::from_utf8(object).map_err(|e| AuditError::Write(e.to_string()))?;
        Ok(Self { object, policy, persons: entry.event.is_a_persons() })
    }

    /// The fields without the braces around them.
    fn fields(&self) -> &str {
        self.object.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default()
    }

    /// Writes the line up to its hash. The policy is named where it is not the one of the decision before.
    pub(super) fn write(
        &self,
        line: &mut String,
        (seq, timestamp): (u64, u64),
        prev: Option<&str>,
        policy: &mut Option<String>,
    ) {
        // Writing to a string cannot fail; hashes have nothing to escape.
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
    /// Leaves out what another field says as well: paths that are arguments, and the ground that the rule's name
    /// tells, and the grant that the reason names.
    fn fold(&mut self) {
        if let Some(decision) = &mut self.policy_decision
            && let Some(by) = decision.by.take()
            && decision.ground().as_ref() != Some(&by)
        {
            decision.by = Some(by);
        }
        if self.grant_id.is_some() && self.grant_id == self.granting() {
            self.grant_id = None;
        }
        let Some(arguments) = &self.arguments else { return };
        let name = |path: &String| {
            let (name, _) = arguments.iter().find(|(_, value)| value.as_str() == Some(path))?;
            Some(name.clone())
        };
        if let Some(at) = self.paths.iter().map(name).collect::<Option<Vec<_>>>() {
            (self.at, self.paths) = (at, Vec::new());
        }
    }

    /// Fills in what [`fold`](Self::fold) left out.
    pub(super) fn unfold(&mut self) {
        let arguments = self.arguments.as_ref();
        let value = |name: &String| Some(arguments?.get(name)?.as_str()?.to_owned());
        if self.paths.is_empty() {
            self.paths = self.at.iter().filter_map(value).collect();
        }
        self.at.clear();
        if let Some(decision) = &mut self.policy_decision {
            decision.by = decision.ground();
        }
        self.grant_id = self.grant_id.take().or_else(|| self.granting());
    }

    /// The grant that the reason of a decision names.
    fn granting(&self) -> Option<String> {
        let decision = self.policy_decision.as_ref().filter(|d| d.ground() == Some(DecidedBy::Grant))?;
        let id = decision.reason.strip_prefix("grant `")?.strip_suffix('`')?;
        id.bytes().all(|b| b.is_ascii_alphanumeric()).then(|| id.to_owned())
    }
}
