//! Stores the hash of the newest audit entry in the keyring. This reveals a truncated log even if an attacker has also
//! changed the log's head file.
//!
//! - Runs periodically and at shutdown, after the entries have been written to disk. Never delays a call.
//! - Never prompts to unlock the keyring. The stored entry may be older than the log's newest entry, but never newer.
//! - INVARIANT: the stored entry is replaced only after the log has been compared with it.

use crate::health::{Health, HealthComponent};
use ironcurtain_audit::{Audit, ChainPosition, Entry, Event, KnownHead, check_written};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{Keyring, KeyringSection, Secret, SecretError, SecretName, with_unlock_timeout};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between keyring updates.
const UPDATE_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum time to wait for the keyring at startup and shutdown.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct StoredHead {
    entries: u64,
    head: String,
}

/// Reads the entry from the keyring. Returns `None` if no entry is stored. Blocks on the keyring.
///
/// # Errors
/// Returns [`SecretError`] if the keyring is not available.
pub fn read_stored(home: &Home) -> Result<Option<ChainPosition>, SecretError> {
    let Some(keyring) = Keyring::open_unlocked(KeyringSection::AuditLog)? else { return Ok(None) };
    in_keyring(&keyring, home)
}

/// Reads the stored entry if the head file is unusable. Returns `None` if the head file is usable or the keyring does
/// not answer in time.
pub async fn read_if_needed(home: &Home) -> Option<ChainPosition> {
    if !home.has_keyring || KnownHead::read(&home.audit_head()).problem().is_none() {
        return None;
    }
    let home = home.clone();
    tokio::time::timeout(TIMEOUT, with_unlock_timeout(move || read_stored(&home))).await.ok()?.ok()?
}

/// Keeps the stored entry of one home directory up to date.
#[derive(Debug, Clone)]
pub struct RecordHead {
    home: Home,
    audit: Audit,
    health: Health,
    /// `true` once the log has been compared with the stored entry. Only then may the entry be replaced.
    compared: Arc<AtomicBool>,
}

impl RecordHead {
    /// Creates the value without accessing the keyring. Call [`RecordHead::run`] next.
    pub fn new(home: Home, audit: Audit, health: Health) -> Self {
        Self { home, audit, health, compared: Arc::default() }
    }

    /// Compares the log with the stored entry once the keyring is available, and then updates the entry periodically.
    pub async fn run(self) {
        if !self.home.has_keyring {
            return;
        }
        let mut stored = None;
        loop {
            let (written, _) = self.audit.status();
            if stored.as_ref() != Some(&written) {
                // If the keyring is unavailable or locked, the next iteration retries.
                stored = self.store().await.ok().flatten();
            }
            tokio::time::sleep(UPDATE_INTERVAL).await;
        }
    }

    /// Stores the newest entry at shutdown.
    pub async fn end(&self) {
        if self.home.has_keyring {
            // After the timeout, an older entry stays in the keyring.
            let _ = tokio::time::timeout(TIMEOUT, self.store()).await;
        }
    }

    /// Stores the newest entry. Returns `None` if the keyring is locked.
    async fn store(&self) -> Result<Option<ChainPosition>, SecretError> {
        if !self.compared.load(Ordering::Acquire) && !self.compare().await? {
            return Ok(None);
        }
        let written = self.audit.flush().await;
        if self.audit.status().1.is_err() {
            return Ok(None);
        }
        let home = self.home.clone();
        with_unlock_timeout(move || {
            let Some(keyring) = Keyring::open_unlocked(KeyringSection::AuditLog)? else { return Ok(None) };
            let known = StoredHead { entries: written.entries, head: written.head.clone() };
            let text =
                serde_json::to_string(&known).map_err(|problem| SecretError::Failed(problem.to_string()))?;
            keyring.set(&name(&home)?, &Secret::new(text))?;
            Ok(Some(written))
        })
        .await
    }

    /// Checks that the log still contains the stored entry, and reports a problem if it does not. Returns `false` if
    /// the keyring is locked.
    async fn compare(&self) -> Result<bool, SecretError> {
        let home = self.home.clone();
        let known = with_unlock_timeout(move || match Keyring::open_unlocked(KeyringSection::AuditLog)? {
            Some(keyring) => in_keyring(&keyring, &home).map(Some),
            None => Ok(None),
        });
        let Some(known) = known.await? else { return Ok(false) };
        if let Some(known) = known {
            match self.find_difference(&known).await {
                Some(found) => self.report(&known, &found).await,
                // The keyring confirms the end of the log even if the head file could not.
                None => self.health.set(HealthComponent::Record, None),
            }
        }
        self.compared.store(true, Ordering::Release);
        Ok(true)
    }

    /// Returns a description of the difference if the log no longer contains the stored entry, or `None` if it still
    /// does.
    async fn find_difference(&self, known: &ChainPosition) -> Option<String> {
        let opened = self.audit.opened_at();
        if known.entries > opened.entries || (known.entries == opened.entries && known.head != opened.head) {
            return Some(format!("found {}", opened.entries));
        }
        self.audit.unknown_end()?;
        // Without a head file, earlier entries may have been replaced too, so the whole log is checked.
        let (dir, known) = (self.home.audit(), known.clone());
        let checked = tokio::task::spawn_blocking(move || check_written(&dir, &known)).await;
        match checked {
            Ok(Ok(checked)) => checked.problem,
            Ok(Err(problem)) => Some(format!("failed to read the record: {problem}")),
            Err(problem) => Some(format!("failed to read the record: {problem}")),
        }
    }

    async fn report(&self, known: &ChainPosition, found: &str) {
        let text = format!(
            "the record was truncated or replaced while IronCurtain was not running: the keyring lists {} entries up to {}, but the check reports: {found}",
            known.entries, known.head
        );
        self.health.set(HealthComponent::Record, Some(text.clone()));
        if let Err(problem) = self.audit.record(Entry::new(Event::Daemon, text)).await {
            tracing::error!(%problem, "failed to record that the record was truncated");
        }
    }
}

fn in_keyring(keyring: &Keyring, home: &Home) -> Result<Option<ChainPosition>, SecretError> {
    let secret = match keyring.get(&name(home)?) {
        Err(SecretError::Missing(_)) => return Ok(None),
        found => found?,
    };
    let known: StoredHead =
        serde_json::from_str(secret.reveal()).map_err(|problem| SecretError::Failed(problem.to_string()))?;
    Ok(Some(ChainPosition { entries: known.entries, head: known.head }))
}

/// Returns the name of the secret in the keyring. The name is unique per home directory.
fn name(home: &Home) -> Result<SecretName, SecretError> {
    let home_hash = Sha256::digest(home.state.as_os_str().as_encoded_bytes());
    let home_hash: String = home_hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(SecretName::try_from(format!("record-{home_hash}").as_str())?)
}
