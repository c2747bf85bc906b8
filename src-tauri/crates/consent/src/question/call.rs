//! Builds the question about a call that requires approval. Pure.
//!
//! - Shows the call exactly as it would be sent, including secrets, because the user approves that data. Only the audit
//!   entry is redacted.
//! - Omits nothing. Binary content is described by type, size and hash.

use super::host_offer;
use crate::comparison::FileComparison;
use crate::consequence::{CallEffects, ConsequenceLines, consequences, text_of};
use crate::found_paths::FoundPaths;
use crate::grantable::Grantable;
use crate::offers::{THIS_CALL, call_sentence, offers, opened_folders, tool_offers};
use crate::preview::{ArgumentPreview, preview};
use crate::principal::{Principal, shown_client};
use crate::{DenialScope, Question, Verb, side_effects};
use ironcurtain_grants::GrantLimits;
use ironcurtain_paths::PathKind;
use ironcurtain_policy::{Escalation, PendingApproval, ResolvedCall, Role};
use ironcurtain_visible as visible;
use serde_json::Value;
use std::time::Duration;

/// Data needed to build a question about a call.
#[derive(Debug)]
pub struct CallQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Client and server of the call.
    pub principal: &'a Principal,
    /// Name of the tool.
    pub tool: &'a str,
    /// Decision that requires approval, including the call.
    pub escalation: &'a Escalation,
    /// Parts of the call that need approval and can be granted.
    pub grantable: &'a Grantable,
    /// Paths of the call and their targets.
    pub found: &'a FoundPaths,
    /// Comparison with the file that the call would write, or `None` if the call does not determine the new content.
    pub compared: Option<&'a FileComparison>,
    /// Calls to which a session-long denial would apply.
    pub scope: &'a DenialScope,
    /// Limits on the paths that can be granted.
    pub limits: GrantLimits<'a>,
    /// Time without user activity after which the call is denied.
    pub deadline: Duration,
}

impl CallQuestion<'_> {
    /// Builds the question.
    #[must_use]
    pub fn build(self) -> Question {
        let Grantable { requested, hosts, .. } = self.grantable;
        let values = &self.escalation.values;
        let writes_autostart = side_effects::writes_autostart_file(&self.escalation.call, self.limits.home);
        let only_once = writes_autostart
            || requested.len() != values.len()
            || values.iter().any(PendingApproval::is_for_autostart_file);
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let mut offers = offers(&client.name, self.grantable, only_once, self.limits);
        offers.extend(host_offer(&client.name, &server, hosts));
        let runs = self.escalation.call.values(Role::Command).next().is_some();
        offers.extend(tool_offers(&client.name, &server, self.grantable, runs));
        let arguments = self.escalation.call.transport_arguments();
        // Content that is not written to a file is shown with the other arguments.
        let writes = self.escalation.call.values(Role::WritePath).next().is_some();
        let compared = self.compared.map(|compared| &compared.outcome);
        let preview = if writes { preview(arguments, compared) } else { None };
        let output = consequences(&CallEffects {
            call: &self.escalation.call,
            found: self.found,
            approvals: &self.escalation.values,
            amount: preview.as_ref().map(|preview| preview.amount.clone()),
            home: self.limits.home,
        });
        // The first offer then covers more than its paths, so its label and sentence describe the whole call.
        if (writes_autostart || requested.is_empty() || requested.len() != values.len())
            && let Some(whole) = offers.first_mut()
        {
            whole.label = THIS_CALL.to_owned();
            whole.sentence = call_sentence(&client.name, &output.lines, self.limits.home);
        }
        let worst = side_effects::worst_reason(self.escalation);
        let light = !only_once
            && self.principal.sandboxed
            && !self.principal.remote
            && requested.iter().all(|approvals| matches!(approvals.target, PathKind::File { .. }))
            && output.lines.iter().all(|line| matches!(line.verb, Verb::Read | Verb::Change));
        let mut also: Vec<String> =
            writes_autostart.then(|| side_effects::AUTOSTART_WARNING.to_owned()).into_iter().collect();
        // Without a sandbox, allowing the call opens no further folder.
        if self.principal.sandboxed {
            also.extend(opened_folders(requested, self.limits.home));
        }
        also.extend(side_effects::other_reasons(self.escalation, worst));
        Question {
            fits_a_batch: light && also.is_empty(),
            also,
            id: self.id,
            denial: self.scope.words(self.limits.home),
            session: self.principal.session.clone(),
            server,
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: self.principal.remote,
            tool: Some(visible::line(self.tool)),
            with: beside(&output, preview.as_ref(), &self.escalation.call),
            consequences: output.lines,
            rule: visible::line(&worst.rule),
            reason: visible::line(&worst.reason),
            preview: preview.map(|preview| preview.preview),
            arguments: arguments.iter().map(shown).collect(),
            offers,
            client,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }
}

/// Returns an argument's name and its full value as text.
fn shown((name, value): (&String, &Value)) -> (String, String) {
    (visible::line(name), text_of(value))
}

/// Returns the arguments that no effect line or preview shows. Arguments with roles come first.
fn beside(
    output: &ConsequenceLines<'_>,
    preview: Option<&ArgumentPreview>,
    call: &ResolvedCall,
) -> Vec<(String, String)> {
    let is_told = |name: &str| {
        output.arguments.contains(&name) || preview.is_some_and(|preview| preview.argument == name)
    };
    let means = |name: &str| call.given().iter().any(|given| **call.argument(given) == *name);
    // For an annotated tool, a null argument is the same as a missing one.
    let says_something = |value: &Value| call.is_unannotated() || !value.is_null();
    let arguments = call.transport_arguments().iter();
    let mut left: Vec<(&String, &Value)> =
        arguments.filter(|(name, value)| says_something(value) && !is_told(name)).collect();
    left.sort_by_key(|(name, _)| !means(name));
    left.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_argument_is_shown_in_full_as_sent() {
        let of = |value: &Value| shown((&"a\n".to_owned(), value));
        assert_eq!(
            of(&json!("ghp_0123456789abcdefghij")),
            ("a\\u{a}".into(), "ghp_0123456789abcdefghij".into())
        );
        let long = format!("{} DROP TABLE customers", "z".repeat(100_000));
        assert_eq!(of(&json!(long)).1, long);
        assert_eq!(of(&json!({ "b": ["x\u{202e}", 1] })).1, "{\"b\":[\"x\\u{202e}\",1]}");
    }
}
