//! The newest entry of the record as the keyring knows it, so that a log that was cut shows although the file that knows it was cut
//! too.
//!
//! - Off the path of calls: it is written now and then, and at the end, after the entry is on the disk.
//! - Nobody is asked to unlock a keyring for it. What it knows may be older than the log, never newer.

use crate::health::{Concern, Health};
use crate::home::Home;
use crate::secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};
use ironcurtain_audit::{Audit, Entry, Event, Written};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The time between two looks at what is new.
const EVERY: Duration = Duration::from_secs(60);

/// The time that the keyring may take at the end.
const END_BOUND: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Known {
    entries: u64,
    head: String,
}

/// The newest entry that the keyring knows; nothing where it knows none, or does not say. Waits for the keyring.
///
/// # Errors
/// [`SecretError`], when it cannot be asked.
pub fn known(home: &Home) -> Result<Option<Written>, SecretError> {
    let Some(keyring) = Keyring::open_unlocked(Shelf::Record)? else { return Ok(None) };
    let secret = match keyring.get(&name(home)?) {
        Err(SecretError::Missing(_)) => return Ok(None),
        found => found?,
    };
    let known: Known =
        serde_json::from_str(secret.reveal()).map_err(|problem| SecretError::Failed(problem.to_string()))?;
    Ok(Some(Written { entries: known.entries, head: known.head }))
}

/// Looks whether the log has what the keyring knows, and keeps what is new from then on. For a home that has a keyring.
pub(crate) async fn follow(home: Home, audit: Audit, health: Health) {
    compare(&home, &audit, &health).await;
    let mut kept = None;
    loop {
        let (written, _) = audit.standing();
        if kept.as_ref() != Some(&written) {
            // Without a keyring, or with a locked one, it is tried again.
            kept = keep(&home, &audit).await.ok().flatten();
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Keeps the newest, for an end in order.
pub(crate) async fn end(home: &Home, audit: &Audit) {
    if home.has_keyring {
        // What it knows is a little older then.
        let _ = tokio::time::timeout(END_BOUND, keep(home, audit)).await;
    }
}

/// Keeps the newest; nothing where the keyring is locked.
async fn keep(home: &Home, audit: &Audit) -> Result<Option<Written>, SecretError> {
    let (written, stands) = audit.standing();
    audit.settle().await;
    if stands.is_err() {
        return Ok(None);
    }
    let home = home.clone();
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

/// A log that ends before what the keyring knows is a trouble, and on record.
async fn compare(home: &Home, audit: &Audit, health: &Health) {
    let of = home.clone();
    let Ok(Some(known)) = in_time(move || known(&of)).await else { return };
    let (written, _) = audit.standing();
    let is_other = known.entries == written.entries && known.head != written.head;
    if known.entries < written.entries || (known.entries == written.entries && !is_other) {
        return;
    }
    let text = format!(
        "the record was cut or exchanged while nobody wrote it: the keyring knows {} entries up to {}, and there are {}",
        known.entries, known.head, written.entries
    );
    health.set(Concern::Record, Some(text.clone()));
    if let Err(problem) = audit.record(Entry::new(Event::Daemon, text)).await {
        tracing::error!(%problem, "a cut of the record is not on record");
    }
}

/// Each home has its own.
fn name(home: &Home) -> Result<SecretName, SecretError> {
    let place = Sha256::digest(home.state.as_os_str().as_encoded_bytes());
    let place: String = place.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(SecretName::try_from(format!("record-{place}").as_str())?)
}
