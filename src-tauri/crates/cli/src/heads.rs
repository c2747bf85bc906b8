//! `audit verify --heads`: checks a log against signed heads, on any machine.

use crate::screen::Screen;
use crate::text_lines::{TextLines, counted};
use anyhow::{Context, bail};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::time_of_day;
use ironcurtain_export::{CheckedHeads, KeyStore, PublicKey, check_heads};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Verifies that the log contains every head. Returns exit status 1 if a head is missing.
pub fn verify(
    heads: &Path,
    key: Option<&str>,
    log: Option<PathBuf>,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let key = match key {
        Some(key) => PublicKey::parse(key)
            .with_context(|| format!("`{key}` is not a public key; `ironcurtain export status` shows it"))?,
        None => own_key()?,
    };
    let log = match log {
        Some(log) if !log.is_dir() => bail!("`{}` is not a folder", log.display()),
        Some(log) => log,
        None => Home::from_env()?.audit(),
    };
    let CheckedHeads { log: checked, heads, removed, newest, problem } = check_heads(&log, heads, &key)?;
    let uncovered = checked.entries.saturating_sub(newest.entries);
    let mut out = TextLines::default();
    match &problem {
        Some(problem) => out.line(format_args!("The log does not match its signed heads: {problem}.")),
        None => {
            let time = time_of_day(newest.time);
            let contains = match heads {
                1 => "its signed head".to_owned(),
                heads => format!("all of its {heads} signed heads"),
            };
            out.line(format_args!("The log contains {contains}, up to entry {} at {time}.", newest.entries));
            if removed > 0 {
                out.line(format_args!(
                    "Removed by age, as a signed entry records: the entries up to {}, with {}.",
                    checked.removed,
                    counted(removed, "older signed head")
                ));
            }
            match uncovered {
                0 => out.line("No entry is newer."),
                1 => out.line("Not covered: the entry after it."),
                uncovered => out.line(format_args!("Not covered: the {uncovered} entries after it.")),
            }
        }
    }
    let value = json!({
        "intact": problem.is_none(), "problem": problem, "heads": heads, "removedHeads": removed, "entries": checked.entries,
        "covered": newest.entries, "signedAt": newest.time, "removed": checked.removed,
    });
    screen.show(&out, &value)?;
    Ok(if problem.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn own_key() -> anyhow::Result<PublicKey> {
    let home = Home::from_env()?;
    let key = KeyStore::new(&home.state, home.has_keyring).public()?;
    key.context("this machine has no device key; pass the public key of the other machine with `--key`")
}
