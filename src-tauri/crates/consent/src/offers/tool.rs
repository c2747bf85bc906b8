//! Offers to allow a tool for longer than one call. Pure.

use super::request::request_offer;
use super::{ALL_LIFETIMES, LIMITED_LIFETIMES, join_words};
use crate::grantable::Grantable;
use crate::{Lifetime, Offer, Reach};
use ironcurtain_policy::{JudgedRequest, Role, ToolUse, Verb, words};
use ironcurtain_visible as visible;

/// Words in the names of tools that execute their input.
const RUNS: [&str; 13] = [
    "run", "exec", "execute", "eval", "evaluate", "shell", "bash", "sh", "command", "cmd", "script", "spawn",
    "launch",
];

/// Maximum length of a value within a label, in characters. The effect line shows more of it.
const MAX_LEN: usize = 200;

/// Returns the offers that let `client` use tools of `server` again, narrowest first. `runs` is `true` if the tool
/// executes its input.
pub(crate) fn tool_offers(client: &str, server: &str, grantable: &Grantable, runs: bool) -> Vec<Offer> {
    let own = grantable.tool.as_ref().map(|tool| tool_offer(client, server, tool, runs));
    let mut offers: Vec<Offer> = own.into_iter().collect();
    let Some(tool) = grantable.tools() else { return offers };
    let offer = |reach, label: String, what: String, last: &[Lifetime]| Offer {
        reach,
        label,
        sentence: format!("{client} may use {what} of the server {server}, with any arguments"),
        lifetimes: last.to_vec(),
    };
    let name = visible::line(tool.tool());
    let command = if runs { " (any command)" } else { "" };
    if !tool.values().is_empty() {
        // The behaviour of an unannotated tool may change, and so may the recipient that a value names.
        offers.push(offer(Reach::AnyUse, format!("any use of {name}{command}"), name, &LIMITED_LIFETIMES));
    }
    if grantable.only_reads {
        let what = "every tool that only reads";
        offers.push(offer(
            Reach::ReadingTools,
            format!("{what}, of {server}"),
            what.to_owned(),
            &ALL_LIFETIMES,
        ));
    }
    offers.push(offer(
        Reach::AllTools,
        format!("every tool of {server}"),
        "every tool".to_owned(),
        &LIMITED_LIFETIMES,
    ));
    offers
}

/// Returns the offer that lets `client` use the tool again with the same values. `runs` is `true` if the tool executes
/// its input.
fn tool_offer(client: &str, server: &str, tool: &ToolUse, runs: bool) -> Offer {
    if let Some(request) = JudgedRequest::parse(tool.tool()) {
        return request_offer(client, server, (request, tool));
    }
    let name = visible::line(tool.tool());
    let (label, what) = match (bound_text(tool), values(tool)) {
        _ if tool.is_exact() => {
            let exactly = format!("this exact call of {name}, any number of times");
            (exactly.clone(), format!("repeat {exactly}"))
        }
        (Some(text), _) => (text.clone(), format!("send {text}, with {name}")),
        (None, Some(values)) => {
            (format!("any use of {name} {values}"), format!("use {name} {values}, with any other arguments"))
        }
        (None, None) if runs => {
            (format!("any use of {name} (any command)"), format!("run any command with {name}"))
        }
        (None, None) => (format!("any use of {name}"), format!("use {name} with any arguments")),
    };
    let may_be = |lifetime: &Lifetime| may_last(tool, *lifetime) && !(runs && *lifetime == Lifetime::Always);
    Offer {
        reach: Reach::Tool,
        label,
        sentence: format!("{client} may {what}, through the server {server}"),
        lifetimes: ALL_LIFETIMES.into_iter().filter(may_be).collect(),
    }
}

/// Returns a phrase for the fixed values, or `None` if the tool has none.
fn values(tool: &ToolUse) -> Option<String> {
    let show = |text: &str| visible::quoted(&visible::line(&visible::head_and_tail(text, MAX_LEN)));
    Some(tool.describe_values(show)).filter(|bounds| !bounds.is_empty())
}

/// Returns a phrase such as "this exact text to x, any number of times" if a text and its recipients are the only fixed
/// values.
fn bound_text(tool: &ToolUse) -> Option<String> {
    let of = |role| tool.values().iter().filter(move |bound| bound.role == role);
    let only = of(Role::EmailAddress).count() + of(Role::EmailBody).count() == tool.values().len();
    of(Role::EmailBody).next().filter(|_| only)?;
    let show = |text: &str| visible::quoted(&visible::line(&visible::head_and_tail(text, MAX_LEN)));
    let people: Vec<String> = of(Role::EmailAddress).map(|bound| show(&bound.value)).collect();
    let to = if people.is_empty() { String::new() } else { format!(" to {}", join_words(&people)) };
    Some(format!("this exact text{to}, any number of times"))
}

/// Returns `true` if the tool can be granted for this lifetime. An unannotated tool cannot be granted permanently,
/// because its behaviour is unknown and may change.
pub fn may_last(tool: &ToolUse, lifetime: Lifetime) -> bool {
    match lifetime {
        Lifetime::Session => true,
        Lifetime::Always => !tool.is_exact() && may_be_permanent(tool.tool()),
        Lifetime::Once | Lifetime::QuarterHour | Lifetime::Hour => !tool.is_exact(),
    }
}

/// Returns `true` if the tool can be granted permanently: its name does not suggest that it deletes, moves, overwrites
/// or executes anything.
fn may_be_permanent(tool: &str) -> bool {
    let removes = matches!(
        Verb::from_tool_name(tool),
        Some(Verb::Delete | Verb::Forget | Verb::Move | Verb::Overwrite)
    );
    !removes && !words::split_name(tool).iter().any(|word| RUNS.contains(&&**word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::{BoundValue, Role};

    fn bound(argument: &str, role: Role, value: &str) -> BoundValue {
        BoundValue { argument: argument.to_owned(), role, value: value.to_owned() }
    }

    #[test]
    fn a_tool_offer_names_fixed_values_and_free_arguments() {
        let values =
            vec![bound("repo", Role::GithubRepo, "ironcurtain"), bound("owner", Role::GithubOwner, "provos")];
        let offer = |tool: &ToolUse, runs| {
            let offer = tool_offer("c", "s", tool, runs);
            (offer.label, offer.sentence)
        };
        let issue = ToolUse::new("create_issue".to_owned(), values);
        let got = tool_offer("Claude Code", "github", &issue, false);
        let expected = Offer {
            reach: Reach::Tool,
            label: "any use of create_issue in provos/ironcurtain".into(),
            sentence: "Claude Code may use create_issue in provos/ironcurtain, with any other arguments, through the \
                server github"
                .into(),
            lifetimes: ALL_LIFETIMES.to_vec(),
        };
        assert_eq!(got, expected);
        let to = || bound("to", Role::EmailAddress, "a b\u{202e}");
        let text = bound("body", Role::EmailBody, "Hello");
        assert_eq!(
            offer(&ToolUse::new("send".to_owned(), vec![to(), text]), false),
            (
                "this exact text to \u{201c}a b\\u{202e}\u{201d}, any number of times".into(),
                "c may send this exact text to \u{201c}a b\\u{202e}\u{201d}, any number of times, with send, through the server s"
                    .into()
            )
        );
        assert_eq!(
            offer(&ToolUse::new("send".to_owned(), vec![to()]), false).0,
            "any use of send with to \u{201c}a b\\u{202e}\u{201d}"
        );
        let any = |runs| offer(&ToolUse::new("do".to_owned(), Vec::new()), runs);
        assert_eq!(
            any(false),
            ("any use of do".into(), "c may use do with any arguments, through the server s".into())
        );
        assert_eq!(
            any(true),
            (
                "any use of do (any command)".into(),
                "c may run any command with do, through the server s".into()
            )
        );
    }

    #[test]
    fn tools_of_a_server_are_offered_together() {
        let offered = |tool: &str, values: Vec<BoundValue>, only_reads| {
            let tool = Some(ToolUse::new(tool.to_owned(), values));
            let grantable = Grantable { tool, only_reads, ..Grantable::default() };
            let offers = tool_offers("c", "sqlite", &grantable, false);
            // Each offer grants exactly one permission.
            assert!(offers.iter().all(|offer| grantable.permissions_for(offer.reach).len() == 1));
            offers.into_iter().map(|offer| (offer.reach, offer.label, offer.lifetimes)).collect::<Vec<_>>()
        };
        let all = (Reach::AllTools, "every tool of sqlite".to_owned(), LIMITED_LIFETIMES.to_vec());
        let own = |name: &str| (Reach::Tool, format!("any use of {name}"), ALL_LIFETIMES.to_vec());
        let reading = "every tool that only reads, of sqlite".to_owned();
        let reading = (Reach::ReadingTools, reading, ALL_LIFETIMES.to_vec());
        assert_eq!(offered("list_tables", Vec::new(), true), [own("list_tables"), reading, all.clone()]);
        assert_eq!(offered("append", Vec::new(), false), [own("append"), all.clone()]);
        let whole = vec![bound("", Role::None, "{}")];
        let exact = "this exact call of zap, any number of times".to_owned();
        let exact = (Reach::Tool, exact, vec![Lifetime::Session]);
        let any = (Reach::AnyUse, "any use of zap".to_owned(), LIMITED_LIFETIMES.to_vec());
        assert_eq!(offered("zap", whole, false), [exact, any, all]);
        let resource = vec![bound("uri", Role::ResourceUri, "a://b")];
        assert_eq!(offered("resources/read", resource, false).len(), 1, "a resource is not a tool");
    }

    #[test]
    fn tools_that_delete_move_or_run_are_never_offered_for_always() {
        let always = |name: &str| {
            let offer = tool_offer("c", "s", &ToolUse::new(name.to_owned(), Vec::new()), false);
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
        let runs = tool_offer("c", "s", &ToolUse::new("now".to_owned(), Vec::new()), true);
        assert!(!runs.lifetimes.contains(&Lifetime::Always), "by the role of its argument");
    }
}
