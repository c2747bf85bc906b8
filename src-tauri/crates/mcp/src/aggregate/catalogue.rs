//! Merged tool, prompt and resource lists of all servers.
//!
//! - A server's entry is unchanged except for its name.
//! - Merged lists have pages of their own, independent of the servers' pages.

use super::lists::{CatalogueKind, Lists};
use super::names::{AssignedNames, EntryKey};
use super::qualified_uri::{is_reserved, parse, qualify};
use crate::wire::Fields;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, HashSet};

/// Number of entries per page.
const PAGE_LEN: usize = 500;

/// Maximum number of resources that are remembered because a call result links to them.
const MAX_LINKED: usize = 1000;

/// Merged lists of all servers, with the server of each entry.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: AssignedNames,
    prompts: AssignedNames,
    entries: BTreeMap<CatalogueKind, Vec<Box<RawValue>>>,
    /// Name of the server that lists each resource, by URI.
    resources: BTreeMap<String, String>,
    /// URIs that several servers list, or that use our scheme. The client sees them as qualified URIs.
    ambiguous_uris: HashSet<String>,
    templates: Vec<(String, String)>,
    /// Servers that list resources or templates.
    with_resources: Vec<String>,
    linked: BTreeMap<String, (String, u64)>,
    last_link: u64,
    warnings: Vec<String>,
}

impl Catalogue {
    /// Merges the servers' lists. Returns the kinds of lists that changed.
    pub fn update<'a>(
        &mut self,
        servers: impl Iterator<Item = (&'a str, &'a Lists)> + Clone,
        with_resources: Vec<String>,
    ) -> Vec<CatalogueKind> {
        let assign_names = |kind: CatalogueKind| {
            AssignedNames::assign(servers.clone().flat_map(|(server, lists)| entry_keys(kind, server, lists)))
        };
        (self.tools, self.prompts) =
            (assign_names(CatalogueKind::Tools), assign_names(CatalogueKind::Prompts));
        self.warnings = self.tools.warnings().iter().chain(self.prompts.warnings()).cloned().collect();
        self.ambiguous_uris = ambiguous_uris(servers.clone());
        self.resources.clear();
        self.templates.clear();
        self.with_resources = with_resources;
        let before = std::mem::take(&mut self.entries);
        for kind in CatalogueKind::ALL {
            let mut entries = Vec::new();
            let mut seen = HashSet::new();
            for (server, lists) in servers.clone() {
                for (key, entry) in lists.get(&kind).into_iter().flat_map(|listed| &listed.entries) {
                    entries.extend(self.entry(kind, (server, key), entry, &mut seen));
                }
            }
            self.entries.insert(kind, entries);
        }
        let raw_entries = |lists: &BTreeMap<CatalogueKind, Vec<Box<RawValue>>>, kind: CatalogueKind| {
            lists.get(&kind).into_iter().flatten().map(|raw| raw.get().to_owned()).collect::<Vec<_>>()
        };
        CatalogueKind::ALL
            .into_iter()
            .filter(|kind| raw_entries(&before, *kind) != raw_entries(&self.entries, *kind))
            .collect()
    }

    /// Returns an entry as the client sees it, or `None` if another entry has the same name.
    fn entry(
        &mut self,
        kind: CatalogueKind,
        (server, key): (&str, &str),
        entry: &Fields,
        seen: &mut HashSet<String>,
    ) -> Option<Box<RawValue>> {
        let mut entry = entry.clone();
        let name = match kind {
            CatalogueKind::Tools => self.tools.name(&(server.to_owned(), key.to_owned()))?.to_owned(),
            CatalogueKind::Prompts => self.prompts.name(&(server.to_owned(), key.to_owned()))?.to_owned(),
            CatalogueKind::Resources | CatalogueKind::Templates if self.ambiguous_uris.contains(key) => {
                qualify(server, key)
            }
            CatalogueKind::Resources | CatalogueKind::Templates => key.to_owned(),
        };
        if !seen.insert(name.clone()) {
            self.warnings
                .push(format!("`{key}` of `{server}` is omitted, because another entry has this name"));
            return None;
        }
        match kind {
            CatalogueKind::Tools | CatalogueKind::Prompts => entry.set("name", to_raw_value(&name).ok()?),
            CatalogueKind::Resources => {
                if name != key {
                    entry.set("uri", to_raw_value(&name).ok()?);
                }
                self.resources.insert(name, server.to_owned());
            }
            CatalogueKind::Templates => {
                if name != key {
                    entry.set("uriTemplate", to_raw_value(&name).ok()?);
                }
                let prefix = name.split('{').next().unwrap_or_default();
                self.templates.push((prefix.to_owned(), server.to_owned()));
            }
        }
        to_raw_value(&entry).ok()
    }

    /// Returns one page as a list result, or `None` if the cursor is invalid.
    pub fn page(
        &self,
        kind: CatalogueKind,
        cursor: Option<&str>,
    ) -> Option<BTreeMap<&'static str, Box<RawValue>>> {
        let offset: usize = cursor.map_or(Some(0), |cursor| cursor.parse().ok())?;
        let all = self.entries.get(&kind).map(Vec::as_slice).unwrap_or_default();
        let rest = all.get(offset..)?;
        let mut page = BTreeMap::new();
        page.insert(kind.field(), to_raw_value(rest.get(..PAGE_LEN).unwrap_or(rest)).ok()?);
        if rest.len() > PAGE_LEN {
            page.insert("nextCursor", to_raw_value(&(offset + PAGE_LEN).to_string()).ok()?);
        }
        Some(page)
    }

    /// Returns the server that owns a tool or prompt, and the server's own name for it.
    pub fn owner(&self, kind: CatalogueKind, name: &str) -> Option<&EntryKey> {
        match kind {
            CatalogueKind::Tools => self.tools.owner(name),
            CatalogueKind::Prompts => self.prompts.owner(name),
            CatalogueKind::Resources | CatalogueKind::Templates => None,
        }
    }

    /// Returns the server that a resource belongs to, and the resource's URI on that server. The first match wins: a
    /// qualified URI, the server that lists the URI, the longest matching template prefix, a link in a result, a
    /// template without a prefix, or the only server with resources.
    pub fn server_of<'a>(&'a self, uri: &'a str) -> Option<(&'a str, &'a str)> {
        if is_reserved(uri) {
            return parse(uri, &self.with_resources);
        }
        let by_link = || self.linked.get(uri).map(|(server, _)| server.as_str());
        let only = || match self.with_resources.as_slice() {
            [only] => Some(only.as_str()),
            _ => None,
        };
        let is_claimed =
            || self.templates.iter().any(|(prefix, _)| !prefix.is_empty() && uri.starts_with(prefix));
        let listed = self.resources.get(uri).map(String::as_str);
        let found = listed
            .or_else(|| self.server_by_template(uri, |prefix| !prefix.is_empty()))
            .or_else(by_link)
            .or_else(|| if is_claimed() { None } else { self.server_by_template(uri, str::is_empty) })
            .or_else(only);
        found.map(|server| (server, uri))
    }

    /// Returns the server with the longest matching template prefix that `counts` accepts, or `None` if several servers
    /// share that prefix.
    fn server_by_template(&self, uri: &str, accepts_prefix: impl Fn(&str) -> bool) -> Option<&str> {
        let matches = |prefix: &str| accepts_prefix(prefix) && uri.starts_with(prefix);
        let matching = || self.templates.iter().filter(|(prefix, _)| matches(prefix));
        let longest = matching().map(|(prefix, _)| prefix.len()).max()?;
        let mut owners = matching().filter(|(prefix, _)| prefix.len() == longest).map(|(_, server)| server);
        let first = owners.next()?;
        owners.all(|other| other == first).then_some(first)
    }

    /// Returns the URI under which the client sees a server's resource, or `None` if the URI belongs to another server.
    pub fn client_uri(&self, server: &str, uri: &str) -> Option<String> {
        if self.ambiguous_uris.contains(uri) || is_reserved(uri) {
            return Some(qualify(server, uri));
        }
        self.server_of(uri).filter(|(owner, _)| *owner == server).map(|_| uri.to_owned())
    }

    /// Remembers the resources that a call result links to.
    pub fn add_links(&mut self, server: &str, answer: &RawValue) {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            content: Vec<Block>,
        }
        #[derive(Deserialize)]
        struct Block {
            #[serde(default, rename = "type")]
            kind: String,
            uri: Option<String>,
        }
        if !answer.get().contains("resource_link") {
            return;
        }
        let Ok(answer) = serde_json::from_str::<Answer>(answer.get()) else { return };
        for uri in answer.content.into_iter().filter(|b| b.kind == "resource_link").filter_map(|b| b.uri) {
            self.last_link += 1;
            self.linked.entry(uri).or_insert_with(|| (server.to_owned(), self.last_link));
        }
        while self.linked.len() > MAX_LINKED {
            let oldest = self.linked.iter().min_by_key(|(_, (_, n))| *n).map(|(uri, _)| uri.clone());
            oldest.map(|uri| self.linked.remove(&uri));
        }
    }

    /// Removes the links found in this server's results.
    pub fn remove_links(&mut self, server: &str) {
        self.linked.retain(|_, (owner, _)| owner != server);
    }

    /// Returns warnings about renamed and omitted entries.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Returns the URIs that several servers list, or that use our scheme.
fn ambiguous_uris<'a>(servers: impl Iterator<Item = (&'a str, &'a Lists)> + Clone) -> HashSet<String> {
    let mut ambiguous_uris = HashSet::new();
    for kind in [CatalogueKind::Resources, CatalogueKind::Templates] {
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        for (server, uri) in servers.clone().flat_map(|(server, lists)| entry_keys(kind, server, lists)) {
            let owner = first.entry(uri.clone()).or_insert_with(|| server.clone());
            if *owner != server || is_reserved(&uri) {
                ambiguous_uris.insert(uri);
            }
        }
    }
    ambiguous_uris
}

fn entry_keys<'a>(
    kind: CatalogueKind,
    server: &'a str,
    lists: &'a Lists,
) -> impl Iterator<Item = EntryKey> + 'a {
    let entries = lists.get(&kind).into_iter().flat_map(|listed| &listed.entries);
    entries.map(move |(key, _)| (server.to_owned(), key.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::lists::ListEntries;
    use super::*;
    use serde_json::json;

    fn raw(value: serde_json::Value) -> Box<RawValue> {
        to_raw_value(&value).unwrap()
    }

    fn lists(kind: CatalogueKind, value: serde_json::Value) -> Lists {
        let mut listed = ListEntries::default();
        assert!(listed.add_page(kind, &raw(value)).unwrap().is_none());
        Lists::from([(kind, listed)])
    }

    #[test]
    fn only_the_name_of_a_tool_is_changed() {
        let one = RawValue::from_string(
            r#"{"tools":[{"name":"x","inputSchema":{"n":1.0},"icons":[1],"unknown":{"a":123456789012345678901}}]}"#.into(),
        )
        .unwrap();
        let mut listed = ListEntries::default();
        listed.add_page(CatalogueKind::Tools, &one).unwrap();
        let lists = Lists::from([(CatalogueKind::Tools, listed)]);
        let mut catalogue = Catalogue::default();
        assert_eq!(catalogue.update([("s", &lists)].into_iter(), Vec::new()), [CatalogueKind::Tools]);
        assert_eq!(catalogue.update([("s", &lists)].into_iter(), Vec::new()), []);
        let page = serde_json::to_string(&catalogue.page(CatalogueKind::Tools, None).unwrap()).unwrap();
        assert_eq!(
            page,
            r#"{"tools":[{"name":"s__x","inputSchema":{"n":1.0},"icons":[1],"unknown":{"a":123456789012345678901}}]}"#
        );
        assert_eq!(catalogue.owner(CatalogueKind::Tools, "s__x"), Some(&("s".to_owned(), "x".to_owned())));
        assert_eq!(catalogue.owner(CatalogueKind::Prompts, "s__x"), None);
    }

    #[test]
    fn paged_lists_are_merged_without_duplicates() {
        let mut listed = ListEntries::default();
        for prefix in (0..1200).step_by(100) {
            let tools: Vec<_> = (prefix..prefix + 100).map(|n| json!({ "name": format!("t{n}") })).collect();
            let next = (prefix < 1100).then_some(prefix);
            let more = listed
                .add_page(CatalogueKind::Tools, &raw(json!({ "tools": tools, "nextCursor": next })))
                .unwrap();
            assert_eq!(more.is_some(), prefix < 1100);
        }
        let mut catalogue = Catalogue::default();
        catalogue.update([("s", &Lists::from([(CatalogueKind::Tools, listed)]))].into_iter(), Vec::new());
        let (mut cursor, mut seen) = (None::<String>, Vec::new());
        loop {
            let page = serde_json::to_value(catalogue.page(CatalogueKind::Tools, cursor.as_deref()).unwrap())
                .unwrap();
            seen.extend(
                page["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()),
            );
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = Some(next.to_owned());
        }
        assert_eq!(seen, (0..1200).map(|n| format!("s__t{n}")).collect::<Vec<_>>());
        assert!(
            catalogue.page(CatalogueKind::Tools, Some("1201")).is_none()
                && catalogue.page(CatalogueKind::Tools, Some("x")).is_none()
        );
    }

    #[test]
    fn a_resource_belongs_to_one_server_by_list_template_link_or_default() {
        let both = [
            ("a", lists(CatalogueKind::Resources, json!({ "resources": [{ "uri": "memo://1" }] }))),
            (
                "b",
                lists(
                    CatalogueKind::Resources,
                    json!({ "resources": [{ "uri": "memo://1" }, { "uri": "memo://2" }] }),
                ),
            ),
            (
                "c",
                lists(
                    CatalogueKind::Templates,
                    json!({ "resourceTemplates": [{ "uriTemplate": "memo://c/{n}" }] }),
                ),
            ),
        ];
        let mut catalogue = Catalogue::default();
        let servers = both.iter().map(|(name, lists)| (*name, lists));
        catalogue.update(servers.clone(), ["a", "b", "c"].map(str::to_owned).to_vec());
        let server =
            |catalogue: &Catalogue, uri: &str| catalogue.server_of(uri).map(|(server, _)| server.to_owned());
        assert_eq!(server(&catalogue, "memo://1"), None, "it is listed twice");
        for of in ["a", "b"] {
            let one = format!("ironcurtain://{of}/memo://1");
            assert_eq!(catalogue.server_of(&one), Some((of, "memo://1")));
            assert!(
                serde_json::to_string(&catalogue.page(CatalogueKind::Resources, None).unwrap())
                    .unwrap()
                    .contains(&one)
            );
        }
        assert_eq!(server(&catalogue, "memo://2").as_deref(), Some("b"));
        assert_eq!(server(&catalogue, "memo://c/7").as_deref(), Some("c"));
        assert_eq!(server(&catalogue, "memo://x"), None);
        assert!(catalogue.warnings().is_empty());
        let link = json!({ "content": [{ "type": "resource_link", "uri": "memo://x" }, { "type": "text", "text": "resource_link" }] });
        catalogue.add_links("b", &raw(link));
        assert_eq!(server(&catalogue, "memo://x").as_deref(), Some("b"));
        catalogue.remove_links("b");
        catalogue.update(servers.take(1), vec!["a".into()]);
        assert_eq!(server(&catalogue, "memo://x").as_deref(), Some("a"));
    }

    #[test]
    fn the_longest_prefix_owns_an_address_and_an_empty_one_the_rest() {
        let templates = |template: &str| {
            lists(CatalogueKind::Templates, json!({ "resourceTemplates": [{ "uriTemplate": template }] }))
        };
        let all = [
            ("all", templates("{+any}")),
            ("notes", templates("notes://{n}")),
            ("private", templates("notes://private/{n}")),
            ("twin", templates("notes://{other}")),
        ];
        let mut catalogue = Catalogue::default();
        let names = all.iter().map(|(name, _)| (*name).to_owned()).collect();
        catalogue.update(all.iter().map(|(name, lists)| (*name, lists)), names);
        let server = |uri: &str| catalogue.server_of(uri).map(|(server, _)| server.to_owned());
        assert_eq!(server("notes://private/1").as_deref(), Some("private"));
        assert_eq!(server("memo://1").as_deref(), Some("all"));
        // Equal prefixes of two servers do not match, and neither does an empty prefix.
        assert_eq!(server("notes://1"), None);
        assert_eq!(catalogue.server_of("ironcurtain://notes/notes://1"), Some(("notes", "notes://1")));
    }

    #[test]
    fn a_server_can_notify_only_about_its_own_resources() {
        let resources = |uris: &[&str]| {
            let all: Vec<_> = uris.iter().map(|uri| json!({ "uri": uri })).collect();
            lists(CatalogueKind::Resources, json!({ "resources": all }))
        };
        let ours = "ironcurtain://a/memo://1";
        let all = [("a", resources(&["memo://1", "memo://2"])), ("b", resources(&["memo://1", ours]))];
        let mut catalogue = Catalogue::default();
        catalogue.update(all.iter().map(|(name, lists)| (*name, lists)), vec!["a".into(), "b".into()]);
        let address = |server: &str, uri: &str| catalogue.client_uri(server, uri);
        assert_eq!(address("a", "memo://2").as_deref(), Some("memo://2"));
        assert_eq!(address("b", "memo://2"), None);
        assert_eq!(address("b", "memo://1").as_deref(), Some("ironcurtain://b/memo://1"));
        // A server cannot take over another server's qualified URI by listing it.
        assert_eq!(catalogue.server_of(ours), Some(("a", "memo://1")));
        assert_eq!(address("b", ours).as_deref(), Some("ironcurtain://b/ironcurtain://a/memo://1"));
    }
}
