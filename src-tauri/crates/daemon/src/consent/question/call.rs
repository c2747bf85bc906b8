//! From an escalated call to the question a person sees. Pure.
//!
//! - Built from the call as it would be sent, secrets included: the person answers for what the person sees. Only the
//!   record is redacted.
//! - What is left out of a long text is told by its length. Of a call of a tool that nobody has annotated nothing is left out:
//!   all arguments stand beside its line, since any of them may be what matters.

use super::host_offer;
use crate::consent::comparison::FileComparison;
use crate::consent::consequence::{CallEffects, ConsequenceLines, consequences};
use crate::consent::grantable::Grantable;
use crate::consent::offers::{THIS_CALL, call_sentence, limit, offers, opened_beside, tool_offer};
use crate::consent::preview::{Previewed, preview};
use crate::consent::principal::{Principal, shown_client};
use crate::consent::{DenialScope, Question, Verb, beyond, visible};
use crate::grants::GrantLimits;
use crate::resolve::FoundPaths;
use ironcurtain_paths::PathKind;
use ironcurtain_policy::{Escalation, PendingApproval, ResolvedCall, Role};
use serde_json::{Map, Value};
use std::time::Duration;

/// The longest argument shown, in characters. What a line names is told there.
const LONGEST_ARGUMENT: usize = 20_000;
/// The part of an argument that stands beside the lines; the details have all of it.
const LONGEST_BESIDE: usize = 200;
/// The number of arguments that are shown.
const MOST_ARGUMENTS: usize = 50;

/// A question about a call, in its parts.
#[derive(Debug)]
pub struct CallQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Who asks, of which server.
    pub principal: &'a Principal,
    /// The tool.
    pub tool: &'a str,
    /// The judge's word.
    pub escalation: &'a Escalation,
    /// The things that it is asked about, as they can be granted.
    pub grantable: &'a Grantable,
    /// The things found at each of its paths.
    pub found: &'a FoundPaths,
    /// The file that it writes as it would become, where that can be told.
    pub compared: Option<&'a FileComparison>,
    /// The scope of a no for the rest of the session.
    pub scope: &'a DenialScope,
    /// The limits of what may be granted.
    pub limits: GrantLimits<'a>,
    /// The time for which the question waits.
    pub deadline: Duration,
}

impl CallQuestion<'_> {
    /// The question, as the person sees it.
    #[must_use]
    pub fn build(self) -> Question {
        let Grantable { requested, hosts, tool, .. } = self.grantable;
        let values = &self.escalation.values;
        let only_once =
            requested.len() != values.len() || values.iter().any(PendingApproval::is_about_a_start);
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let mut offers = offers(&client.name, self.grantable, only_once, self.limits);
        offers.extend(host_offer(&client.name, &server, hosts));
        offers.extend(tool.as_ref().map(|tool| tool_offer(&client.name, &server, tool)));
        limit(&mut offers, self.principal);
        let arguments = self.escalation.call.transport_arguments();
        // What is written elsewhere than to a file is told as any other argument is.
        let writes = self.escalation.call.values(Role::WritePath).next().is_some();
        let compared = self.compared.map(|compared| &compared.outcome);
        let preview = if writes { preview(arguments, compared) } else { None };
        let drawn = consequences(&CallEffects {
            call: &self.escalation.call,
            found: self.found,
            asked: &self.escalation.values,
            amount: preview.as_ref().map(|preview| preview.amount.clone()),
        });
        // What is no path is allowed with the call, and says what it does.
        if (requested.is_empty() || requested.len() != values.len())
            && let Some(whole) = offers.first_mut()
        {
            whole.label = THIS_CALL.to_owned();
            whole.sentence = call_sentence(&client.name, &drawn.lines, self.limits.home);
        }
        let worst = beyond::worst_reason(self.escalation);
        let light = !only_once
            && self.principal.sandboxed
            && !self.principal.remote
            && requested.iter().all(|asked| matches!(asked.target, PathKind::File { .. }))
            && drawn.lines.iter().all(|line| matches!(line.verb, Verb::Read | Verb::Change));
        let mut also = beyond::runs_later(&self.escalation.call, self.limits.home);
        // Without a sandbox everything is open as it is, or nothing is.
        if self.principal.sandboxed {
            also.extend(opened_beside(requested, self.limits.home));
        }
        also.extend(beyond::other_reasons(self.escalation, worst));
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
            with: if self.escalation.call.is_unannotated() {
                whole(arguments)
            } else {
                beside(&drawn, preview.as_ref(), &self.escalation.call)
            },
            consequences: drawn.lines,
            rule: visible::line(&worst.rule),
            reason: visible::line(&worst.reason),
            preview: preview.map(|preview| preview.shown),
            arguments: if self.escalation.call.is_unannotated() {
                whole(arguments)
            } else {
                at_most(arguments.iter(), LONGEST_ARGUMENT)
            },
            offers,
            client,
            deadline: self.deadline,
        }
    }
}

/// All arguments, in full. A question that nobody could read is not asked.
fn whole(arguments: &Map<String, Value>) -> Vec<(String, String)> {
    arguments.iter().map(|(name, value)| (visible::line(name), shown(value, usize::MAX))).collect()
}

/// The first of some arguments, each cut to so many characters, and how many more there are.
fn at_most<'a>(
    mut all: impl Iterator<Item = (&'a String, &'a Value)>,
    longest: usize,
) -> Vec<(String, String)> {
    let first = all.by_ref().take(MOST_ARGUMENTS);
    let mut shown: Vec<(String, String)> =
        first.map(|(name, value)| argument(name, value, longest)).collect();
    match all.count() {
        0 => {}
        more => shown.push(("…".to_owned(), format!("({more} arguments more)"))),
    }
    shown
}

fn argument(name: &str, value: &Value, longest: usize) -> (String, String) {
    (visible::line(&visible::head(name, LONGEST_BESIDE)), shown(value, longest))
}

fn shown(value: &Value, longest: usize) -> String {
    let shown = |text: &str| visible::lines(&visible::head(text, longest));
    match value {
        Value::String(text) => shown(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            shown(&value.to_string())
        }
    }
}

/// The arguments that neither a line nor the preview tells; those with a meaning first.
fn beside(
    drawn: &ConsequenceLines<'_>,
    preview: Option<&Previewed>,
    call: &ResolvedCall,
) -> Vec<(String, String)> {
    let is_told = |name: &str| {
        drawn.arguments.contains(&name) || preview.is_some_and(|preview| preview.argument == name)
    };
    let means = |name: &str| call.given().iter().any(|given| **call.argument(given) == *name);
    let arguments = call.transport_arguments().iter();
    let mut left: Vec<(&String, &Value)> =
        arguments.filter(|(name, value)| !value.is_null() && !is_told(name)).collect();
    left.sort_by_key(|(name, _)| !means(name));
    at_most(left.into_iter(), LONGEST_BESIDE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_argument_is_shown_as_it_would_be_sent_and_a_long_one_says_how_long_it_is() {
        let token = argument("token", &json!("ghp_0123456789abcdefghij"), LONGEST_ARGUMENT);
        assert_eq!(token, ("token".into(), "ghp_0123456789abcdefghij".into()));
        let (_, long) = argument("a", &json!("z".repeat(2_001)), 2_000);
        assert!(long.ends_with("z … (1 characters more)"), "{long}");
    }

    #[test]
    fn of_many_arguments_the_first_are_shown_and_the_rest_are_counted() {
        let all: Map<String, Value> = (0..53).map(|n| (format!("a{n:02}"), json!(n))).collect();
        let shown = at_most(all.iter(), 10);
        assert_eq!((shown.len(), shown[0].clone()), (51, ("a00".into(), "0".into())));
        assert_eq!(shown[50], ("…".into(), "(3 arguments more)".into()));
    }
}
