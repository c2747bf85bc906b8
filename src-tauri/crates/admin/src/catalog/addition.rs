//! A server to add, specified by a catalog id, a package, an address or a snippet from its documentation.
//!
//! - A server that is not in the catalog gets minimal access: only its own data folder. The user is asked before it
//!   opens any other file, and about each call to an unannotated tool. A package from a registry can connect to hosts
//!   that the user approves one by one, because most packages are clients of a service. Any other server has no network
//!   access.
//! - Text that the user did not write only determines which program is started ([`super::untrusted_entry`]).
//! - A remote server gets nothing on this computer: no folder, variables or sandbox.

use super::addition_error::AdditionError;
use super::command_line::{normalized, without_runner_options};
use super::names::{host_name, is_package_name, is_remote_address, is_scoped, short_name};
use super::snippet::servers_in;
use super::untrusted_entry::{GivenSecrets, ValidatedEntry, is_remote, set_secrets, validate};
use super::{Catalog, CatalogError, EntryValues, KnownServer, Source};
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::Home;
use ironcurtain_config::{RemoteServer, Server};
use ironcurtain_secrets::SecretName;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use url::Url;

/// Commands that run a package from a registry.
const PACKAGE_RUNNERS: [&str; 2] = ["npx", "uvx"];

/// Variables that are set to the server's data folder. The user's own settings and caches stay in use, because the
/// server may look for a browser or a model there.
pub(crate) const DATA_VARIABLES: [&str; 2] = ["XDG_DATA_HOME", "XDG_STATE_HOME"];

/// A server to add, with the content of its new entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// Name of the new entry.
    pub name: String,
    /// Entry for the servers file.
    pub entry: Value,
    /// Annotations of the server's tools, or `None` if they are not known.
    pub annotations: Option<Value>,
    /// Data folder of the server, if it has one.
    pub data: Option<PathBuf>,
    /// Keys in the snippet that have no effect in IronCurtain.
    pub ignored: Vec<String>,
    /// Id in the catalog, or `None` if the catalog does not contain the server.
    pub known: Option<String>,
}

/// The user's choices for a server to add.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdditionChoices {
    /// Name of the new entry, or `None` for the default name.
    pub name: Option<String>,
    /// Folder of the installed package, if the user named one.
    pub from: Option<PathBuf>,
    /// Values of a catalog server's settings.
    pub settings: BTreeMap<String, String>,
    /// Stored secrets that the server receives.
    pub secrets: GivenSecrets,
}

impl Addition {
    /// Creates the addition for a server in the catalog.
    ///
    /// # Errors
    /// Returns a [`CatalogError`] if a setting is missing or unknown.
    pub fn from_catalog(
        home: &Home,
        known: &KnownServer,
        name: &str,
        from: Option<&Path>,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, CatalogError> {
        let data = home.server_data(name);
        let entry = known.entry(EntryValues { data: &data, from, settings })?;
        let annotations = known.annotations(name)?;
        let data = known.keeps_data().then_some(data);
        let (name, known) = (name.to_owned(), Some(known.id.clone()));
        Ok(Self { name, entry, annotations, data, ignored: Vec::new(), known })
    }

    /// Creates an addition from a catalog id, a package or an address. A package in the catalog uses its catalog
    /// entry.
    ///
    /// # Errors
    /// Returns an [`AdditionError`] if the input does not describe a server that can be added.
    pub fn from_spec(home: &Home, spec: &str, choices: &AdditionChoices) -> Result<Self, AdditionError> {
        let AdditionChoices { name, from, settings, secrets } = choices;
        let catalog = Catalog::shipped()?;
        if let Some(known) = catalog.find(spec).or_else(|| catalog.find_package(spec)) {
            let name = name.as_ref().unwrap_or(&known.id);
            let settings = known.checked_settings(home, settings)?;
            let mut added = Self::from_catalog(home, known, name, from.as_deref(), &settings)?;
            if let Some(entry) = added.entry.as_object_mut() {
                set_secrets(entry, secrets);
            }
            return Ok(added);
        }
        let Some((default_name, entry)) = entry_for_spec(spec) else {
            return Err(match is_package_name(spec) {
                true => AdditionError::Ambiguous(spec.to_owned()),
                false => AdditionError::unknown(spec, &catalog),
            });
        };
        if !settings.is_empty() {
            return Err(AdditionError::Settings(spec.to_owned()));
        }
        Self::from_untrusted_entry(home, default_name, entry, choices)
    }

    /// Creates an addition from a command in a server's documentation, such as `npx -y @scope/package`.
    ///
    /// # Errors
    /// Returns an [`AdditionError`] if the input does not describe a server that can be added.
    pub fn from_command(
        home: &Home,
        words: &[String],
        choices: &AdditionChoices,
    ) -> Result<Self, AdditionError> {
        let words = without_runner_options(words);
        let package = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["npx", "-y" | "--yes", package] | ["npx", package] => Some(format!("npm:{package}")),
            ["uvx", package] => Some(format!("pypi:{package}")),
            _ => None,
        };
        if let Some(package) = package.filter(|package| !package.contains(":-")) {
            return Self::from_spec(home, &package, choices);
        }
        if !choices.settings.is_empty() {
            return Err(AdditionError::Settings(words.join(" ")));
        }
        let is_option = |word: &&String| word.starts_with('-');
        let named = words.iter().skip(1).find(|word| !is_option(word)).or_else(|| words.first());
        let default_name = named.map(|word| short_name(word)).unwrap_or_default();
        let entry = json!({ "command": words.first(), "args": words.get(1..) });
        let Value::Object(entry) = entry else { return Err(AdditionError::NotOneServer(0)) };
        Self::from_untrusted_entry(home, default_name, entry, choices)
    }

    /// Creates an addition from a settings snippet that contains exactly one server.
    ///
    /// # Errors
    /// Returns an [`AdditionError`] if the input does not describe a server that can be added.
    pub fn from_snippet(home: &Home, text: &str, choices: &AdditionChoices) -> Result<Self, AdditionError> {
        let mut servers = servers_in(text, choices.name.as_deref())?;
        let only = if servers.len() == 1 { servers.keys().next().cloned() } else { None };
        let (Some(default_name), count) = (only, servers.len()) else {
            return Err(AdditionError::NotOneServer(servers.len()));
        };
        let Some(Value::Object(entry)) = servers.remove(&default_name) else {
            return Err(AdditionError::NotOneServer(count - 1));
        };
        Self::from_untrusted_entry(home, default_name, entry, choices)
    }

    /// Creates an addition from an entry that the user did not write.
    pub(super) fn from_untrusted_entry(
        home: &Home,
        default_name: String,
        entry: Map<String, Value>,
        choices: &AdditionChoices,
    ) -> Result<Self, AdditionError> {
        let ValidatedEntry { entry, ignored } = validate(normalized(entry)?, &choices.secrets)?;
        let name = choices.name.clone().unwrap_or(default_name);
        Ok(Self { ignored, ..Self::with_access_prompts(home, name, entry) })
    }

    /// Creates an addition for a server that requires approval to open a file outside its data folder.
    fn with_access_prompts(home: &Home, name: String, entry: Map<String, Value>) -> Self {
        let mut added = Self::with_minimal_access(home, name, entry);
        let Some(entry) = added.entry.as_object_mut().filter(|_| added.data.is_some()) else { return added };
        entry.remove("unannotated");
        entry.insert("access".to_owned(), json!("ask"));
        if let Some(sandbox) = entry.get_mut("sandbox").and_then(Value::as_object_mut) {
            sandbox.remove("view");
        }
        if let Some(env) = entry.get_mut("env").and_then(Value::as_object_mut) {
            if env.get("HOME") == Some(&json!(added.data)) {
                env.remove("HOME");
            }
            for variable in DATA_VARIABLES {
                env.entry(variable.to_owned()).or_insert_with(|| json!(added.data));
            }
        }
        added
    }

    /// Creates an addition for a server that sees only its data folder. This folder is also its home directory.
    pub(super) fn with_minimal_access(home: &Home, name: String, mut entry: Map<String, Value>) -> Self {
        entry.insert("unannotated".to_owned(), json!("ask"));
        if is_remote(&entry) {
            let entry = Value::Object(entry);
            return Self { name, entry, annotations: None, data: None, ignored: Vec::new(), known: None };
        }
        let data = home.server_data(&name);
        let env = entry.entry("env".to_owned()).or_insert_with(|| json!({}));
        if let Some(env) = env.as_object_mut() {
            env.entry("HOME".to_owned()).or_insert_with(|| json!(data));
        }
        let mut sandbox = json!({ "view": "roots", "filesystem": { "allowWrite": [data] } });
        let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
        if let Some(sandbox) = sandbox.as_object_mut().filter(|_| PACKAGE_RUNNERS.contains(&command)) {
            sandbox.insert("network".to_owned(), json!("ask"));
        }
        entry.insert("sandbox".to_owned(), sandbox);
        let (entry, data) = (Value::Object(entry), Some(data));
        Self { name, entry, annotations: None, data, ignored: Vec::new(), known: None }
    }

    /// Returns an addition that replaces the existing entry with the same address so that a token can be added to
    /// that entry. Returns `None` if no entry has the address.
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] if the change is not possible or the servers file is invalid.
    pub fn existing_with_same_url(home: &Home, wanted: &Self) -> Result<Option<Self>, ServerChangeError> {
        let file = ServersFile::open(home)?;
        let url = wanted.entry.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url).ok());
        let servers = file.servers(&file.text)?;
        let same = |server: &&Server| server.remote.as_ref().map(RemoteServer::url) == url.as_ref();
        let Some(existing) = servers.iter().filter(|_| url.is_some()).find(same) else { return Ok(None) };
        let (_, entry) = file.entry(&existing.name)?;
        let name = existing.name.clone();
        Ok(Some(Self { name, entry, annotations: None, data: None, ignored: Vec::new(), known: None }))
    }

    /// Adds a stored secret to the entry, in the `key` variable or header.
    pub fn set_secret(&mut self, key: &str, secret: &SecretName) {
        if let Some(entry) = self.entry.as_object_mut() {
            set_secrets(entry, &GivenSecrets::from([(key.to_owned(), secret.clone())]));
        }
    }

    /// Adds a host to the entry's allowed hosts.
    pub fn allow_host(&mut self, host: &str) {
        let Some(sandbox) = self.entry.get_mut("sandbox").and_then(Value::as_object_mut) else { return };
        let network = sandbox.entry("network").or_insert_with(|| json!({}));
        if *network == json!("ask") {
            *network = json!({ "allowedDomains": [], "askUnknown": true });
        }
        let Some(network) = network.as_object_mut() else { return };
        let hosts = network.entry("allowedDomains").or_insert_with(|| json!([]));
        if let Some(hosts) = hosts.as_array_mut() {
            hosts.push(json!(host));
        }
    }
}

impl Catalog {
    /// Returns the server in the catalog that uses this package, written `npm:NAME` or `pypi:NAME`.
    fn find_package(&self, spec: &str) -> Option<&KnownServer> {
        let matches_package = |known: &&KnownServer| match &known.source {
            Source::Npm { package, .. } => {
                spec.strip_prefix("npm:").unwrap_or(spec) == package
                    && (spec.contains(':') || is_scoped(spec))
            }
            Source::Pypi { package, .. } => spec.strip_prefix("pypi:") == Some(package),
            Source::Own { .. } => false,
        };
        self.iter().find(matches_package)
    }
}

/// Returns the default name and the entry for a package or an address.
fn entry_for_spec(spec: &str) -> Option<(String, Map<String, Value>)> {
    let run = |command: &str, args: Value| {
        Map::from_iter([("command".to_owned(), json!(command)), ("args".to_owned(), args)])
    };
    if is_remote_address(spec) {
        return Some((host_name(spec), Map::from_iter([("url".to_owned(), json!(spec))])));
    }
    // Only npm package names can contain a scope, or a version after `@`.
    let is_npm = |spec: &&str| is_scoped(spec) || is_package_name(spec) && spec.contains('@');
    if let Some(package) = spec.strip_prefix("npm:").or_else(|| Some(spec).filter(is_npm)) {
        return Some((short_name(package), run("npx", json!(["-y", package]))));
    }
    let is_pypi = |spec: &&str| is_package_name(spec) && spec.contains("==");
    let package = spec.strip_prefix("pypi:").or_else(|| Some(spec).filter(is_pypi))?;
    Some((short_name(package), run("uvx", json!([package]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> Home {
        Home::under(Path::new("/ic"), Path::new("/home/u"))
    }

    fn named(spec: &str) -> Result<Addition, String> {
        Addition::from_spec(&home(), spec, &AdditionChoices::default()).map_err(|e| e.to_string())
    }

    fn snippet(text: &str) -> Result<Addition, String> {
        Addition::from_snippet(&home(), text, &AdditionChoices::default()).map_err(|e| e.to_string())
    }

    #[test]
    fn unknown_package_gets_minimal_access() {
        let added = named("npm:@a/some-mcp@1.2.3").unwrap();
        let data = home().server_data("some-mcp");
        let expected = json!({
            "command": "npx", "args": ["-y", "@a/some-mcp@1.2.3"],
            "env": { "XDG_DATA_HOME": data, "XDG_STATE_HOME": data },
            "sandbox": { "filesystem": { "allowWrite": [data] }, "network": "ask" },
            "access": "ask",
        });
        assert_eq!((added.name.as_str(), &added.entry, &added.annotations), ("some-mcp", &expected, &None));
        assert_eq!(named("pypi:x-mcp==1").unwrap().entry["args"], json!(["x-mcp==1"]));
        let time = named("pypi:mcp-server-time").unwrap();
        assert_eq!((time.name.as_str(), time.annotations.is_some()), ("time", true));
        assert!(named("no thing").unwrap_err().starts_with("unknown server `no thing`; the catalog has"));
        assert!(named("pypi:mcp-server-sqlite").unwrap_err().contains("requires `--set folder=...`"));
        let mut added = added;
        added.allow_host("a.example");
        let prompting = json!({ "allowedDomains": ["a.example"], "askUnknown": true });
        assert_eq!(added.entry["sandbox"]["network"], prompting);
    }

    #[test]
    fn commands_from_documentation_are_accepted() {
        let command = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Addition::from_command(&home(), &words, &AdditionChoices::default()).unwrap()
        };
        for words in [&["npx", "-y", "@a/some-mcp"][..], &["npx", "@a/some-mcp"]] {
            assert_eq!(command(words), named("npm:@a/some-mcp").unwrap());
        }
        assert_eq!(named("@a/some-mcp"), named("npm:@a/some-mcp"));
        assert_eq!(named("@upstash/context7-mcp").unwrap().name, "context7", "the catalog has it");
        assert_eq!(command(&["uvx", "mcp-server-time"]).name, "time");
        let more = command(&["npx", "-y", "@a/some-mcp", "--port", "1"]);
        assert_eq!((more.name.as_str(), &more.entry["command"]), ("some-mcp", &json!("npx")));
        assert_eq!(more.entry["args"], json!(["-y", "@a/some-mcp", "--port", "1"]));
        for file in ["@a", "@/x", "@a/", "@a/b/c"] {
            assert!(named(file).is_err(), "{file}");
        }
    }

    #[test]
    fn remote_server_gets_nothing_local() {
        let added = named("https://mcp.example.com/v1?key=x").unwrap();
        let expected = json!({ "url": "https://mcp.example.com/v1?key=x", "unannotated": "ask" });
        assert_eq!((added.name.as_str(), &added.entry, added.data), ("mcp.example.com", &expected, None));
        let text = r#"{ "mcpServers": { "far": { "type": "http", "url": "https://a.example/mcp" } } }"#;
        let added = snippet(text).unwrap();
        let expected = json!({ "type": "http", "url": "https://a.example/mcp", "unannotated": "ask" });
        assert_eq!(added.entry, expected);
        assert_eq!(named("https://good.example@evil.example/mcp").unwrap().name, "evil.example");
        assert_eq!(named("https://evil.example\\@good.example/mcp").unwrap().name, "evil.example");
        assert_eq!(named("http://[::1]:3/mcp").unwrap().name, "--1");
    }

    #[test]
    fn snippet_only_determines_what_is_started() {
        let entry =
            r#"{ "command": "npx", "args": ["-y", "x"], "env": { "KEY": "k" }, "alwaysAllow": ["*"] }"#;
        for text in [format!(r#"{{ "mcpServers": {{ "x": {entry} }} }}"#), format!(r#"{{ "x": {entry} }}"#)] {
            let added = snippet(&text).unwrap();
            let data = home().server_data("x");
            assert_eq!(
                added.entry["env"],
                json!({ "KEY": "k", "XDG_DATA_HOME": data, "XDG_STATE_HOME": data })
            );
            assert_eq!(added.entry["sandbox"]["filesystem"]["allowWrite"], json!([data]));
            assert_eq!(
                (added.ignored, added.entry.get("alwaysAllow")),
                (vec!["alwaysAllow".to_owned()], None)
            );
        }
        let called = AdditionChoices { name: Some("y".to_owned()), ..AdditionChoices::default() };
        assert_eq!(Addition::from_snippet(&home(), entry, &called).unwrap().name, "y");
        for (text, problem) in [
            (
                r#"{ "x": { "command": "c", "sandbox": false } }"#,
                "it sets `sandbox`, which only you may decide",
            ),
            (r#"{ "x": { "url": "https://a.example/", "sampling": "allow" } }"#, "it sets `sampling`"),
            (r#"{ "x": { "command": "c", "env": { "K": "keyring:bank" } } }"#, "asks for your secret `bank`"),
            (r#"{ "x": { "command": "c" }, "y": { "command": "c" } }"#, "found 2"),
            ("{}", "found 0"),
            ("[]", "failed to parse"),
        ] {
            assert!(snippet(text).unwrap_err().contains(problem), "{text}");
        }
        let secrets = GivenSecrets::from([("K".to_owned(), SecretName::try_from("bank").unwrap())]);
        let given = AdditionChoices { secrets, ..AdditionChoices::default() };
        let text = r#"{ "x": { "command": "c", "env": { "K": "keyring:bank" } } }"#;
        assert_eq!(Addition::from_snippet(&home(), text, &given).unwrap().entry["env"]["K"], "keyring:bank");
    }
}
