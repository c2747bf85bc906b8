//! The offer of a tool for longer than a call. Pure.

use super::STANDING;
use crate::consent::{Lifetime, Offer, Reach, visible};
use ironcurtain_policy::{ToolUse, Verb, words};

/// Words in the name of a tool that runs what it is given.
const RUNS: [&str; 13] = [
    "run", "exec", "execute", "eval", "evaluate", "shell", "bash", "sh", "command", "cmd", "script", "spawn",
    "launch",
];

/// The longest value within a label, in characters. The line of the question has more of it.
const LONGEST: usize = 200;

/// The offer to let `client` go on using a tool of `server` with the values that it is bound to.
pub(in crate::consent) fn tool_offer(client: &str, server: &str, tool: &ToolUse) -> Offer {
    let show = |text: &str| visible::quoted(&visible::line(&visible::head(text, LONGEST)));
    let name = visible::line(tool.tool());
    let bounds = tool.bounds(show);
    let (label, rest) = match bounds.is_empty() {
        true => (format!("{name} of {server}"), ", whatever the call says"),
        false if tool.is_exact() => (format!("{name} of {server}, {bounds}"), ""),
        false => (format!("{name} of {server}, {bounds}"), ", whatever else the call says"),
    };
    let verb = if tool.is_exact() { Verb::Call } else { Verb::Use }.word();
    let spaced = if bounds.is_empty() { String::new() } else { format!(" {bounds}") };
    let standing = STANDING.into_iter();
    Offer {
        reach: Reach::Tool,
        label,
        sentence: format!("{client} may {verb} {name} of the server {server}{spaced}{rest}"),
        lifetimes: standing.filter(|lifetime| may_last(tool, *lifetime)).collect(),
    }
}

/// Returns `true` if a use of a tool may be allowed for so long. Of one that nobody has annotated, nobody knows what the
/// same call does another day.
pub(crate) fn may_last(tool: &ToolUse, lifetime: Lifetime) -> bool {
    match lifetime {
        Lifetime::Session => true,
        Lifetime::Always => !tool.is_exact() && may_stand(tool.tool()),
        Lifetime::Once | Lifetime::QuarterHour | Lifetime::Hour => !tool.is_exact(),
    }
}

/// Returns `true` if a tool may be allowed for good: it neither takes away, nor moves, nor runs what it is given.
fn may_stand(tool: &str) -> bool {
    let removes =
        matches!(Verb::of_tool(tool), Some(Verb::Delete | Verb::Forget | Verb::Move | Verb::Overwrite));
    !removes && !words::of(tool).iter().any(|word| RUNS.contains(&&**word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::{BoundValue, Role};

    fn bound(argument: &str, role: Role, value: &str) -> BoundValue {
        BoundValue { argument: argument.to_owned(), role, value: value.to_owned() }
    }

    #[test]
    fn it_says_what_it_is_bound_to_and_that_the_rest_is_free() {
        let values =
            vec![bound("repo", Role::GithubRepo, "ironcurtain"), bound("owner", Role::GithubOwner, "provos")];
        let got = tool_offer("Claude Code", "github", &ToolUse::new("create_issue".to_owned(), values));
        let expected = Offer {
            reach: Reach::Tool,
            label: "create_issue of github, in provos/ironcurtain".into(),
            sentence: "Claude Code may use create_issue of the server github in provos/ironcurtain, \
                whatever else the call says"
                .into(),
            lifetimes: STANDING.to_vec(),
        };
        assert_eq!(got, expected);
        let mail = vec![bound("to", Role::EmailAddress, "a b\u{202e}")];
        let sentence = tool_offer("c", "s", &ToolUse::new("send".to_owned(), mail)).sentence;
        assert_eq!(
            sentence,
            "c may use send of the server s with to \u{201c}a b\\u{202e}\u{201d}, whatever else the call says"
        );
    }

    #[test]
    fn what_takes_away_moves_or_runs_is_never_for_always() {
        let always = |name: &str| {
            let offer = tool_offer("c", "s", &ToolUse::new(name.to_owned(), Vec::new()));
            assert!(offer.lifetimes.starts_with(&[Lifetime::Session, Lifetime::QuarterHour]), "{name}");
            offer.lifetimes.contains(&Lifetime::Always)
        };
        for name in
            ["delete_issue", "move_card", "find_and_delete", "run_command", "execute-sql", "replace_all"]
        {
            assert!(!always(name), "{name}");
        }
        for name in ["create_issue", "now", "add_observations", "describe_runtime"] {
            assert!(always(name), "{name}");
        }
    }
}
