//! Log levels. A stateless client sets the level with each request.

use crate::wire::Fields;
use serde_json::value::RawValue;

/// Log level, as an index into [`LEVELS`]. Higher levels are more severe.
pub(super) type Level = usize;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Parses the name of a level. Returns `None` if it is unknown.
pub(super) fn parse(name: &str) -> Option<Level> {
    LEVELS.iter().position(|level| *level == name)
}

/// Returns the name of a level.
pub(super) fn name(level: Level) -> &'static str {
    LEVELS.get(level).copied().unwrap_or("debug")
}

/// Returns the level of a log message.
pub(super) fn message_level(params: Option<&RawValue>) -> Option<Level> {
    let params: Fields = serde_json::from_str(params?.get()).ok()?;
    parse(&serde_json::from_str::<String>(params.get("level")?.get()).ok()?)
}
