//! Words for a call's effect and for the reason for its decision.

use ironcurtain_audit::{DecidedBy, Entry, EscalationResult, Event};
use ironcurtain_config::PolicySnapshot;
use ironcurtain_policy::{Role, Verb};
use ironcurtain_visible as visible;
use serde_json::Map;

/// Maximum length of a rule name, in characters.
const MAX_NAME_LEN: usize = 60;

/// Source of words for the effects of calls.
pub(in crate::window) trait Meanings {
    /// Returns a word for the effect of an entry's call on its paths. Empty for entries that are not calls.
    fn verb_of(&self, entry: &Entry) -> &'static str;
}

impl Meanings for PolicySnapshot {
    fn verb_of(&self, entry: &Entry) -> &'static str {
        if entry.event == Event::Network {
            return "connect";
        }
        let Some(tool) = &entry.tool_name else { return "" };
        let annotation = entry.server_name.as_ref().and_then(|server| self.annotations.get(server, tool));
        let Some(annotation) = annotation else { return "call" };
        let (none, said) = (Map::new(), Verb::from_tool_name(tool));
        let roles = annotation.roles(entry.arguments.as_ref().unwrap_or(&none));
        let roles = roles.flat_map(|(_, roles)| roles.iter().copied()).filter_map(Role::verb);
        match (roles.max(), said) {
            (Some(Verb::Read), Some(Verb::List)) => "list",
            (Some(Verb::Write | Verb::Delete), Some(Verb::Move)) => "move",
            (worst, said) => worst.or(said).map_or("call", word),
        }
    }
}

/// Returns a word for a tool's effect, derived from its name only.
pub(super) fn verb_of_name(tool: &str) -> &'static str {
    Verb::from_tool_name(tool).map_or("call", word)
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::List => "list",
        Verb::Read | Verb::Follow => "read",
        Verb::Fetch | Verb::Reach => "connect",
        Verb::WorkIn
        | Verb::Create
        | Verb::Write
        | Verb::Change
        | Verb::Record
        | Verb::Commit
        | Verb::Overwrite
        | Verb::Plant => "write",
        Verb::Move => "move",
        Verb::Delete | Verb::Forget => "delete",
        Verb::Publish | Verb::Push | Verb::ForcePush | Verb::Share | Verb::Send => "send",
        Verb::Run => "run",
        Verb::AskModel | Verb::Complete | Verb::Use | Verb::Call | Verb::Sign => "call",
    }
}

/// Returns a short reason for a decision. The user's answer takes precedence over a rule.
pub(super) fn reason_of(
    by: Option<&DecidedBy>,
    rule: Option<&String>,
    answer: Option<&EscalationResult>,
) -> String {
    let answered = answer.and_then(|answer| match answer {
        EscalationResult::Approved => Some("you allowed it"),
        EscalationResult::Denied => Some("you denied it"),
        EscalationResult::TimedOut => Some("not answered in time"),
        EscalationResult::Closed => Some("the question was closed"),
        EscalationResult::Unavailable => Some("you could not be asked"),
        EscalationResult::Stopped => Some("you stopped it"),
        EscalationResult::Settled | EscalationResult::Other(_) => None,
    });
    if let Some(words) = answered {
        return words.to_owned();
    }
    let ground = match by {
        Some(DecidedBy::Rule) | None => {
            return rule.map_or_else(
                || "a rule".to_owned(),
                |rule| format!("rule `{}`", visible::line(&visible::head(rule, MAX_NAME_LEN))),
            );
        }
        Some(DecidedBy::Answer) => "your answer",
        Some(DecidedBy::Grant) => "a permission",
        Some(DecidedBy::SessionFolder) => "scratch folder",
        Some(DecidedBy::Introspection) => "lists its own folders",
        Some(DecidedBy::PassedOn) => "no rules apply",
        Some(DecidedBy::HostList) => "the server's hosts",
        Some(DecidedBy::NoRule) => "no rule allows it",
        Some(DecidedBy::ProtectedPath) => "protected folder",
        Some(DecidedBy::InvalidArgument) => "invalid argument",
        Some(DecidedBy::UnknownTool) => "tool not reviewed",
        Some(DecidedBy::Malformed) => "invalid request",
        Some(DecidedBy::Resource) => "may be a file",
        Some(DecidedBy::Network) => "network refused",
        Some(DecidedBy::OutOfReach) => "out of reach",
        Some(DecidedBy::Lockdown) => "locked down",
        Some(DecidedBy::Paused) => "agent paused",
        Some(DecidedBy::ToolChanged) => "changed tool",
        Some(DecidedBy::EarlierAnswer) => "you denied it before",
        Some(DecidedBy::TooManyQuestions) => "too many questions",
        Some(DecidedBy::Other(word)) => return visible::line(&visible::head(word, MAX_NAME_LEN)),
    };
    ground.to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Derives the effects of tools from their names only.
    pub(in super::super) struct ByName;

    impl Meanings for ByName {
        fn verb_of(&self, entry: &Entry) -> &'static str {
            entry.tool_name.as_deref().map_or("", verb_of_name)
        }
    }

    #[test]
    fn the_ground_is_the_answer_the_rule_or_a_few_words() {
        let rule = "work\u{202e}".to_owned();
        let by = |by, answer| reason_of(Some(&by), Some(&rule), answer);
        assert_eq!(by(DecidedBy::Rule, None), "rule `work\\u{202e}`");
        assert_eq!(by(DecidedBy::ProtectedPath, None), "protected folder");
        assert_eq!(by(DecidedBy::Answer, Some(&EscalationResult::TimedOut)), "not answered in time");
        assert_eq!(by(DecidedBy::Answer, Some(&EscalationResult::Approved)), "you allowed it");
        assert_eq!(by(DecidedBy::Grant, Some(&EscalationResult::Settled)), "a permission");
        assert_eq!(by(DecidedBy::Other("new".into()), None), "new");
    }

    #[test]
    fn tools_without_annotation_are_known_by_name() {
        let verbs = ["read_text_file", "list_directory", "write_file", "move_file", "git_push", "frobnicate"];
        assert_eq!(verbs.map(verb_of_name), ["read", "list", "write", "move", "send", "call"]);
    }
}
