//! One entry of a path list.

use serde::{Deserialize, Deserializer, de};

/// Path as written in the settings. It is a pattern if it contains pattern characters and is not marked as literal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "WrittenPath"))]
pub struct PathEntry {
    pub path: String,
    pub literal: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a path, or { \"path\": PATH, \"literal\": true }")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum WrittenPath {
    Path(String),
    Marked(Marked),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Marked {
    path: String,
    literal: bool,
}

impl<'de> Deserialize<'de> for PathEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = match WrittenPath::deserialize(deserializer)? {
            WrittenPath::Path(path) => Self { path, literal: false },
            WrittenPath::Marked(Marked { path, literal: true }) => Self { path, literal: true },
            WrittenPath::Marked(_) => return Err(de::Error::custom("`literal` can only be `true`")),
        };
        if entry.path.is_empty() {
            return Err(de::Error::custom("a path cannot be empty"));
        }
        if entry.path.contains('\0') {
            return Err(de::Error::custom("a path cannot have a NUL character in it"));
        }
        Ok(entry)
    }
}
