//! The time that a permission lasts.

use serde::Serialize;
use std::time::Duration;

/// The time that a permission lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// This call only.
    Once,
    /// Until the session ends.
    Session,
    /// Fifteen minutes by the clock.
    QuarterHour,
    /// One hour by the clock.
    Hour,
    /// Until it is taken back.
    Always,
}

impl Lifetime {
    /// The words on the button.
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

    /// Its length by the clock, where it has one.
    #[must_use]
    pub fn length(self) -> Option<Duration> {
        match self {
            Self::QuarterHour => Some(Duration::from_secs(15 * 60)),
            Self::Hour => Some(Duration::from_secs(60 * 60)),
            Self::Once | Self::Session | Self::Always => None,
        }
    }
}
