//! Arguments of `ironcurtain audit`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Default number of log entries that `audit` shows.
pub const DEFAULT_TAIL: usize = 20;

/// Default maximum number of entries that `audit search` prints.
const DEFAULT_FOUND: usize = 50;

#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Show the newest entries.
    Tail {
        /// Number of entries to show.
        #[arg(short = 'n', long, default_value_t = DEFAULT_TAIL)]
        lines: usize,
    },
    /// Verify the hash chain of the audit log, up to the newest known entry.
    Verify(VerifyOptions),
    /// Find entries by text, server, tool, session, path, decision or time.
    Search {
        #[command(flatten)]
        of: FilterOptions,
        /// Maximum number of entries; the newest are shown.
        #[arg(long, default_value_t = DEFAULT_FOUND)]
        limit: usize,
    },
    /// Export entries as recorded, oldest first.
    Export {
        #[command(flatten)]
        of: FilterOptions,
        /// Output format.
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        /// File to create, which must not exist yet. Default: standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Options of `audit verify`.
#[derive(Debug, Args)]
pub struct VerifyOptions {
    /// File with signed heads, all of which the log must contain.
    #[arg(long, value_name = "FILE")]
    pub heads: Option<PathBuf>,
    /// Public key of the heads, as `ironcurtain export status` shows it. Default: the key of this machine.
    #[arg(long, requires = "heads")]
    pub key: Option<String>,
    /// Folder with the log. Default: the log of this machine.
    #[arg(long, value_name = "DIR", requires = "heads")]
    pub log: Option<PathBuf>,
}

/// Filter for audit entries. An entry must match every given option.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// Words that the entry contains; `main*` matches every word that starts with `main`.
    pub text: Vec<String>,
    /// Server that was called.
    #[arg(long)]
    pub server: Option<String>,
    /// Tool that was called.
    #[arg(long)]
    pub tool: Option<String>,
    /// Session that the entry belongs to.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Path that the entry concerns, or a folder that contains it.
    #[arg(long)]
    pub path: Option<PathBuf>,
    /// Policy decision.
    #[arg(long, value_enum)]
    pub decision: Option<Decided>,
    /// Only entries since this time: `30m`, `12h`, `7d`, `2026-11-01` or `2026-11-01T12:00:00Z`.
    #[arg(long, value_name = "WHEN", value_parser = crate::policy::point_in_time::parse_time)]
    pub since: Option<u64>,
    /// Only entries until this time, in the same formats.
    #[arg(long, value_name = "WHEN", value_parser = crate::policy::point_in_time::parse_time)]
    pub until: Option<u64>,
}

/// Policy decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Decided {
    /// Allowed.
    Allow,
    /// Denied.
    Deny,
    /// Required your approval.
    Escalate,
}

/// Format of exported entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values, for spreadsheets.
    Csv,
}
