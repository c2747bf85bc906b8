//! Creates a catalog server's `mcp-servers.json` entry for this computer.

use super::{CatalogError, KnownServer, Source};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Path of the system's Python, which every sandbox contains.
const PYTHON: &str = "/usr/bin/python3";

/// Values that the entry of a catalog server needs.
#[derive(Debug, Clone, Copy)]
pub struct EntryValues<'a> {
    /// Data folder of the server, kept between sessions.
    pub data: &'a Path,
    /// Folder of the installed package. If `None`, the entry names the package, which must be installed separately.
    pub from: Option<&'a Path>,
    /// Values of the server's settings.
    pub settings: &'a BTreeMap<String, String>,
}

impl KnownServer {
    /// Returns the complete entry.
    ///
    /// # Errors
    /// Returns a [`CatalogError`] if a setting is missing or unknown.
    pub fn entry(&self, values: EntryValues<'_>) -> Result<Value, CatalogError> {
        let placeholders = self.placeholders(&values)?;
        let from = values.from.map(to_utf8).transpose()?;
        let mut launch = self.launch_command(from.as_deref())?;
        launch.args.extend(self.entry.args.iter().cloned());
        launch.env.extend(self.entry.env.clone());
        let mut entry = Map::new();
        entry.insert("command".to_owned(), json!(launch.command));
        entry.insert("args".to_owned(), json!(launch.args));
        if !launch.env.is_empty() {
            entry.insert("env".to_owned(), json!(launch.env));
        }
        if !self.entry.pass_env.is_empty() {
            entry.insert("passEnv".to_owned(), json!(self.entry.pass_env));
        }
        entry.insert("description".to_owned(), json!(self.about));
        let mut sandbox = self.entry.sandbox.clone();
        if let Some(from) = from {
            // The server can access only `node_modules`, because the folder may contain the user's other files.
            let program = match &self.source {
                Source::Npm { .. } => format!("{from}/node_modules"),
                Source::Pypi { .. } | Source::Own { .. } => from,
            };
            allow_read(&mut sandbox, program);
        }
        entry.insert("sandbox".to_owned(), Value::Object(sandbox));
        if let Some(writes) = &self.entry.file_writes {
            entry.insert("fileWrites".to_owned(), json!(writes));
        }
        // Calls to unannotated tools require approval.
        if self.annotations("")?.is_none() {
            entry.insert("unannotated".to_owned(), json!("ask"));
        }
        let mut entry = Value::Object(entry);
        substitute(&mut entry, &placeholders);
        Ok(entry)
    }

    /// Returns `true` if the server has a data folder.
    #[must_use]
    pub(crate) fn keeps_data(&self) -> bool {
        let files = self.entry.sandbox.get("filesystem").and_then(|files| files.get("allowWrite"));
        files.and_then(Value::as_array).into_iter().flatten().any(|path| path == "{data}")
    }

    /// Returns all placeholders with their values.
    fn placeholders(&self, values: &EntryValues<'_>) -> Result<Vec<(String, String)>, CatalogError> {
        if let Some(name) = values.settings.keys().find(|name| !self.settings.contains_key(*name)) {
            return Err(CatalogError::UnknownSetting { id: self.id.clone(), name: name.clone() });
        }
        let mut placeholders = vec![("{data}".to_owned(), to_utf8(values.data)?)];
        for (name, about) in &self.settings {
            let unset = || CatalogError::MissingSetting {
                id: self.id.clone(),
                name: name.clone(),
                about: about.clone(),
            };
            let value = values.settings.get(name).ok_or_else(unset)?;
            placeholders.push((format!("{{{name}}}"), value.clone()));
        }
        Ok(placeholders)
    }

    /// Returns the command, its variables, and the arguments to insert before the entry's own arguments.
    fn launch_command(&self, from: Option<&str>) -> Result<LaunchCommand, CatalogError> {
        let plain = |command: &str, args: Vec<String>| LaunchCommand {
            command: command.into(),
            args,
            env: BTreeMap::new(),
        };
        Ok(match (&self.source, from) {
            (Source::Own { program }, None) => plain(program, vec![]),
            (Source::Own { .. }, Some(_)) => {
                return Err(CatalogError::NotAPackage { id: self.id.clone() });
            }
            (Source::Npm { package, version, .. }, None) => {
                plain("npx", vec!["-y".into(), format!("{package}@{version}")])
            }
            (Source::Npm { package, program, .. }, Some(dir)) => {
                plain("node", vec![format!("{dir}/node_modules/{package}/{program}")])
            }
            (Source::Pypi { package, version, with, .. }, None) => {
                let with = with.iter().flat_map(|with| ["--with".to_owned(), with.clone()]);
                plain("uvx", with.chain([format!("{package}=={version}")]).collect())
            }
            (Source::Pypi { package, module, script, .. }, Some(dir)) => {
                let args = match (module, script) {
                    (_, Some(script)) => vec![format!("{dir}/bin/{script}")],
                    (Some(module), None) => vec!["-m".into(), module.clone()],
                    (None, None) => vec!["-m".into(), package.replace('-', "_")],
                };
                let env = BTreeMap::from([
                    ("PYTHONPATH".into(), dir.into()),
                    ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
                ]);
                LaunchCommand { env, ..plain(PYTHON, args) }
            }
        })
    }
}

/// Command line and environment variables.
struct LaunchCommand {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

/// Adds a folder to `allowRead` in the sandbox settings.
fn allow_read(sandbox: &mut Map<String, Value>, dir: String) {
    let files = sandbox.entry("filesystem").or_insert_with(|| json!({}));
    let Some(files) = files.as_object_mut() else { return };
    let read = files.entry("allowRead").or_insert_with(|| json!([]));
    if let Some(read) = read.as_array_mut() {
        read.push(Value::String(dir));
    }
}

/// Replaces the placeholders in all strings of a JSON value.
fn substitute(value: &mut Value, placeholders: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (word, meaning) in placeholders {
                *text = text.replace(word, meaning);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, placeholders)),
        Value::Object(fields) => fields.values_mut().for_each(|field| substitute(field, placeholders)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn to_utf8(path: &Path) -> Result<String, CatalogError> {
    let text = path.to_str().ok_or_else(|| CatalogError::Path(path.display().to_string()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use ironcurtain_config::Servers;

    fn filled(id: &str, from: Option<&str>, settings: &[(&str, &str)]) -> Result<Value, CatalogError> {
        let settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let values = EntryValues { data: Path::new("/d"), from: from.map(Path::new), settings: &settings };
        Catalog::shipped().unwrap().find(id).unwrap().entry(values)
    }

    #[test]
    fn package_is_run_by_version_or_from_its_folder() {
        let sandbox = json!({ "view": "roots", "filesystem": { "allowWrite": ["/d"] } });
        let about = "Remembers facts and their relations in a file.";
        let expected = json!({
            "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@2026.8.31"],
            "env": { "MEMORY_FILE_PATH": "/d/memory.jsonl" }, "description": about, "sandbox": sandbox,
        });
        assert_eq!(filled("memory", None, &[]), Ok(expected));
        let sandbox = json!({ "view": "roots", "filesystem": { "allowWrite": ["/d"], "allowRead": ["/p/node_modules"] } });
        let expected = json!({
            "command": "node", "args": ["/p/node_modules/@modelcontextprotocol/server-memory/dist/index.js"],
            "env": { "MEMORY_FILE_PATH": "/d/memory.jsonl" }, "description": about, "sandbox": sandbox,
        });
        assert_eq!(filled("memory", Some("/p"), &[]), Ok(expected));
        let expected = json!({
            "command": "/usr/bin/python3", "args": ["-m", "mcp_server_time"],
            "env": { "PYTHONPATH": "/p", "PYTHONDONTWRITEBYTECODE": "1" },
            "description": "Returns the current time and converts times between time zones.",
            "sandbox": { "view": "roots", "filesystem": { "allowRead": ["/p"] } },
        });
        assert_eq!(filled("time", Some("/p"), &[]), Ok(expected));
    }

    #[test]
    fn missing_and_unknown_settings_are_rejected() {
        let unset = filled("sqlite", None, &[]).unwrap_err().to_string();
        assert!(unset.starts_with("`sqlite` requires `--set folder=...`"), "{unset}");
        let entry = filled("sqlite", None, &[("folder", "/db")]).unwrap();
        assert_eq!(
            entry["args"],
            json!(["--with", "mcp<2", "mcp-server-sqlite==2025.4.25", "--db-path", "/db/database.db"])
        );
        assert_eq!(entry["sandbox"]["filesystem"]["allowWrite"], json!(["/db"]));
        let no = CatalogError::UnknownSetting { id: "time".into(), name: "zone".into() };
        assert_eq!(filled("time", None, &[("zone", "x")]), Err(no));
        let no = CatalogError::NotAPackage { id: "filesystem".into() };
        assert_eq!(filled("filesystem", Some("/p"), &[]), Err(no));
    }

    #[test]
    fn every_generated_entry_is_valid() {
        for known in Catalog::shipped().unwrap().iter() {
            let settings: Vec<_> = known.settings.keys().map(|name| (name.as_str(), "/set")).collect();
            let package = matches!(known.source, Source::Npm { .. } | Source::Pypi { .. });
            for from in [None, Some("/p")].into_iter().take(if package { 2 } else { 1 }) {
                let entry = filled(&known.id, from, &settings).unwrap();
                let text = json!({ "mine": entry }).to_string();
                let placeholder = text.split('"').find(|t| t.contains('{') && !t.ends_with(":{"));
                assert_eq!(placeholder.filter(|t| t.contains('}')), None, "{}", known.id);
                let servers = Servers::parse(&text, Path::new("/c"), Path::new("/home/u")).unwrap();
                let server = servers.find(Some("mine")).unwrap();
                let settings = server.sandbox.settings().unwrap();
                assert!(settings.view.is_some(), "`{}` has no `view`", known.id);
                let hosts = server.allowed_domains().unwrap();
                assert!(hosts.iter().all(|host| !host.contains('*')), "{}", known.id);
            }
        }
    }
}
