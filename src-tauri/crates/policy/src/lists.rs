//! Named lists that rules refer to as `@name`.
//!
//! - What is in force is (values + additions) - removals. A list that is missing is empty.

use crate::LoadError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The lists of one dynamic-lists file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DynamicLists {
    lists: BTreeMap<String, Vec<String>>,
}

impl DynamicLists {
    /// Reads a dynamic-lists file.
    ///
    /// # Errors
    /// When the text is not such a file.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let stored: StoredFile = serde_json::from_str(text)
            .map_err(|error| LoadError::Shape { file: file.to_owned(), message: error.to_string() })?;
        crate::error::check_version(file, stored.schema_version)?;
        let lists = stored.lists.into_iter().map(|(name, list)| (name, list.in_force())).collect();
        Ok(Self { lists })
    }

    /// What is in force for the list of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether there is a list of this name.
    #[must_use]
    pub fn is_defined(&self, name: &str) -> bool {
        self.lists.contains_key(name)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredFile {
    #[serde(default)]
    schema_version: Option<u64>,
    lists: BTreeMap<String, StoredList>,
}

#[derive(Deserialize)]
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
