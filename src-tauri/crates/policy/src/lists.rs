//! Named lists that rules refer to as `@name`.
//!
//! - What is in force is (values + additions) - removals.
//! - A policy that names a list which is not defined is refused: a deny rule over a list that went missing would no
//!   longer deny.

use crate::LoadError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The lists of one dynamic-lists file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DynamicLists {
    lists: BTreeMap<String, Vec<String>>,
    missing_is_empty: bool,
}

impl DynamicLists {
    /// Reads a dynamic-lists file.
    ///
    /// # Errors
    /// When the text is not such a file.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let stored: StoredFile = crate::strict::read(text, file)?;
        crate::error::check_version(file, stored.schema_version)?;
        let lists = stored.lists.into_iter().map(|(name, list)| (name, list.in_force())).collect();
        Ok(Self { lists, missing_is_empty: false })
    }

    /// Takes lists that are not defined for empty ones: for replaying recorded calls. The policy in force goes without.
    #[must_use]
    pub fn missing_as_empty(self) -> Self {
        Self { missing_is_empty: true, ..self }
    }

    /// What is in force for the list of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// What is in force for the list of this name; nothing when there is no such list.
    pub(crate) fn find(&self, name: &str) -> Option<&[String]> {
        self.lists.get(name).map(Vec::as_slice).or_else(|| self.missing_is_empty.then_some(&[]))
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredFile {
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: Option<u64>,
    lists: BTreeMap<String, StoredList>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct StoredList {
    values: Vec<String>,
    #[serde(default)]
    manual_additions: Vec<String>,
    #[serde(default)]
    manual_removals: Vec<String>,
}

impl StoredList {
    fn in_force(self) -> Vec<String> {
        let removed: BTreeSet<String> = self.manual_removals.into_iter().collect();
        let mut seen = BTreeSet::new();
        self.values
            .into_iter()
            .chain(self.manual_additions)
            .filter(|value| !removed.contains(value) && seen.insert(value.clone()))
            .collect()
    }
}
