//! Lifetime of a permission.

use serde::Serialize;
use std::time::Duration;

/// Lifetime of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// This call only.
    Once,
    /// Until the session ends.
    Session,
    /// Fifteen minutes.
    QuarterHour,
    /// One hour.
    Hour,
    /// Until it is revoked.
    Always,
}

impl Lifetime {
    /// Returns the words on the button.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "this session",
            Self::QuarterHour => "15 minutes",
            Self::Hour => "1 hour",
            Self::Always => "always",
        }
    }

    /// Returns its duration, if it has one.
    #[must_use]
    pub fn length(self) -> Option<Duration> {
        match self {
            Self::QuarterHour => Some(Duration::from_secs(15 * 60)),
            Self::Hour => Some(Duration::from_secs(60 * 60)),
            Self::Once | Self::Session | Self::Always => None,
        }
    }
}
