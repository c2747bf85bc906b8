//! Lists of one server, read page by page within limits.

use crate::wire::Fields;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum size of one list in bytes. Further entries are omitted.
const MAX_BYTES: usize = 4 << 20;

/// Maximum number of pages per list.
const MAX_PAGES: usize = 1000;

/// Kind of list that a server can provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CatalogueKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl CatalogueKind {
    /// All kinds, in the order in which lists are merged.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Returns the kind of list that a method requests.
    pub fn for_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// Returns the method that requests the list.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns the server capability that announces the list.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// Returns the method of the notification that reports a changed list.
    pub fn change_notification(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }

    /// Returns the result field that contains the list.
    pub fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the field that identifies an entry.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Entries of one server's list.
#[derive(Debug, Default, Clone)]
pub struct ListEntries {
    /// Identifying name and unchanged fields of each entry.
    pub entries: Vec<(String, Fields)>,
    bytes: usize,
    /// Number of entries omitted because they were invalid or exceeded [`MAX_BYTES`].
    omitted: usize,
    pages: usize,
}

impl ListEntries {
    /// Builds a list from serialized tools. Invalid tools are omitted.
    #[must_use]
    pub fn from_tools(tools: &[String]) -> Self {
        let mut listed = Self::default();
        for tool in tools {
            let tool = serde_json::from_str::<Fields>(tool).ok();
            let name = tool.as_ref().and_then(|tool| serde_json::from_str(tool.get("name")?.get()).ok());
            match name.zip(tool) {
                Some(entry) => listed.entries.push(entry),
                None => listed.omitted += 1,
            }
        }
        listed
    }

    /// Adds a page. Returns the cursor of the next page, or `None` if this is the last page or a limit is reached.
    pub fn add_page(
        &mut self,
        kind: CatalogueKind,
        page: &RawValue,
    ) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        self.add_page_as((kind.field(), kind.key()), page)
    }

    /// Adds a page whose entries are in `field` and are identified by `key`.
    pub fn add_page_as(
        &mut self,
        (field, key): (&str, &str),
        page: &RawValue,
    ) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        let page: Fields = serde_json::from_str(page.get())?;
        let entries: Vec<&RawValue> = match page.get(field) {
            Some(list) => serde_json::from_str(list.get())?,
            None => Vec::new(),
        };
        for raw in entries {
            self.bytes = self.bytes.saturating_add(raw.get().len());
            let entry = serde_json::from_str::<Fields>(raw.get()).ok();
            let key = entry.as_ref().and_then(|entry| serde_json::from_str(entry.get(key)?.get()).ok());
            match (entry, key) {
                (Some(entry), Some(key)) if self.bytes <= MAX_BYTES => self.entries.push((key, entry)),
                _ => self.omitted += 1,
            }
        }
        self.pages += 1;
        let next = page.get("nextCursor").filter(|cursor| cursor.get() != "null");
        Ok(next.filter(|_| self.pages < MAX_PAGES && self.bytes <= MAX_BYTES).map(ToOwned::to_owned))
    }

    /// Returns the number of entries omitted because they were invalid or exceeded the size limit.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// All lists of one server.
pub type Lists = BTreeMap<CatalogueKind, ListEntries>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    #[test]
    fn endless_lists_and_invalid_entries_are_left_out() {
        let mut listed = ListEntries::default();
        let big = json!({ "name": "x", "pad": "y".repeat(1 << 20) });
        let page = to_raw_value(&json!({ "tools": [big, 7, {}], "nextCursor": "again" })).unwrap();
        let mut pages = 1;
        while listed.add_page(CatalogueKind::Tools, &page).unwrap().is_some() {
            pages += 1;
        }
        assert_eq!((pages, listed.entries.len(), listed.omitted()), (4, 3, 9));
    }
}
