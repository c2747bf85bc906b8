//! A server that is to be added: of the catalog, by its package, or as its makers print it.
//!
//! - What the catalog does not know gets the least: no network, no file but a folder of its own, which it takes for the
//!   person's home, and a question about each tool that nobody has annotated.
//! - What a maker prints says what is started and nothing about its containment.
//! - What runs elsewhere is reached at its address, and has nothing here: no folder, no variable, no sandbox.

use super::{Catalog, CatalogError, EntryValues, KnownServer, Source};
use ironcurtain_daemon::home::Home;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A server that is to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// The name to add it under.
    pub name: String,
    /// Its entry.
    pub entry: Value,
    /// The meaning of its tools, where that is known.
    pub annotations: Option<Value>,
    /// The folder that it keeps its data in, where it does.
    pub data: Option<PathBuf>,
}

/// Why what was named cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AdditionError {
    /// The catalog does not have it, or wants to be told more.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// It is neither a server of the catalog nor a package.
    #[error(
        "the catalog has no `{name}`; it has `{ids}`; write a package as `npm:NAME` or `pypi:NAME`, a server that runs elsewhere as its `https://` address, and a maker's snippet as the path of its file, or `-`"
    )]
    NotKnown {
        /// The word.
        name: String,
        /// The ids there are.
        ids: String,
    },
    /// Settings are for servers of the catalog.
    #[error("`--set` is for servers of the catalog; `{0}` is none")]
    Settings(String),
    /// A snippet is no JSON object.
    #[error("the snippet is not understood: {0}")]
    NotJson(#[from] serde_json::Error),
    /// A snippet names no server, or several.
    #[error("the snippet has {0} servers; cut it to the one that is to be added")]
    NotOne(usize),
    /// A snippet says what is the person's to say.
    #[error(
        "the snippet says `{0}`, which is yours to say and not its maker's; take that out, and write it into `mcp-servers.json` yourself"
    )]
    NotTheMakers(String),
}

/// Keys of an entry that are the person's own.
const OURS: [&str; 5] = ["sandbox", "passEnv", "unannotated", "fileWrites", "worksWith"];

impl Addition {
    /// A known server.
    ///
    /// # Errors
    /// [`CatalogError`], when a setting is missing or not taken.
    pub fn known(
        home: &Home,
        known: &KnownServer,
        name: &str,
        from: Option<&Path>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, CatalogError> {
        let data = home.server_data(name);
        let entry = known.entry(EntryValues { data: &data, from, settings })?;
        let annotations = known.annotations(name)?;
        Ok(Self { name: name.to_owned(), entry, annotations, data: known.keeps_data().then_some(data) })
    }

    /// A server by what a person calls it: an id of the catalog, or a package, which the catalog may know.
    ///
    /// # Errors
    /// [`AdditionError`].
    pub fn named(
        home: &Home,
        what: &str,
        name: Option<&str>,
        from: Option<&Path>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, AdditionError> {
        let catalog = Catalog::shipped()?;
        if let Some(known) = catalog.find(what).or_else(|| catalog.of_package(what)) {
            return Ok(Self::known(home, known, name.unwrap_or(&known.id), from, settings)?);
        }
        if what.starts_with("https://") || what.starts_with("http://") {
            if !settings.is_empty() {
                return Err(AdditionError::Settings(what.to_owned()));
            }
            let name = name.map_or_else(|| host_name(what), str::to_owned);
            return Ok(Self::least(home, name, Map::from_iter([("url".to_owned(), json!(what))])));
        }
        let (command, args, package) = match (what.strip_prefix("npm:"), what.strip_prefix("pypi:")) {
            (Some(package), _) => ("npx", vec!["-y".to_owned(), package.to_owned()], package),
            (None, Some(package)) => ("uvx", vec![package.to_owned()], package),
            (None, None) => {
                let ids = catalog.iter().map(|known| known.id.as_str()).collect::<Vec<_>>().join("`, `");
                return Err(AdditionError::NotKnown { name: what.to_owned(), ids });
            }
        };
        if !settings.is_empty() {
            return Err(AdditionError::Settings(what.to_owned()));
        }
        let name = name.map_or_else(|| short_name(package), str::to_owned);
        let entry =
            Map::from_iter([("command".to_owned(), json!(command)), ("args".to_owned(), json!(args))]);
        Ok(Self::least(home, name, entry))
    }

    /// The one server of a snippet that its makers print for agent clients.
    ///
    /// # Errors
    /// [`AdditionError`].
    pub fn snippet(home: &Home, text: &str, name: Option<&str>) -> Result<Self, AdditionError> {
        let top: Map<String, Value> = serde_json::from_str(text)?;
        let mut servers =
            match ["mcpServers", "servers"].into_iter().find_map(|key| top.get(key)?.as_object()) {
                Some(wrapped) => wrapped.clone(),
                None if top.contains_key("command") || is_remote(&top) => {
                    Map::from_iter([(name.unwrap_or("server").to_owned(), Value::Object(top))])
                }
                None => top,
            };
        let only = if servers.len() == 1 { servers.keys().next().cloned() } else { None };
        let (Some(own), count) = (only, servers.len()) else {
            return Err(AdditionError::NotOne(servers.len()));
        };
        let Some(Value::Object(entry)) = servers.remove(&own) else {
            return Err(AdditionError::NotOne(count - 1));
        };
        if let Some(key) = OURS.into_iter().find(|key| entry.contains_key(*key)) {
            return Err(AdditionError::NotTheMakers(key.to_owned()));
        }
        Ok(Self::least(home, name.unwrap_or(&own).to_owned(), entry))
    }

    /// With the least that a server can have.
    pub(super) fn least(home: &Home, name: String, mut entry: Map<String, Value>) -> Self {
        if is_remote(&entry) {
            return Self { name, entry: Value::Object(entry), annotations: None, data: None };
        }
        let data = home.server_data(&name);
        let env = entry.entry("env".to_owned()).or_insert_with(|| json!({}));
        if let Some(env) = env.as_object_mut() {
            env.entry("HOME".to_owned()).or_insert_with(|| json!(data));
        }
        entry
            .insert("sandbox".to_owned(), json!({ "view": "roots", "filesystem": { "allowWrite": [data] } }));
        entry.insert("unannotated".to_owned(), json!("ask"));
        Self { name, entry: Value::Object(entry), annotations: None, data: Some(data) }
    }

    /// Lets it reach a host.
    pub fn allow_host(&mut self, host: &str) {
        let Some(sandbox) = self.entry.get_mut("sandbox").and_then(Value::as_object_mut) else { return };
        let network = sandbox.entry("network").or_insert_with(|| json!({}));
        let Some(network) = network.as_object_mut() else { return };
        let hosts = network.entry("allowedDomains").or_insert_with(|| json!([]));
        if let Some(hosts) = hosts.as_array_mut() {
            hosts.push(json!(host));
        }
    }
}

impl Catalog {
    /// The known server of a package, written as `npm:NAME` or `pypi:NAME`.
    fn of_package(&self, what: &str) -> Option<&KnownServer> {
        let is_it = |known: &&KnownServer| match &known.source {
            Source::Npm { package, .. } => what.strip_prefix("npm:") == Some(package),
            Source::Pypi { package, .. } => what.strip_prefix("pypi:") == Some(package),
            Source::Own { .. } => false,
        };
        self.iter().find(is_it)
    }
}

/// Returns `true` for an entry of a server that runs elsewhere.
fn is_remote(entry: &Map<String, Value>) -> bool {
    ["url", "serverUrl", "httpUrl"].iter().any(|key| entry.contains_key(*key))
}

/// The host of an address, as a name of a server.
fn host_name(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', ':', '?', '#']).next().unwrap_or_default().to_owned()
}

/// The name of a package without its scope and its version.
fn short_name(package: &str) -> String {
    let name = package.rsplit('/').next().unwrap_or_default();
    let end = name.find(['@', '=', '[', '<', '>']).unwrap_or(name.len());
    name.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> Home {
        Home::under(Path::new("/ic"), Path::new("/home/u"))
    }

    fn named(what: &str) -> Result<Addition, String> {
        Addition::named(&home(), what, None, None, &BTreeMap::new()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_package_that_nobody_knows_gets_the_least() {
        let added = named("npm:@a/some-mcp@1.2.3").unwrap();
        let data = home().server_data("some-mcp");
        let expected = json!({
            "command": "npx", "args": ["-y", "@a/some-mcp@1.2.3"], "env": { "HOME": data },
            "sandbox": { "view": "roots", "filesystem": { "allowWrite": [data] } }, "unannotated": "ask",
        });
        assert_eq!((added.name.as_str(), &added.entry, &added.annotations), ("some-mcp", &expected, &None));
        assert_eq!(named("pypi:x-mcp==1").unwrap().entry["args"], json!(["x-mcp==1"]));
        let time = named("pypi:mcp-server-time").unwrap();
        assert_eq!((time.name.as_str(), time.annotations.is_some()), ("time", true));
        assert!(
            named("nothing").unwrap_err().starts_with("the catalog has no `nothing`; it has `filesystem`")
        );
        assert!(named("pypi:mcp-server-sqlite").unwrap_err().contains("needs `--set folder=...`"));
        let mut added = added;
        added.allow_host("a.example");
        assert_eq!(added.entry["sandbox"]["network"], json!({ "allowedDomains": ["a.example"] }));
    }

    #[test]
    fn what_runs_elsewhere_has_nothing_here() {
        let added = named("https://mcp.example.com/v1?key=x").unwrap();
        let expected = json!({ "url": "https://mcp.example.com/v1?key=x" });
        assert_eq!((added.name.as_str(), &added.entry, added.data), ("mcp.example.com", &expected, None));
        let text = r#"{ "mcpServers": { "far": { "type": "http", "url": "https://a.example/mcp" } } }"#;
        let added = Addition::snippet(&home(), text, None).unwrap();
        assert_eq!(added.entry, json!({ "type": "http", "url": "https://a.example/mcp" }));
        let ours = r#"{ "far": { "url": "https://a.example/mcp", "sandbox": false } }"#;
        assert!(Addition::snippet(&home(), ours, None).unwrap_err().to_string().contains("says `sandbox`"));
    }

    #[test]
    fn a_snippet_says_what_is_started_and_nothing_more() {
        let snippet = |text: &str| Addition::snippet(&home(), text, None).map_err(|e| e.to_string());
        let entry =
            r#"{ "command": "npx", "args": ["-y", "x"], "env": { "KEY": "k" }, "alwaysAllow": ["*"] }"#;
        for text in [format!(r#"{{ "mcpServers": {{ "x": {entry} }} }}"#), format!(r#"{{ "x": {entry} }}"#)] {
            let added = snippet(&text).unwrap();
            let data = home().server_data("x");
            assert_eq!(added.entry["env"], json!({ "KEY": "k", "HOME": data }));
            assert_eq!(added.entry["sandbox"]["filesystem"]["allowWrite"], json!([data]));
        }
        assert_eq!(Addition::snippet(&home(), entry, Some("y")).unwrap().name, "y");
        for (text, problem) in [
            (r#"{ "x": { "command": "c", "sandbox": false } }"#, "the snippet says `sandbox`"),
            (r#"{ "x": { "command": "c" }, "y": { "command": "c" } }"#, "has 2 servers"),
            ("{}", "has 0 servers"),
            ("[]", "not understood"),
        ] {
            assert!(snippet(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
