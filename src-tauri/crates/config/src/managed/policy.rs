//! The organization's rules: those of the last valid bundle, or a single rule for all calls until there is a bundle.
//!
//! - The stored bundle is verified on each read, so modifying it on disk has no effect.

use super::rules::{ManagedRules, UnresolvablePaths};
use super::{BundleSettings, Managed, ManagedError};
use crate::ConfigError;
use crate::home::{Account, Home, canonical_home};
use crate::protection::protection;
use crate::snapshot_error::SnapshotError;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::hash_of;
use ironcurtain_bundle::{BundleStore, BundleStoreError, PolicyBundle};
use ironcurtain_paths::{CanonicalPath, Resolver, atomic_file, bounded_read};
use ironcurtain_policy::{DynamicLists, Policy, ProtectedPaths, Rule, WithinError, defaults};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The organization's rules, and the times at which they were first seen on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedPolicy {
    /// Content of `managed.json`.
    pub managed: Managed,
    /// Bundle that contains the rules, or `None` if there is no valid bundle.
    pub bundle: Option<ManagedBundle>,
    /// Reason the stored bundle is not used, or `None` if it is used or does not exist.
    pub problem: Option<String>,
    rules: ManagedRules,
    /// Time at which each rule was first seen, in milliseconds since the Unix epoch, keyed by the rule's hash.
    first_seen: BTreeMap<String, u64>,
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
        let first_seen = Self::read_first_seen(home);
        let rules = ManagedRules::default();
        let mut policy = Self { managed, bundle: None, problem: None, rules, first_seen };
        if let Some(settings) = policy.managed.bundle.clone() {
            policy.load_bundle(home, &settings)?;
        }
        policy.rules = policy.rules.with_settings(&policy.managed);
        Ok(Some(policy))
    }

    fn load_bundle(&mut self, home: &Home, settings: &BundleSettings) -> Result<(), ManagedError> {
        let key = settings.public_key()?;
        match Self::store(home).read(&key) {
            Ok(Some(bundle)) => {
                self.rules = ManagedRules::from_bundle(&bundle);
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
            self.rules = ManagedRules::without_bundle(settings, &self.managed.organization);
        }
        Ok(())
    }

    /// Returns a sentence about the rules that are in effect until the next successful download.
    #[must_use]
    pub fn status_until_update(&self) -> String {
        match (&self.bundle, &self.managed.bundle) {
            (None, Some(settings)) => {
                format!("Until they are downloaded, {}.", settings.without.effect())
            }
            (Some(_), _) | (None, None) => "The last good rules stay in effect.".to_owned(),
        }
    }

    /// Returns the store for the last valid bundle.
    #[must_use]
    pub fn store(home: &Home) -> BundleStore {
        BundleStore::new(home.state.join("managed/bundle.tar.gz"))
    }

    /// Returns `user` with the organization's rules added as a layer above the user's rules.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the organization's rules are invalid.
    pub(crate) fn merge_rules(&self, user: Policy, home: &Home) -> Result<Policy, SnapshotError> {
        Ok(user.with_managed(self.parse_rules(home)?, |rule| self.first_seen_ms(rule)))
    }

    fn first_seen_ms(&self, rule: &Rule) -> u64 {
        self.first_seen.get(&hash(rule)).copied().unwrap_or(u64::MAX)
    }

    /// Returns the protected paths for a program that runs outside a session, including those that the organization's
    /// rules close.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if a directory cannot be resolved, or the organization's settings or rules are
    /// invalid.
    pub fn protection(home: &Home, user_home: &CanonicalPath) -> Result<ProtectedPaths, SnapshotError> {
        let protected = protection(home, user_home)?;
        let Some(policy) = Self::load(home)? else { return Ok(protected) };
        let rules = policy.merge_rules(Policy::default(), home)?;
        Ok(policy.hide_token(protected).with_managed(&rules))
    }

    /// Adds the token file to the protected paths: agents must not read the token.
    pub(crate) fn hide_token(&self, protected: ProtectedPaths) -> ProtectedPaths {
        let token = self.managed.bundle.as_ref().and_then(|bundle| bundle.token_file.clone());
        protected.with_protected(token)
    }

    /// Parses the rules. If the account's home directory differs from `HOME`, rules that use `~` are parsed for both.
    fn parse_rules(&self, home: &Home) -> Result<Policy, SnapshotError> {
        let user_home = canonical_home(home)?;
        let rules = self.rules.parse(&user_home, UnresolvablePaths::AsWritten)?;
        let account = Account::current().and_then(|account| {
            let home = account.home.canonicalize().unwrap_or(account.home);
            CanonicalPath::assume_canonical(home.to_str()?).ok()
        });
        let Some(account) = account.filter(|account| *account != user_home) else { return Ok(rules) };
        Ok(rules.with_variants(self.rules.parse(&account, UnresolvablePaths::AsWritten)?))
    }

    /// Parses a bundle's rules.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid.
    pub fn check(home: &Home, bundle: &PolicyBundle) -> Result<Policy, SnapshotError> {
        Ok(ManagedRules::from_bundle(bundle).parse(&canonical_home(home)?, UnresolvablePaths::Refused)?)
    }

    /// Returns the built-in policy with a bundle's rules added as a layer above the built-in rules.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid.
    pub fn check_with_built_in(home: &Home, bundle: &PolicyBundle) -> Result<Policy, SnapshotError> {
        let user_home = canonical_home(home)?;
        let resolver = Resolver::new(user_home.clone(), user_home);
        let within = |raw: &str| resolver.locate(raw).map_err(WithinError::from);
        let (lists, name) = (DynamicLists::default(), "the built-in rules");
        let built_in = Policy::from_json(defaults::POLICY_JSON, name, &within, &lists)?;
        Ok(built_in.with_managed(Self::check(home, bundle)?, |_| 0))
    }

    /// Returns the source text of each rule, in order.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.rules.sources()
    }

    /// Returns the rules and lists as text, for detecting changes.
    pub(crate) fn text(&self) -> String {
        self.rules.text()
    }

    /// Stores the time at which each new rule was first seen and removes the times of rules that no longer exist.
    /// Until its time is stored, a new rule counts as newer than every grant.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] if the rules are invalid or the times cannot be written.
    pub fn record_first_seen(&mut self, home: &Home) -> Result<(), SnapshotError> {
        let now = now_ms();
        let rules = self.parse_rules(home)?;
        let seen = rules.rules().iter().map(|rule| {
            let hash = hash(rule);
            let since = self.first_seen.get(&hash).copied().unwrap_or(now);
            (hash, since)
        });
        let first_seen: BTreeMap<String, u64> = seen.collect();
        if first_seen == self.first_seen {
            return Ok(());
        }
        let path = first_seen_file(home);
        let write = || {
            std::fs::create_dir_all(home.state.join("managed"))?;
            atomic_file::replace(&path, &json!(first_seen).to_string())
        };
        write().map_err(|source| ConfigError::Io { path: path.clone(), source })?;
        self.first_seen = first_seen;
        Ok(())
    }

    /// Reads the times at which rules were first seen. A rule without a stored time counts as newer than every grant.
    fn read_first_seen(home: &Home) -> BTreeMap<String, u64> {
        let text = bounded_read::read_text(&first_seen_file(home)).ok().flatten().unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

fn first_seen_file(home: &Home) -> PathBuf {
    home.state.join("managed/arrivals.json")
}

/// Hashes a rule's condition and decision. Its name and reason do not affect the hash.
fn hash(rule: &Rule) -> String {
    hash_of(format!("{:?}", (rule.then, &rule.condition)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::{Decision, Layer};
    use serde_json::Value;
    use std::path::Path;

    struct Scene {
        home: Home,
        user_home: CanonicalPath,
        dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            let user_home = base.join("ann");
            std::fs::create_dir(&user_home).unwrap();
            let home = Home::under(&base.join("ic"), &user_home);
            home.prepare().unwrap();
            let user_home = CanonicalPath::assume_canonical(user_home.to_str().unwrap()).unwrap();
            Self { home, user_home, dir }
        }

        /// Creates a managed policy with these settings and rules.
        fn policy(&self, settings: &Value, rules: &Value) -> ManagedPolicy {
            let managed = json!({ "schemaVersion": 1, "organization": "E", "settings": settings });
            let managed: Managed = serde_json::from_value(managed).unwrap();
            let rules = ManagedRules::from_rules(rules).with_settings(&managed);
            let first_seen = ManagedPolicy::read_first_seen(&self.home);
            ManagedPolicy { managed, bundle: None, problem: None, rules, first_seen }
        }

        fn at(&self, below: &str) -> CanonicalPath {
            self.user_home.join(below).unwrap()
        }

        /// Returns the resolved folder of a rule, or the error.
        fn located(&self, within: &str, unresolvable: UnresolvablePaths) -> Result<CanonicalPath, String> {
            let rules = ManagedRules::from_rules(&json!([denied(within)]));
            let policy = rules.parse(&self.user_home, unresolvable).map_err(|problem| problem.to_string())?;
            Ok(policy.rules()[0].within().unwrap().clone())
        }
    }

    fn denied(within: &str) -> Value {
        let paths = json!({ "roles": ["read-path", "write-path", "delete-path"], "within": within });
        json!({ "name": "denied", "if": { "paths": paths }, "then": "deny", "reason": "r" })
    }

    #[test]
    fn a_network_setting_is_a_separate_layer_and_hides_no_less() {
        let scene = Scene::new();
        std::fs::create_dir(scene.user_home.as_path().join("secret")).unwrap();
        for (settings, then) in [
            (json!({ "network": "ask" }), Some(Decision::Escalate)),
            (json!({ "network": "never" }), Some(Decision::Deny)),
            (json!({}), None),
        ] {
            let managed = scene.policy(&settings, &json!([denied("~/secret")]));
            let policy = managed.merge_rules(Policy::default(), &scene.home).unwrap();
            let of_setting = policy.rules().iter().find(|rule| rule.layer == Layer::Setting);
            assert_eq!(of_setting.map(|rule| rule.then), then);
            let protected = ProtectedPaths::default().with_managed(&policy);
            assert!(protected.covers(&scene.at("secret/a")) && !protected.covers(&scene.at("other")));
        }
    }

    #[test]
    fn a_new_rule_is_newer_than_every_grant_only_until_its_arrival_is_recorded() {
        let scene = Scene::new();
        let secret = scene.at("secret");
        let load = |settings: &Value| scene.policy(settings, &json!([denied(secret.as_str())]));
        let since = |policy: &ManagedPolicy| -> Vec<u64> {
            let rules = policy.parse_rules(&scene.home).unwrap();
            rules.rules().iter().map(|rule| policy.first_seen_ms(rule)).collect()
        };
        let mut first = load(&json!({}));
        assert_eq!(since(&first), [u64::MAX]);
        let before = now_ms();
        first.record_first_seen(&scene.home).unwrap();
        let seen = since(&first);
        assert!((before..=now_ms()).contains(&seen[0]));
        assert_eq!(since(&load(&json!({}))), seen, "the time is stored");
        // A setting needs no bundle, and its rule does not change the other rule's time.
        let mut with_setting = load(&json!({ "network": "ask" }));
        assert_eq!(since(&with_setting), [u64::MAX, seen[0]]);
        with_setting.record_first_seen(&scene.home).unwrap();
        let now = since(&with_setting);
        assert!(now[0] <= now_ms() && now[1] == seen[0]);
        // The path that the rule names becomes a symlink.
        std::os::unix::fs::symlink(scene.dir.path(), scene.user_home.as_path().join("secret")).unwrap();
        let mut moved = load(&json!({ "network": "ask" }));
        assert_eq!(since(&moved), [now[0], u64::MAX]);
        moved.record_first_seen(&scene.home).unwrap();
        assert!(since(&moved)[1] <= now_ms());
        // Without a stored time, the rule stays newer than every grant.
        let file = first_seen_file(&scene.home);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir_all(file.join("x")).unwrap();
        let mut unstored = load(&json!({}));
        unstored.record_first_seen(&scene.home).unwrap_err();
        assert_eq!(since(&unstored), [u64::MAX]);
    }

    #[test]
    fn only_paths_that_the_user_made_unusable_are_taken_as_written() {
        let scene = Scene::new();
        let link = |name: &str, target: &Path| {
            std::os::unix::fs::symlink(target, scene.user_home.as_path().join(name)).unwrap();
        };
        link("loop", scene.at("loop").as_path());
        link("magic", Path::new("/proc/self/fd/0"));
        for (within, expected) in [
            ("~/loop/docs/", "loop/docs"),
            ("~/magic/docs", "magic/docs"),
            ("~/docs", "docs"),
            ("~/loop/../docs", "docs"),
        ] {
            for unresolvable in [UnresolvablePaths::Refused, UnresolvablePaths::AsWritten] {
                assert_eq!(scene.located(within, unresolvable), Ok(scene.at(expected)), "{within}");
            }
        }
        for (within, expected) in [
            ("~bob/finance", "`~bob/finance` must be absolute or start with `~/`"),
            ("~/a\u{0}b", "contains a NUL character"),
        ] {
            for unresolvable in [UnresolvablePaths::Refused, UnresolvablePaths::AsWritten] {
                let refused = scene.located(within, unresolvable).unwrap_err();
                assert!(refused.contains(expected), "{refused}");
            }
        }
        // The same name in two Unicode forms.
        std::fs::create_dir(scene.at("Mu\u{308}ller").as_path()).unwrap();
        let refused = scene.located("~/M\u{fc}ller", UnresolvablePaths::Refused).unwrap_err();
        assert!(refused.contains("the same text in another Unicode form"), "{refused}");
        assert_eq!(scene.located("~/M\u{fc}ller", UnresolvablePaths::AsWritten), Ok(scene.at("M\u{fc}ller")));
        assert_eq!(
            scene.located("~/Mu\u{308}ller", UnresolvablePaths::Refused),
            Ok(scene.at("Mu\u{308}ller"))
        );
    }
}
