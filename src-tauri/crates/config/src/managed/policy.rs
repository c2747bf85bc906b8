//! The organization's rules: those of the last valid bundle, or a single rule for all calls until there is a bundle.
//!
//! - The stored bundle is verified on each read, so modifying it on disk has no effect.

use super::{BundleSettings, Managed, ManagedError, WithoutBundle};
use crate::ConfigError;
use crate::home::{Home, canonical_home};
use crate::snapshot_error::SnapshotError;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::hash_of;
use ironcurtain_bundle::{BundleStore, BundleStoreError, PolicyBundle};
use ironcurtain_paths::{Resolver, atomic_file, bounded_read};
use ironcurtain_policy::{DynamicLists, LoadError, Policy, ResolveWithin, Rule, WithinError, defaults};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The organization's rules, and the times at which they arrived on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedPolicy {
    /// Content of `managed.json`.
    pub managed: Managed,
    /// Bundle that contains the rules, or `None` if there is no valid bundle.
    pub bundle: Option<ManagedBundle>,
    /// Reason the stored bundle is not used, or `None` if it is used or does not exist.
    pub problem: Option<String>,
    rules: Option<String>,
    lists: Option<String>,
    /// Arrival time of each rule, in milliseconds since the Unix epoch, keyed by the rule's hash.
    arrivals: BTreeMap<String, u64>,
}

/// Bundle that contains the organization's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedBundle {
    /// Human-readable revision.
    pub revision: String,
    /// Sequence number.
    pub sequence: u64,
}

impl ManagedPolicy {
    /// Loads the organization's rules. Returns `None` if this machine is not managed.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if `managed.json` or the public key is invalid.
    pub fn load(home: &Home) -> Result<Option<Self>, ConfigError> {
        let Some(managed) = Managed::load()? else { return Ok(None) };
        let mut policy = Self {
            managed,
            bundle: None,
            problem: None,
            rules: None,
            lists: None,
            arrivals: Self::read_arrivals(home),
        };
        if let Some(settings) = policy.managed.bundle.clone() {
            policy.take_bundle(home, &settings)?;
        }
        Ok(Some(policy))
    }

    fn take_bundle(&mut self, home: &Home, settings: &BundleSettings) -> Result<(), ManagedError> {
        let key = settings.public_key()?;
        match Self::store(home).read(&key, now_ms() / 1000) {
            Ok(Some(bundle)) => {
                self.rules = bundle.document("policy").map(Value::to_string);
                self.lists = bundle.document("lists").map(Value::to_string);
                self.bundle = Some(ManagedBundle { revision: bundle.revision, sequence: bundle.sequence });
            }
            Ok(None) => {}
            Err(problem @ (BundleStoreError::Refused(_) | BundleStoreError::Io { .. })) => {
                self.problem = Some(format!("the last downloaded bundle is not used: {problem}"));
            }
            Err(problem @ (BundleStoreError::Rollback { .. } | BundleStoreError::SameSequence(_))) => {
                self.problem = Some(problem.to_string());
            }
        }
        if self.bundle.is_none() {
            let then = match settings.without {
                WithoutBundle::Deny => "deny",
                WithoutBundle::Ask => "escalate",
            };
            let reason = format!("the rules of {} have not been downloaded yet", self.managed.organization);
            let rule = json!({ "name": "no-bundle", "if": {}, "then": then, "reason": reason });
            self.rules = Some(json!({ "rules": [rule] }).to_string());
        }
        Ok(())
    }

    /// Returns the store for the last valid bundle.
    #[must_use]
    pub fn store(home: &Home) -> BundleStore {
        BundleStore::new(home.state.join("managed/bundle.tar.gz"))
    }

    /// Returns `user` with the organization's rules added as a layer above it.
    ///
    /// # Errors
    /// Returns [`LoadError`] if the organization's rules are invalid.
    pub(crate) fn over(&self, user: Policy, resolve: &ResolveWithin<'_>) -> Result<Policy, LoadError> {
        let Some(rules) = self.parsed(resolve)? else { return Ok(user) };
        Ok(user.under(rules, |rule| self.arrivals.get(&hash(rule)).copied().unwrap_or(u64::MAX)))
    }

    fn parsed(&self, resolve: &ResolveWithin<'_>) -> Result<Option<Policy>, LoadError> {
        let Some(rules) = &self.rules else { return Ok(None) };
        parse(rules, self.lists.as_deref(), resolve).map(Some)
    }

    /// Parses a bundle's rules.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid.
    pub fn check(home: &Home, bundle: &PolicyBundle) -> Result<Policy, SnapshotError> {
        let text = |name| bundle.document(name).map(Value::to_string);
        let rules = text("policy").unwrap_or_else(|| json!({ "rules": [] }).to_string());
        let lists = text("lists");
        Ok(with_resolver(home, |resolve| parse(&rules, lists.as_deref(), resolve))??)
    }

    /// Returns the built-in policy with a bundle's rules added as a layer above it.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid.
    pub fn over_built_in(home: &Home, bundle: &PolicyBundle) -> Result<Policy, SnapshotError> {
        let built_in = with_resolver(home, |resolve| parse(defaults::POLICY_JSON, None, resolve))??;
        Ok(built_in.under(Self::check(home, bundle)?, |_| 0))
    }

    /// Returns the rules and lists as text, for detecting changes.
    pub(crate) fn text(&self) -> String {
        json!([self.rules, self.lists]).to_string()
    }

    /// Stores the arrival time of each new rule, and removes rules that no longer exist. Does nothing if this machine
    /// is not managed.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid or the times cannot be written.
    pub fn record_arrivals(home: &Home) -> Result<(), SnapshotError> {
        let Some(policy) = Self::load(home)? else { return Ok(()) };
        let Some(rules) = with_resolver(home, |resolve| policy.parsed(resolve))?? else { return Ok(()) };
        let now = now_ms();
        let arrived = rules.rules().iter().map(|rule| {
            let hash = hash(rule);
            let since = policy.arrivals.get(&hash).copied().unwrap_or(now);
            (hash, since)
        });
        let arrivals: BTreeMap<String, u64> = arrived.collect();
        if arrivals == policy.arrivals {
            return Ok(());
        }
        let path = arrivals_file(home);
        let write = || {
            std::fs::create_dir_all(home.state.join("managed"))?;
            atomic_file::replace(&path, &json!(arrivals).to_string())
        };
        Ok(write().map_err(|source| ConfigError::Io { path: path.clone(), source })?)
    }

    /// Reads the arrival times. A rule without one is treated as newer than every grant.
    fn read_arrivals(home: &Home) -> BTreeMap<String, u64> {
        let text = bounded_read::text(&arrivals_file(home)).ok().flatten().unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// Calls `then` with a function that resolves the paths in rules.
fn with_resolver<T>(home: &Home, then: impl FnOnce(&ResolveWithin<'_>) -> T) -> Result<T, SnapshotError> {
    let person = canonical_home(home)?;
    let resolver = Resolver::new(person.clone(), person);
    Ok(then(&|raw| resolver.locate(raw).map_err(WithinError::from)))
}

fn parse(rules: &str, lists: Option<&str>, resolve: &ResolveWithin<'_>) -> Result<Policy, LoadError> {
    let lists = lists.map(|lists| DynamicLists::from_json(lists, "the bundle's lists")).transpose()?;
    Policy::from_json(rules, "the bundle's rules", resolve, &lists.unwrap_or_default())
}

fn arrivals_file(home: &Home) -> PathBuf {
    home.state.join("managed/arrivals.json")
}

/// Hashes a rule's condition and decision. Its name and reason do not affect the hash.
fn hash(rule: &Rule) -> String {
    hash_of(format!("{:?}", (rule.then, &rule.condition)).as_bytes())
}
