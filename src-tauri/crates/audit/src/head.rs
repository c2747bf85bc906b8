//! The newest entry as it is known outside of the log, so that a log that was cut, or an older copy of it, shows.
//!
//! - INVARIANT: written after the entry that it names is on the disk. It may be older than the log, never newer: a kill or a
//!   power cut between the two is no false alarm.
//! - Whoever may write the person's files can change both. What it shows is an accident, or a hand that knows of one only.

use crate::chain::Written;
use ironcurtain_paths::bounded_read;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Known {
    entries: u64,
    head: String,
}

/// The newest entry that is known. Nothing, where there is no such file.
///
/// # Errors
/// When the file cannot be read, or is not understood.
pub(super) fn read(file: &Path) -> io::Result<Option<Written>> {
    let Some(text) = bounded_read::text(file)? else { return Ok(None) };
    let Known { entries, head } =
        serde_json::from_str(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
    Ok(Some(Written { entries, head }))
}

/// Writes it, in the place of the one before.
///
/// # Errors
/// When it cannot be written: then the one before is still there.
pub(super) fn write(file: &Path, written: &Written) -> io::Result<()> {
    let known = Known { entries: written.entries, head: written.head.clone() };
    let aside = file.with_extension("new");
    match std::fs::remove_file(&aside) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let mut new: File = bounded_read::open_own(&aside)?;
    new.write_all(serde_json::to_string(&known)?.as_bytes())?;
    new.sync_data()?;
    std::fs::rename(&aside, file)
}
