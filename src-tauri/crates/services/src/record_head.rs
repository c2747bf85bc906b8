//! Stores the hash of the newest audit entry in the keyring. This reveals a truncated log even if an attacker has also
//! changed the log's head file.
//!
//! - Runs periodically and at shutdown, after the entries have been written to disk. Never delays a call.
//! - Never prompts to unlock the keyring. The stored entry may be older than the log's newest entry, but never newer.
//! - INVARIANT: the stored entry is replaced only after the log has been compared with it.

use crate::health::{Concern, Health};
use ironcurtain_audit::{Audit, Entry, Event, KnownHead, Written, check_written};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between keyring updates.
const EVERY: Duration = Duration::from_secs(60);

/// Maximum time to wait for the keyring at startup and shutdown.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Known {
    entries: u64,
    head: String,
}

/// Reads the entry from the keyring. Returns `None` if no entry is stored. Blocks on the keyring.
///
/// # Errors
/// Returns [`SecretError`] if the keyring is not available.
pub fn known(home: &Home) -> Result<Option<Written>, SecretError> {
    let Some(keyring) = Keyring::open_unlocked(Shelf::Record)? else { return Ok(None) };
    in_keyring(&keyring, home)
}

/// Reads the stored entry if the head file is unusable. Returns `None` if the head file is usable or the keyring does
/// not answer in time.
pub async fn if_needed(home: &Home) -> Option<Written> {
    if !home.has_keyring || KnownHead::read(&home.audit_head()).problem().is_none() {
        return None;
    }
    let of = home.clone();
    tokio::time::timeout(TIMEOUT, in_time(move || known(&of))).await.ok()?.ok()?
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
    /// Creates the value without accessing the keyring. Call [`RecordHead::follow`] next.
    pub fn new(home: Home, audit: Audit, health: Health) -> Self {
        Self { home, audit, health, compared: Arc::default() }
    }

    /// Compares the log with the stored entry once the keyring is available, and then updates the entry periodically.
    pub async fn follow(self) {
        if !self.home.has_keyring {
            return;
        }
        let mut kept = None;
        loop {
            let (written, _) = self.audit.standing();
            if kept.as_ref() != Some(&written) {
                // If the keyring is unavailable or locked, the next iteration retries.
                kept = self.keep().await.ok().flatten();
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Stores the newest entry at shutdown.
    pub async fn end(&self) {
        if self.home.has_keyring {
            // After the timeout, an older entry stays in the keyring.
            let _ = tokio::time::timeout(TIMEOUT, self.keep()).await;
        }
    }

    /// Stores the newest entry. Returns `None` if the keyring is locked.
    async fn keep(&self) -> Result<Option<Written>, SecretError> {
        if !self.compared.load(Ordering::Acquire) && !self.compare().await? {
            return Ok(None);
        }
        let written = self.audit.settle().await;
        if self.audit.standing().1.is_err() {
            return Ok(None);
        }
        let home = self.home.clone();
        in_time(move || {
            let Some(keyring) = Keyring::open_unlocked(Shelf::Record)? else { return Ok(None) };
            let known = Known { entries: written.entries, head: written.head.clone() };
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
        let of = self.home.clone();
        let known = in_time(move || match Keyring::open_unlocked(Shelf::Record)? {
            Some(keyring) => in_keyring(&keyring, &of).map(Some),
            None => Ok(None),
        });
        let Some(known) = known.await? else { return Ok(false) };
        if let Some(known) = known {
            match self.missing(&known).await {
                Some(found) => self.report(&known, &found).await,
                // The keyring confirms the end of the log even if the head file could not.
                None => self.health.set(Concern::Record, None),
            }
        }
        self.compared.store(true, Ordering::Release);
        Ok(true)
    }

    /// Returns a description of the difference if the log no longer contains the stored entry, or `None` if it still
    /// does.
    async fn missing(&self, known: &Written) -> Option<String> {
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

    async fn report(&self, known: &Written, found: &str) {
        let text = format!(
            "the record was truncated or replaced while IronCurtain was not running: the keyring lists {} entries up to {}, but the check reports: {found}",
            known.entries, known.head
        );
        self.health.set(Concern::Record, Some(text.clone()));
        if let Err(problem) = self.audit.record(Entry::new(Event::Daemon, text)).await {
            tracing::error!(%problem, "failed to record that the record was truncated");
        }
    }
}

fn in_keyring(keyring: &Keyring, home: &Home) -> Result<Option<Written>, SecretError> {
    let secret = match keyring.get(&name(home)?) {
        Err(SecretError::Missing(_)) => return Ok(None),
        found => found?,
    };
    let known: Known =
        serde_json::from_str(secret.reveal()).map_err(|problem| SecretError::Failed(problem.to_string()))?;
    Ok(Some(Written { entries: known.entries, head: known.head }))
}

/// Returns the name of the secret in the keyring. The name is unique per home directory.
fn name(home: &Home) -> Result<SecretName, SecretError> {
    let place = Sha256::digest(home.state.as_os_str().as_encoded_bytes());
    let place: String = place.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(SecretName::try_from(format!("record-{place}").as_str())?)
}
