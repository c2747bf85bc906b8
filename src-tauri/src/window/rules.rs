//! Commands that show, explain, test and save the policy rules.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::rules::{RulesError, current_rules, parse_rules, rules_file, write_rules};
use ironcurtain_admin::trial::{JudgedCall, PolicyTrial};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::decisions_by_rule;
use ironcurtain_config::home::Home;
use ironcurtain_policy::{Rule, strict};
use ironcurtain_policy_tools::diff::diff_rules;
use ironcurtain_policy_tools::explained::{decision_of, describe_mismatch, describe_value, reason_of};
use ironcurtain_policy_tools::lint::{LintFinding, lint};
use ironcurtain_policy_tools::replay::{CallGroups, ReplayComparison};
use ironcurtain_policy_tools::{Ruling, diff};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Period of the calls used for counting decisions and for trying out rules: one week.
const WEEK_MS: u64 = 7 * 86_400_000;

#[derive(Debug, Serialize)]
pub(super) struct RulesView {
    rules: Vec<RuleView>,
    text: String,
    file: String,
    /// `true` if the user has a policy file of their own.
    own: bool,
    /// Findings that are not about a specific rule.
    findings: Vec<String>,
    counted_since_ms: u64,
    tools: Vec<ToolsOf>,
    /// Rules of the user's organization, or `None` if this machine is not managed.
    managed: Option<ManagedRulesView>,
}

#[derive(Debug, Serialize)]
struct ManagedRulesView {
    organization: String,
    rules: Vec<RuleView>,
}

#[derive(Debug, Serialize)]
struct RuleView {
    name: String,
    description: String,
    then: &'static str,
    reason: String,
    /// Source text of the rule.
    text: String,
    /// Number of calls that the rule has decided.
    decided: u64,
    findings: Vec<String>,
}

/// A server and the names of its tools.
#[derive(Debug, Serialize)]
struct ToolsOf {
    server: String,
    tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TriedCall {
    server: String,
    tool: String,
    arguments: String,
    client: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Explained {
    decision: &'static str,
    by: String,
    reason: String,
    paths: Vec<String>,
    steps: Vec<ExplainedStep>,
}

#[derive(Debug, Serialize)]
struct ExplainedStep {
    about: String,
    decision: &'static str,
    by: String,
    passed: Vec<PassedRule>,
}

/// Rule that did not match a value, and the reason.
#[derive(Debug, Serialize)]
struct PassedRule {
    rule: String,
    why: &'static str,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct DryRun {
    /// Reason the rules are invalid, or `None` if they are valid.
    problem: Option<String>,
    findings: Vec<String>,
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
    looser: Vec<ChangedCalls>,
    stricter: Vec<ChangedCalls>,
    same: usize,
    not_judged: usize,
    calls: usize,
}

/// Similar calls whose decision changes.
#[derive(Debug, Serialize)]
struct ChangedCalls {
    server: String,
    tool: String,
    then: &'static str,
    now: &'static str,
    count: usize,
    example: String,
    reason: String,
}

pub(super) async fn rules(state: &AppState) -> Result<RulesView, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || view(&home)).await
}

pub(super) async fn explain(state: &AppState, call: TriedCall) -> Result<Explained, CommandError> {
    let home = trusted(state)?.home;
    let arguments: Map<String, Value> = strict::read(&call.arguments).map_err(|misread| {
        CommandError::malformed(format!("the arguments must be a JSON object: {misread}"))
    })?;
    run_blocking(move || {
        let trial = current_rules(&home)?;
        let held = call.client.map(|client| trial.grants_of(&client, &call.server)).transpose()?;
        Ok::<_, RulesError>(explained(&trial.judge(&call.server, &call.tool, &arguments, held.as_ref())))
    })
    .await
}

pub(super) async fn try_rules(state: &AppState, text: String) -> Result<DryRun, CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || dry_run(&home, &text)).await
}

pub(super) async fn save_rules(state: &AppState, text: String, before: String) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || write_rules(&home, &text, &before)).await
}

fn view(home: &Home) -> Result<RulesView, RulesError> {
    let trial = current_rules(home)?;
    let snapshot = &trial.snapshot;
    let findings = findings(&trial);
    let counted_since_ms = week_ago();
    // If counting fails, the rules are shown without numbers.
    let decided = decisions_by_rule(&home.audit(), counted_since_ms).unwrap_or_default();
    let texts = written(snapshot.policy_text());
    let shown = |rule: &Rule, text: Option<&String>| {
        let name = rule.name().to_string();
        // The user cannot change the organization's rules.
        let own =
            findings.iter().filter(|finding| !rule.is_managed() && finding.rule.as_ref() == Some(&name));
        RuleView {
            description: rule.description.clone(),
            then: rule.then.as_str(),
            reason: rule.reason().to_string(),
            text: text.cloned().unwrap_or_default(),
            decided: decided.get(&name).copied().unwrap_or_default(),
            findings: own.map(|finding| format!("{}: {}", finding.field, finding.kind)).collect(),
            name,
        }
    };
    let own = snapshot.policy.rules().iter().filter(|rule| !rule.is_managed());
    let rules = own.enumerate().map(|(at, rule)| shown(rule, texts.get(at)));
    let managed = snapshot.managed.as_ref().map(|managed| {
        let sources = managed.sources();
        let mut rules: Vec<&Rule> = snapshot.policy.rules().iter().filter(|rule| rule.is_managed()).collect();
        // A rule that means another folder in the account's home directory occurs twice.
        rules.dedup_by(|rule, before| (rule.name(), rule.layer) == (before.name(), before.layer));
        let rules = rules.into_iter().enumerate().map(|(at, rule)| shown(rule, sources.get(at)));
        ManagedRulesView { organization: managed.managed.organization.clone(), rules: rules.collect() }
    });
    let tools_of = |server: &str| ToolsOf {
        server: server.to_owned(),
        tools: snapshot.annotations.tools(server).map(|(tool, _)| tool.to_owned()).collect(),
    };
    let file = rules_file(home);
    Ok(RulesView {
        rules: rules.collect(),
        text: snapshot.policy_text().to_owned(),
        own: file.exists(),
        file: file.display().to_string(),
        findings: findings.iter().filter(|one| one.rule.is_none()).map(ToString::to_string).collect(),
        counted_since_ms,
        tools: snapshot.annotations.servers().map(tools_of).collect(),
        managed,
    })
}

fn findings(trial: &PolicyTrial) -> Vec<LintFinding> {
    let snapshot = &trial.snapshot;
    lint(&snapshot.policy, &snapshot.annotations, &snapshot.protected, &snapshot.home)
}

/// Returns the source text of each rule.
fn written(text: &str) -> Vec<String> {
    let file: Value = serde_json::from_str(text).unwrap_or_default();
    let rules = file.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().map(|rule| serde_json::to_string_pretty(rule).unwrap_or_default()).collect()
}

fn explained(judged: &JudgedCall) -> Explained {
    let Ruling { decision, rule, reason } = Ruling::from_judged(&judged.outcome);
    let path = |found: &ironcurtain_consent::found_paths::FoundPath| {
        let links =
            found.links.iter().map(|link| format!("; the link {} leads to {}", link.path, link.target));
        format!("`{}` is {}{}", found.argument, found.path, links.collect::<String>())
    };
    let steps = judged.outcome.iter().flat_map(|explanation| &explanation.steps).map(|step| ExplainedStep {
        about: describe_value(step),
        decision: decision_of(step).as_str(),
        by: reason_of(step),
        passed: step
            .skipped_rules
            .iter()
            .map(|(rule, miss)| PassedRule { rule: rule.to_string(), why: describe_mismatch(*miss) })
            .collect(),
    });
    Explained {
        decision: decision.as_str(),
        by: rule,
        reason,
        steps: steps.collect(),
        paths: judged.paths.iter().map(path).collect(),
    }
}

fn dry_run(home: &Home, text: &str) -> Result<DryRun, RulesError> {
    let new = match parse_rules(home, text) {
        Ok(new) => new,
        Err(RulesError::Trial(problem)) => {
            return Ok(DryRun { problem: Some(problem.to_string()), ..DryRun::default() });
        }
        Err(problem) => return Err(problem),
    };
    let old = current_rules(home)?;
    let diff::Difference { added, removed, changed, .. } =
        diff_rules(&old.snapshot.policy, &new.snapshot.policy);
    let replay = new.replay(week_ago())?;
    let comparison = ReplayComparison::new(&replay);
    let new_findings = findings(&new);
    let known = findings(&old);
    Ok(DryRun {
        problem: None,
        findings: new_findings
            .iter()
            .filter(|finding| !known.contains(finding))
            .map(ToString::to_string)
            .collect(),
        added,
        removed,
        changed,
        looser: changed_calls(&comparison.looser),
        stricter: changed_calls(&comparison.stricter),
        same: comparison.same,
        not_judged: comparison.not_replayed.values().map(Vec::len).sum(),
        calls: replay.calls.len(),
    })
}

fn changed_calls(groups: &CallGroups<'_>) -> Vec<ChangedCalls> {
    let changed = groups.iter().map(|(alike, calls)| {
        let (example, now) =
            calls.first().map(|(call, now)| (call.paths.join(" "), now.reason.clone())).unzip();
        ChangedCalls {
            server: alike.server.to_owned(),
            tool: alike.tool.to_owned(),
            then: alike.then.0.as_str(),
            now: alike.now.0.as_str(),
            count: calls.len(),
            example: example.unwrap_or_default(),
            reason: now.unwrap_or_default(),
        }
    });
    changed.collect()
}

fn week_ago() -> u64 {
    now_ms().saturating_sub(WEEK_MS)
}
