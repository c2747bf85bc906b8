//! Stores and parses the text of the organization's rules.

use super::{BundleSettings, Managed, ManagedNetwork, WithoutBundle};
use ironcurtain_bundle::PolicyBundle;
use ironcurtain_paths::{CanonicalPath, PathError, Resolver};
use ironcurtain_policy::{DynamicLists, HostConnection, LoadError, Policy, WithinError};
use serde_json::{Value, json};
use std::path::{Component, Path};

/// Name of the rule for the `network` setting.
const NETWORK_RULE: &str = "setting-network";

/// Text of the organization's rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ManagedRules {
    rules: Option<String>,
    lists: Option<String>,
    /// Rule for the `network` setting. It applies to connections from runs and from servers that ask the user.
    network: Option<String>,
}

/// Treatment of a rule's path that exists only in a different Unicode form.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum UnresolvablePaths {
    /// The rules are invalid.
    Refused,
    /// The path is taken as written.
    AsWritten,
}

impl ManagedRules {
    /// Returns the rules and lists in a bundle.
    pub(super) fn from_bundle(bundle: &PolicyBundle) -> Self {
        let text = |name| bundle.document(name).map(Value::to_string);
        Self { rules: text("policy"), lists: text("lists"), network: None }
    }

    /// Returns rules without lists.
    pub(super) fn from_rules(rules: &Value) -> Self {
        Self { rules: Some(json!({ "rules": rules }).to_string()), ..Self::default() }
    }

    /// Returns the rule for all calls until there is a bundle.
    pub(super) fn without_bundle(settings: &BundleSettings, organization: &str) -> Self {
        let verdict = match settings.without {
            WithoutBundle::Deny => "deny",
            WithoutBundle::Ask => "escalate",
        };
        let reason = format!("the rules of {organization} have not been downloaded yet");
        let rule = json!({ "name": "no-bundle", "if": {}, "then": verdict, "reason": reason });
        Self::from_rules(&json!([rule]))
    }

    /// Adds the rule for the `network` setting.
    pub(super) fn with_settings(self, managed: &Managed) -> Self {
        let network = managed.settings.network.map(|network| {
            let (verdict, what) = match network {
                ManagedNetwork::Never => ("deny", "does not allow network access"),
                ManagedNetwork::Ask => ("escalate", "requires approval for each host"),
            };
            let condition = json!({ "roles": ["fetch-url"], "tool": [HostConnection::NAME] });
            let reason = format!("{} {what}", managed.organization);
            let rule = json!({ "name": NETWORK_RULE, "if": condition, "then": verdict, "reason": reason });
            json!({ "rules": [rule] }).to_string()
        });
        Self { network, ..self }
    }

    /// Parses the rules. `user_home` replaces `~` in paths.
    pub(super) fn parse(
        &self,
        user_home: &CanonicalPath,
        unresolvable: UnresolvablePaths,
    ) -> Result<Policy, LoadError> {
        let resolver = Resolver::new(user_home.clone(), user_home.clone());
        let resolve = |raw: &str| resolve_or_literal(&resolver, raw, unresolvable);
        let lists = self.lists.as_deref();
        let lists = lists.map(|lists| DynamicLists::from_json(lists, "the bundle's lists")).transpose()?;
        let lists = lists.unwrap_or_default();
        let parse = |rules: &Option<String>| match rules {
            Some(rules) => Policy::from_json(rules, "the bundle's rules", &resolve, &lists),
            None => Ok(Policy::default()),
        };
        Ok(parse(&self.network)?.into_settings_layer().append(parse(&self.rules)?))
    }

    /// Returns the source text of each rule, in the order in which [`ManagedRules::parse`] returns them.
    pub(super) fn sources(&self) -> Vec<String> {
        let texts = [&self.network, &self.rules].into_iter().flatten();
        let files = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let rules = files.filter_map(|file| file.get("rules")?.as_array().cloned()).flatten();
        rules.map(|rule| serde_json::to_string_pretty(&rule).unwrap_or_default()).collect()
    }

    /// Returns the rules and lists as text, for detecting changes.
    pub(super) fn text(&self) -> String {
        json!([self.rules, self.lists, self.network]).to_string()
    }
}

/// Resolves a path in a managed rule. A path that the user made unusable is taken as written so that the user cannot
/// make the rules invalid by changing a folder that the rules name.
fn resolve_or_literal(
    resolver: &Resolver,
    raw: &str,
    unresolvable: UnresolvablePaths,
) -> Result<CanonicalPath, WithinError> {
    let problem = match resolver.locate(raw) {
        Ok(path) => return Ok(path),
        Err(problem) => problem,
    };
    let depends_on_user = matches!(
        problem,
        PathError::TooManyLinks(_)
            | PathError::Unreadable { .. }
            | PathError::NotUtf8(_)
            | PathError::MagicLink(_)
    ) || (unresolvable == UnresolvablePaths::AsWritten
        && matches!(problem, PathError::OtherUnicodeForm { .. }));
    match literal_path(resolver, raw).filter(|_| depends_on_user) {
        Some(written) => Ok(written),
        None => Err(problem.into()),
    }
}

/// Removes `.` and `..` from a path that is absolute or starts with `~`. Does not access the disk.
fn literal_path(resolver: &Resolver, raw: &str) -> Option<CanonicalPath> {
    let written = resolver.expand_home(raw).unwrap_or_else(|| raw.to_owned());
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(&written).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    CanonicalPath::assume_canonical(&format!("/{}", parts.join("/"))).ok()
}
