//! Formats proposed annotations and the list of servers, as text and as JSON.

use crate::text_lines::{TextLines, counted};
use ironcurtain_admin::annotate::{AnnotationChange, AnnotationChanges, AnnotationsFile, Draft, DraftTool};
use ironcurtain_admin::login::LoginStates;
use ironcurtain_admin::server_summary::UnannotatedCalls;
use ironcurtain_config::{AutostartSettings, GitConfigSettings, Sandbox, Server, Servers};
use ironcurtain_packages::{PackageState, Packages};
use ironcurtain_policy_tools::propose::{Confidence, Proposal, ProposedArgument};
use ironcurtain_visible as visible;
use serde_json::{Value, json};

/// Maximum length of a displayed reason in characters.
const MAX_REASON_LEN: usize = 160;

/// Function that returns how a tool's calls are handled while the tool has no annotation.
type DescribeCalls<'a> = &'a dyn Fn(&str) -> UnannotatedCalls;

/// Formats the proposed annotations of each tool, marking guesses and changes.
pub fn text(draft: &Draft, changes: &AnnotationChanges, describe_calls: DescribeCalls<'_>) -> TextLines {
    let mut out = TextLines::default();
    for tool in &draft.tools {
        tool_text(&mut out, (draft, tool), changes.change_of(&tool.listed.name), describe_calls);
    }
    for name in &changes.unlisted_kept {
        out.line(format_args!("{name}: no longer listed by the server; its annotation is kept"));
    }
    for name in &changes.unlisted_removed {
        out.line(format_args!("{name}: no longer listed by the server; its annotation will be dropped"));
    }
    let count_with = |confidence: Confidence| {
        draft.tools.iter().flat_map(arguments).filter(|a| a.confidence == confidence).count()
    };
    let (unknown, unsure) = (count_with(Confidence::Unknown), count_with(Confidence::Low));
    out.line(summary(draft, describe_calls));
    if unsure > 0 {
        out.line(format_args!("{} of these are guesses (marked ?).", counted(unsure, "argument")));
    }
    if unknown > 0 {
        out.line(format_args!(
            "CHECK {} (marked ??): the meaning is unknown, and no rule checks the role `none`.",
            counted(unknown, "argument")
        ));
    }
    if changes.is_empty() {
        out.line("All of this is already saved.");
    } else if changes.same_descriptions == Some(false) {
        out.line("The server describes its tools differently than when they were annotated.");
    }
    out
}

/// Returns a summary with the number of annotated tools, and of other tools grouped by how their calls are handled.
fn summary(draft: &Draft, describe_calls: DescribeCalls<'_>) -> String {
    let omitted = draft.tools.iter().filter(|tool| omission_reason(tool).is_some());
    let call_outcomes: Vec<UnannotatedCalls> =
        omitted.map(|tool| describe_calls(&tool.listed.name)).collect();
    let mut words = vec![format!("{} understood", draft.tools.len() - call_outcomes.len())];
    let mut count = |matches: &dyn Fn(&UnannotatedCalls) -> bool, what: &str| {
        let number = call_outcomes.iter().filter(|calls| matches(calls)).count();
        if number > 0 {
            words.push(format!("{number} {what}"));
        }
    };
    count(&|calls| *calls == UnannotatedCalls::Ask, "will ask every time");
    count(
        &|calls| *calls == UnannotatedCalls::Allowed,
        "will ask every time once the server reaches anything",
    );
    count(&|calls| *calls == UnannotatedCalls::Refused, "refused");
    count(&|calls| matches!(calls, UnannotatedCalls::Denied(_)), "denied by your policy");
    format!("{}: {}.", counted(draft.tools.len(), "tool"), words.join(", "))
}

fn tool_text(
    out: &mut TextLines,
    (draft, tool): (&Draft, &DraftTool),
    change: Option<&AnnotationChange>,
    describe_calls: DescribeCalls<'_>,
) {
    let summary = tool.summary();
    let dash = if summary.is_empty() { "" } else { " - " };
    out.line(format_args!("{}{dash}{summary}", tool.listed.name));
    if let Some(reason) = omission_reason(tool) {
        let calls = describe_calls(&tool.listed.name);
        let decide = if tool.is_unclear {
            format!(" To decide now: ironcurtain servers annotate {}", draft.server)
        } else {
            String::new()
        };
        out.line(format_args!("  {}: {calls}, because {reason}.{decide}", tool.listed.name));
    }
    let width = arguments(tool).map(|argument| argument.name.chars().count()).max().unwrap_or_default();
    for argument in arguments(tool) {
        let mark = match argument.confidence {
            Confidence::Unknown => "??",
            Confidence::Low => " ?",
            Confidence::Medium | Confidence::High => "  ",
        };
        let reason = visible::head(&argument.reason, MAX_REASON_LEN);
        let (name, roles, sure) = (&argument.name, roles(argument).join(", "), argument.confidence.name());
        out.line(format_args!("{mark} {name:width$}  {roles}  ({sure}: {reason})"));
    }
    if let Proposal::Annotated { descends: Some(true), .. } = &tool.proposal {
        out.line("  a folder includes everything in it");
    }
    match change {
        Some(AnnotationChange::Changed { schema_changed, arguments }) => {
            if *schema_changed {
                out.line("  CHANGED by the server since it was annotated: its argument schema");
            }
            arguments.iter().for_each(|words| out.line(format_args!("  change: {words}")));
        }
        Some(AnnotationChange::Removed) => out.line("  change: its annotation will be dropped"),
        Some(AnnotationChange::Added | AnnotationChange::Unchanged | AnnotationChange::StillUnannotated)
        | None => {}
    }
    out.line("");
}

/// Returns the proposal as JSON.
pub fn json(file: &AnnotationsFile, draft: &Draft, changes: &AnnotationChanges) -> Value {
    let tools = draft.tools.iter().zip(&changes.tools).map(|(tool, (_, change))| {
        let arguments = arguments(tool).map(|argument| {
            json!({
                "name": argument.name,
                "roles": roles(argument),
                "confidence": argument.confidence.name(),
                "reason": argument.reason,
            })
        });
        json!({
            "name": tool.listed.name,
            "leftOut": omission_reason(tool),
            "arguments": arguments.collect::<Vec<_>>(),
            "change": change_json(change),
        })
    });
    json!({
        "server": draft.server,
        "file": file.path().display().to_string(),
        "tools": tools.collect::<Vec<_>>(),
        "unseen": changes.unlisted_kept,
        "gone": changes.unlisted_removed,
        "unchanged": changes.same_descriptions,
        "annotations": draft.to_json(),
    })
}

fn change_json(change: &AnnotationChange) -> Value {
    match change {
        AnnotationChange::Added => json!({ "kind": "new" }),
        AnnotationChange::Unchanged => json!({ "kind": "same" }),
        AnnotationChange::Changed { schema_changed, arguments } => {
            json!({ "kind": "other", "schemaChanged": schema_changed, "arguments": arguments })
        }
        AnnotationChange::Removed => json!({ "kind": "left-out" }),
        AnnotationChange::StillUnannotated => json!({ "kind": "still-left-out" }),
    }
}

/// Formats the list of configured servers.
pub fn list(
    servers: &Servers,
    annotated: &AnnotationsFile,
    (packages, logins): (&Packages, &LoginStates),
) -> TextLines {
    let mut out = TextLines::default();
    for server in servers.iter() {
        let sandbox_state = sandbox_state(server, annotated);
        let tools = match annotated.tools(&server.name) {
            0 => format!("not annotated: run `ironcurtain servers annotate {}`", server.name),
            count => format!("{} annotated", counted(count, "tool")),
        };
        let location = server.remote.as_ref().map_or_else(|| server.command.clone(), ToString::to_string);
        let package = match packages.state(server) {
            PackageState::NoPackage => String::new(),
            PackageState::Installed { version, .. } => format!("  version {version}"),
            PackageState::NotReady(problem) => format!("  NOT READY: {problem}"),
        };
        let login = logins.state_of(server).map_or_else(String::new, |login| format!("  {login}"));
        out.line(format_args!("{}  {sandbox_state}  {tools}  {location}{package}{login}", server.name));
    }
    out
}

/// Returns a description of how a server is contained and which of its settings differ from the defaults.
fn sandbox_state(server: &Server, annotated: &AnnotationsFile) -> String {
    if server.remote.is_some() {
        return "REMOTE, cannot be sandboxed".to_owned();
    }
    let Sandbox::Sandboxed(settings) = &server.sandbox else { return "NO SANDBOX".to_owned() };
    let strict = match settings.autostart {
        AutostartSettings::Strict => ", leaves no autostart files",
        AutostartSettings::Listed => "",
    };
    let guarded = match settings.git_config.unwrap_or_else(|| annotated.git_config(&server.name)) {
        GitConfigSettings::Guarded => ", git config guarded",
        GitConfigSettings::Closed => "",
    };
    format!("sandboxed{strict}{guarded}")
}

fn arguments(tool: &DraftTool) -> impl Iterator<Item = &ProposedArgument> {
    match &tool.proposal {
        Proposal::Annotated { arguments, .. } => arguments.as_slice(),
        Proposal::Unsupported { .. } => &[],
    }
    .iter()
}

fn omission_reason(tool: &DraftTool) -> Option<&str> {
    match &tool.proposal {
        Proposal::Unsupported { reason } => Some(reason),
        Proposal::Annotated { .. } => None,
    }
}

fn roles(argument: &ProposedArgument) -> Vec<&'static str> {
    argument.roles.iter().map(|role| role.name()).collect()
}
