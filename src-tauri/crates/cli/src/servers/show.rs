//! Formats proposed annotations and the list of servers, as text and as JSON.

use crate::lines::{TextLines, counted};
use ironcurtain_admin::annotate::{AnnotationChange, AnnotationChanges, AnnotationsFile, Draft, DraftTool};
use ironcurtain_admin::introduction::UnannotatedCalls;
use ironcurtain_admin::login::LoginStates;
use ironcurtain_config::{AutostartSettings, GitConfigSettings, Sandbox, Server, Servers};
use ironcurtain_packages::{PackageState, Packages};
use ironcurtain_policy_tools::propose::{Confidence, Proposal, ProposedArgument};
use ironcurtain_visible as visible;
use serde_json::{Value, json};

/// Maximum length of a displayed reason in characters.
const REASON: usize = 160;

/// Function that returns how a tool's calls are handled while the tool has no annotation.
type Fate<'a> = &'a dyn Fn(&str) -> UnannotatedCalls;

/// Formats the proposed annotations of each tool, marking guesses and changes.
pub fn text(draft: &Draft, changes: &AnnotationChanges, fate: Fate<'_>) -> TextLines {
    let mut out = TextLines::default();
    for tool in &draft.tools {
        tool_text(&mut out, (draft, tool), changes.of(&tool.listed.name), fate);
    }
    for name in &changes.unseen {
        out.line(format_args!("{name}: no longer listed by the server; its annotation is kept"));
    }
    for name in &changes.gone {
        out.line(format_args!("{name}: no longer listed by the server; its annotation will be dropped"));
    }
    let sure_as = |confidence: Confidence| {
        draft.tools.iter().flat_map(arguments).filter(|a| a.confidence == confidence).count()
    };
    let (unknown, unsure) = (sure_as(Confidence::Unknown), sure_as(Confidence::Low));
    out.line(summary(draft, fate));
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
    } else if changes.unchanged == Some(false) {
        out.line("The server describes its tools differently than when they were annotated.");
    }
    out
}

/// Returns a summary with the number of annotated tools, and of other tools grouped by how their calls are handled.
fn summary(draft: &Draft, fate: Fate<'_>) -> String {
    let left_out = draft.tools.iter().filter(|tool| left_out(tool).is_some());
    let fates: Vec<UnannotatedCalls> = left_out.map(|tool| fate(&tool.listed.name)).collect();
    let mut words = vec![format!("{} understood", draft.tools.len() - fates.len())];
    let mut count = |is_it: &dyn Fn(&UnannotatedCalls) -> bool, what: &str| {
        let number = fates.iter().filter(|fate| is_it(fate)).count();
        if number > 0 {
            words.push(format!("{number} {what}"));
        }
    };
    count(&|fate| *fate == UnannotatedCalls::Asked, "will ask every time");
    count(&|fate| *fate == UnannotatedCalls::Free, "will ask every time once the server reaches anything");
    count(&|fate| *fate == UnannotatedCalls::Refused, "refused");
    count(&|fate| matches!(fate, UnannotatedCalls::Denied(_)), "denied by your policy");
    format!("{}: {}.", counted(draft.tools.len(), "tool"), words.join(", "))
}

fn tool_text(
    out: &mut TextLines,
    (draft, tool): (&Draft, &DraftTool),
    change: Option<&AnnotationChange>,
    fate: Fate<'_>,
) {
    let summary = tool.summary();
    let dash = if summary.is_empty() { "" } else { " - " };
    out.line(format_args!("{}{dash}{summary}", tool.listed.name));
    if let Some(reason) = left_out(tool) {
        let fate = fate(&tool.listed.name);
        let decide = if tool.is_unclear {
            format!(" To decide now: ironcurtain servers annotate {}", draft.server)
        } else {
            String::new()
        };
        out.line(format_args!("  {}: {fate}, because {reason}.{decide}", tool.listed.name));
    }
    let width = arguments(tool).map(|argument| argument.name.chars().count()).max().unwrap_or_default();
    for argument in arguments(tool) {
        let mark = match argument.confidence {
            Confidence::Unknown => "??",
            Confidence::Low => " ?",
            Confidence::Medium | Confidence::High => "  ",
        };
        let reason = visible::head(&argument.reason, REASON);
        let (name, roles, sure) = (&argument.name, roles(argument).join(", "), argument.confidence.name());
        out.line(format_args!("{mark} {name:width$}  {roles}  ({sure}: {reason})"));
    }
    if let Proposal::Annotated { descends: Some(true), .. } = &tool.proposal {
        out.line("  a folder includes everything in it");
    }
    match change {
        Some(AnnotationChange::Other { schema_changed, arguments }) => {
            if *schema_changed {
                out.line("  CHANGED by the server since it was annotated: its argument schema");
            }
            arguments.iter().for_each(|words| out.line(format_args!("  change: {words}")));
        }
        Some(AnnotationChange::LeftOut) => out.line("  change: its annotation will be dropped"),
        Some(AnnotationChange::New | AnnotationChange::Same | AnnotationChange::StillLeftOut) | None => {}
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
            "leftOut": left_out(tool),
            "arguments": arguments.collect::<Vec<_>>(),
            "change": change_json(change),
        })
    });
    json!({
        "server": draft.server,
        "file": file.path().display().to_string(),
        "tools": tools.collect::<Vec<_>>(),
        "unseen": changes.unseen,
        "gone": changes.gone,
        "unchanged": changes.unchanged,
        "annotations": draft.to_json(),
    })
}

fn change_json(change: &AnnotationChange) -> Value {
    match change {
        AnnotationChange::New => json!({ "kind": "new" }),
        AnnotationChange::Same => json!({ "kind": "same" }),
        AnnotationChange::Other { schema_changed, arguments } => {
            json!({ "kind": "other", "schemaChanged": schema_changed, "arguments": arguments })
        }
        AnnotationChange::LeftOut => json!({ "kind": "left-out" }),
        AnnotationChange::StillLeftOut => json!({ "kind": "still-left-out" }),
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
        let contained = contained(server, annotated);
        let tools = match annotated.tools(&server.name) {
            0 => format!("not annotated: run `ironcurtain servers annotate {}`", server.name),
            count => format!("{} annotated", counted(count, "tool")),
        };
        let place = server.remote.as_ref().map_or_else(|| server.command.clone(), ToString::to_string);
        let package = match packages.state(server) {
            PackageState::NoPackage => String::new(),
            PackageState::Installed { version, .. } => format!("  version {version}"),
            PackageState::NotReady(problem) => format!("  NOT READY: {problem}"),
        };
        let login = logins.of(server).map_or_else(String::new, |login| format!("  {login}"));
        out.line(format_args!("{}  {contained}  {tools}  {place}{package}{login}", server.name));
    }
    out
}

/// Returns a description of how a server is contained and which of its settings differ from the defaults.
fn contained(server: &Server, annotated: &AnnotationsFile) -> String {
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
        Proposal::LeftOut { .. } => &[],
    }
    .iter()
}

fn left_out(tool: &DraftTool) -> Option<&str> {
    match &tool.proposal {
        Proposal::LeftOut { reason } => Some(reason),
        Proposal::Annotated { .. } => None,
    }
}

fn roles(argument: &ProposedArgument) -> Vec<&'static str> {
    argument.roles.iter().map(|role| role.name()).collect()
}
