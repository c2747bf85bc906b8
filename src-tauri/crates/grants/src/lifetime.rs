//! Lifetimes that the user can choose for a permission.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lifetime of a permission, as chosen by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// A single call.
    Once,
    /// Until the session is closed.
    Session,
    /// Fifteen minutes.
    QuarterHour,
    /// One hour.
    Hour,
    /// Until it is revoked.
    Always,
}

impl Lifetime {
    /// Returns the label for buttons and lists.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "this session",
            Self::QuarterHour => "15 minutes",
            Self::Hour => "1 hour",
            Self::Always => "always",
        }
    }

    /// Returns the duration, or `None` if the lifetime has no fixed duration.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::QuarterHour => Some(Duration::from_secs(15 * 60)),
            Self::Hour => Some(Duration::from_secs(60 * 60)),
            Self::Once | Self::Session | Self::Always => None,
        }
    }
}
