//! The organization's rules: those of the last valid bundle, or a single rule for all calls until there is a bundle.
//!
//! - The stored bundle is verified on each read, so modifying it on disk has no effect.

use super::{BundleSettings, Managed, ManagedError, ManagedNetwork, WithoutBundle};
use crate::ConfigError;
use crate::home::{Account, Home, canonical_home};
use crate::snapshot_error::SnapshotError;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::hash_of;
use ironcurtain_bundle::{BundleStore, BundleStoreError, PolicyBundle};
use ironcurtain_paths::{CanonicalPath, Resolver, atomic_file, bounded_read};
use ironcurtain_policy::{
    DynamicLists, HostConnection, LoadError, Policy, ProtectedPaths, ResolveWithin, Rule, WithinError,
    defaults,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name of the rule for the setting `network`.
const NETWORK: &str = "setting-network";

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
    /// Rule for the setting `network`. It applies to connections of runs and of servers that ask.
    network_rule: Option<String>,
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
            network_rule: None,
            arrivals: Self::read_arrivals(home),
        };
        if let Some(settings) = policy.managed.bundle.clone() {
            policy.take_bundle(home, &settings)?;
        }
        policy.network_rule = policy.managed.settings.network.map(|network| {
            let (then, what) = match network {
                ManagedNetwork::Never => ("deny", "does not allow network access"),
                ManagedNetwork::Ask => ("escalate", "requires approval for each host"),
            };
            let reason = format!("{} {what}", policy.managed.organization);
            let rule = json!({ "name": NETWORK, "if": { "tool": [HostConnection::NAME] }, "then": then, "reason": reason });
            json!({ "rules": [rule] }).to_string()
        });
        Ok(Some(policy))
    }

    fn take_bundle(&mut self, home: &Home, settings: &BundleSettings) -> Result<(), ManagedError> {
        let key = settings.public_key()?;
        match Self::store(home).read(&key) {
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
    /// Returns [`SnapshotError`] if the organization's rules are invalid.
    pub(crate) fn over(&self, user: Policy, home: &Home) -> Result<Policy, SnapshotError> {
        let Some(rules) = self.parsed(home)? else { return Ok(user) };
        Ok(user.under(rules, |rule| self.arrivals.get(&hash(rule)).copied().unwrap_or(u64::MAX)))
    }

    /// Adds the paths that the organization's rules close to the protected paths. Does nothing if this machine is not
    /// managed.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the organization's settings or rules are invalid.
    pub fn protect(home: &Home, protected: ProtectedPaths) -> Result<ProtectedPaths, SnapshotError> {
        let Some(policy) = Self::load(home)? else { return Ok(protected) };
        let empty = json!({ "rules": [] }).to_string();
        let empty = with_resolver(home, |resolve| parse(&empty, None, resolve))??;
        let rules = policy.over(empty, home)?;
        Ok(policy.hide_token(protected).with_managed(&rules))
    }

    /// Adds the token file to the protected paths: agents must not read the token.
    pub(crate) fn hide_token(&self, protected: ProtectedPaths) -> ProtectedPaths {
        let token = self.managed.bundle.as_ref().and_then(|bundle| bundle.token_file.clone());
        protected.also_closing(token)
    }

    /// Parses the rules. `~` means the home directory of the account and, if `HOME` selects another one, that one too.
    fn parsed(&self, home: &Home) -> Result<Option<Policy>, SnapshotError> {
        let person = canonical_home(home)?;
        let Some(rules) = self.parsed_for(&person)? else { return Ok(None) };
        let account = Account::of_process().and_then(|account| {
            let home = account.home.canonicalize().unwrap_or(account.home);
            CanonicalPath::assume_canonical(home.to_str()?).ok()
        });
        let Some(account) = account.filter(|account| *account != person) else { return Ok(Some(rules)) };
        Ok(self.parsed_for(&account)?.map(|of_account| rules.with_variants(of_account)))
    }

    fn parsed_for(&self, person: &CanonicalPath) -> Result<Option<Policy>, LoadError> {
        let resolver = Resolver::new(person.clone(), person.clone());
        let resolve = |raw: &str| located(&resolver, person, raw);
        let network = self.network_rule.iter().map(|rule| parse(rule, None, &resolve));
        let bundle = self.rules.iter().map(|rules| parse(rules, self.lists.as_deref(), &resolve));
        network.chain(bundle).try_fold(None, |first: Option<Policy>, rules| {
            let rules = rules?;
            Ok(Some(match first {
                Some(first) => first.followed_by(rules),
                None => rules,
            }))
        })
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
        json!([self.rules, self.lists, self.network_rule]).to_string()
    }

    /// Stores the arrival time of each new rule, and removes rules that no longer exist. Does nothing if this machine
    /// is not managed.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid or the times cannot be written.
    pub fn record_arrivals(home: &Home) -> Result<(), SnapshotError> {
        let Some(policy) = Self::load(home)? else { return Ok(()) };
        let Some(rules) = policy.parsed(home)? else { return Ok(()) };
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
    let resolver = Resolver::new(person.clone(), person.clone());
    Ok(then(&|raw| located(&resolver, &person, raw)))
}

/// Resolves a path in a managed rule. A path that cannot be resolved is taken as written, so that the user cannot make
/// the rules invalid by changing a folder that they name.
fn located(resolver: &Resolver, person: &CanonicalPath, raw: &str) -> Result<CanonicalPath, WithinError> {
    resolver.locate(raw).or_else(|problem| {
        let written =
            raw.strip_prefix('~').map_or_else(|| raw.to_owned(), |below| format!("{person}{below}"));
        CanonicalPath::assume_canonical(written.trim_end_matches('/')).map_err(|_| WithinError::from(problem))
    })
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
