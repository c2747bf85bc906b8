//! Log messages, which a client of this revision wants with single requests or not at all.

use crate::wire::Fields;
use serde_json::value::RawValue;

/// A level, by its place in the order of the protocol.
pub(super) type Level = usize;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The level of this name.
pub(super) fn level(name: &str) -> Option<Level> {
    LEVELS.iter().position(|level| *level == name)
}

/// The name of a level.
pub(super) fn name(level: Level) -> &'static str {
    LEVELS.get(level).copied().unwrap_or("debug")
}

/// The level of a log message.
pub(super) fn level_of(params: Option<&RawValue>) -> Option<Level> {
    let params: Fields = serde_json::from_str(params?.get()).ok()?;
    level(&serde_json::from_str::<String>(params.get("level")?.get()).ok()?)
}
