//! Taking a server out: its entry is kept as it was, and can be put back.
//!
//! - INVARIANT: an entry is kept before it is gone from `mcp-servers.json`.
//! - Nothing else goes: what the server was granted, what clients start and the files that it kept are told, and are the person's
//!   to decide about.

use crate::clients::{ClientReport, EntryUse};
use crate::file_edit;
use crate::plain_secrets;
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, read};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A server that is to be taken out, and everything that names it.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// Its name.
    pub name: String,
    /// Its entry for people, who see no secret in it.
    pub entry: String,
    /// The entries of clients that start it, which will say that there is no such server.
    pub clients: Vec<NamingEntry>,
    /// The profiles that name it.
    pub profiles: Vec<String>,
    /// The folder with what it kept, which stays.
    pub data: Option<PathBuf>,
    /// The place where the entry is kept.
    pub kept_in: PathBuf,
    value: Value,
    file: ServersFile,
    after: String,
}

/// An entry of a client that names a server of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamingEntry {
    /// The client's name, for people.
    pub client: &'static str,
    /// The entry's name.
    pub entry: String,
}

/// A server that was taken out.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenOut {
    /// Its name.
    pub name: String,
    /// Its entry for people, who see no secret in it.
    pub entry: String,
}

impl Removal {
    /// The removal of a server. `clients` are those of [`crate::clients::Clients::survey`].
    ///
    /// # Errors
    /// [`ServerChangeError`].
    pub fn plan(home: &Home, clients: &[ClientReport], name: &str) -> Result<Self, ServerChangeError> {
        let file = ServersFile::open(home)?;
        let (way, value) = file.entry(name)?;
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        let after = file.without(&way)?;
        let starts = |report: &ClientReport| {
            let named = report.entries.iter().filter(
                |entry| matches!(&entry.way, EntryUse::Shield { server: Some(server), .. } if server == name),
            );
            let naming = named.map(|entry| NamingEntry { client: report.name, entry: entry.name.clone() });
            naming.collect::<Vec<_>>()
        };
        let profiles = Config::load(home)?.profiles.into_iter();
        Ok(Self {
            name: name.to_owned(),
            entry: shown(&value),
            clients: clients.iter().flat_map(starts).collect(),
            profiles: profiles.filter(|(_, set)| set.contains(name)).map(|(profile, _)| profile).collect(),
            data: Some(home.server_data(name)).filter(|data| data.is_dir()),
            kept_in: kept_file(home),
            value,
            file,
            after,
        })
    }

    /// Keeps the entry, and takes it out.
    ///
    /// # Errors
    /// [`ServerChangeError`]: the servers are as they were.
    pub fn write(&self) -> Result<(), ServerChangeError> {
        self.file.unchanged()?;
        let text = read(&self.kept_in)?.unwrap_or_else(|| "{}\n".to_owned());
        let text = file_edit::set(&self.kept_in, &text, &[&self.name], &self.value)?;
        file_edit::replace(&self.kept_in, &text)?;
        self.file.write(&self.after)
    }
}

/// The servers that were taken out and not put back, by name.
///
/// # Errors
/// [`ServerChangeError`].
pub fn taken_out(home: &Home) -> Result<Vec<TakenOut>, ServerChangeError> {
    let all = kept(home)?.into_iter();
    Ok(all.map(|(name, entry)| TakenOut { entry: shown(&entry), name }).collect())
}

/// Puts a server back as it was when it was taken out.
///
/// # Errors
/// [`ServerChangeError`]: nothing changed.
pub fn put_back(home: &Home, name: &str) -> Result<(), ServerChangeError> {
    let file = ServersFile::open(home)?;
    let entry = kept(home)?.remove(name).ok_or_else(|| ServerChangeError::NotKept(name.to_owned()))?;
    if file.entry(name).is_ok() {
        return Err(ServerChangeError::There(name.to_owned()));
    }
    file.write(&file.with(&[name], &entry)?)?;
    forget(home, name)
}

/// Forgets a server that was taken out.
///
/// # Errors
/// [`ServerChangeError`].
pub fn forget(home: &Home, name: &str) -> Result<(), ServerChangeError> {
    if !kept(home)?.contains_key(name) {
        return Err(ServerChangeError::NotKept(name.to_owned()));
    }
    let file = kept_file(home);
    let text = read(&file)?.unwrap_or_default();
    Ok(file_edit::replace(&file, &file_edit::remove(&file, &text, &[name])?)?)
}

fn kept_file(home: &Home) -> PathBuf {
    home.config.join("removed-servers.json")
}

fn kept(home: &Home) -> Result<Map<String, Value>, ServerChangeError> {
    let file = kept_file(home);
    let Some(text) = read(&file)? else { return Ok(Map::new()) };
    serde_json::from_str(&text).map_err(|problem| ServerChangeError::Kept(file, problem))
}

fn shown(entry: &Value) -> String {
    let text = serde_json::to_string_pretty(entry).unwrap_or_default();
    plain_secrets::hidden(text, &plain_secrets::texts(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientState, EntryReport};
    use ironcurtain_config::Servers;
    use std::fs;

    const TEXT: &str = r#"{
  "_comment": "mine",
  "mcpServers": { "git": { "command": "git-mcp", "env": { "API_KEY": "s3cret-value" }, "_comment": "why" } },
  "notes" : { "command":"notes" }
}
"#;

    fn home(text: &str) -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        fs::write(home.config.join("mcp-servers.json"), text).unwrap();
        (dir, home)
    }

    fn text(home: &Home) -> String {
        fs::read_to_string(home.config.join("mcp-servers.json")).unwrap()
    }

    #[test]
    fn a_server_is_taken_out_with_nothing_else_and_put_back_as_it_was() {
        let (_dir, home) = home(TEXT);
        fs::write(home.config.join("config.json"), r#"{ "profiles": { "work": ["git", "notes"] } }"#)
            .unwrap();
        let entry = |server: Option<&str>| EntryReport {
            name: "mine".into(),
            way: EntryUse::Shield { server: server.map(Into::into), profile: None },
        };
        let client = ClientReport {
            id: "zed",
            name: "Zed",
            file: "/z".into(),
            state: ClientState::Connected,
            entries: vec![entry(Some("git")), entry(Some("notes")), entry(None)],
            problem: None,
        };
        let removal = Removal::plan(&home, &[client], "git").unwrap();
        assert_eq!(removal.clients, [NamingEntry { client: "Zed", entry: "mine".into() }]);
        assert_eq!(removal.profiles, ["work"]);
        assert!(removal.entry.contains("(hidden)") && !removal.entry.contains("s3cret"), "{}", removal.entry);
        assert_eq!(text(&home), TEXT, "nothing is written yet");
        removal.write().unwrap();
        let gone = TEXT.replace(
            r#"{ "git": { "command": "git-mcp", "env": { "API_KEY": "s3cret-value" }, "_comment": "why" } }"#,
            "{ }",
        );
        assert_eq!(text(&home), gone);
        assert_eq!(
            taken_out(&home).unwrap(),
            [TakenOut { name: "git".into(), entry: removal.entry.clone() }]
        );
        put_back(&home, "git").unwrap();
        let servers = Servers::load(&home).unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["git", "notes"]);
        assert_eq!(servers.find(Some("git")).unwrap().env["API_KEY"], "s3cret-value");
        assert!(
            text(&home).contains("\"_comment\": \"why\"") && text(&home).contains("\"_comment\": \"mine\"")
        );
        assert_eq!(taken_out(&home).unwrap(), []);
    }

    #[test]
    fn what_is_not_there_or_there_again_or_changed_meanwhile_is_refused() {
        let (_dir, home) = home(TEXT);
        let refused = |name: &str| Removal::plan(&home, &[], name).unwrap_err().to_string();
        assert_eq!(refused("gti"), "no server is named `gti`; there is `git`, `notes`");
        assert!(
            refused("mcpServers").starts_with("no server is named")
                && refused("_comment").starts_with("no server")
        );
        let removal = Removal::plan(&home, &[], "notes").unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT.replace("mine", "yours")).unwrap();
        assert!(matches!(removal.write(), Err(ServerChangeError::Changed(_))));
        assert_eq!(taken_out(&home).unwrap(), []);
        Removal::plan(&home, &[], "notes").unwrap().write().unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT).unwrap();
        assert!(matches!(put_back(&home, "notes"), Err(ServerChangeError::There(_))));
        assert!(matches!(put_back(&home, "git"), Err(ServerChangeError::NotKept(_))));
        assert_eq!(text(&home), TEXT);
        forget(&home, "notes").unwrap();
        assert!(matches!(forget(&home, "notes"), Err(ServerChangeError::NotKept(_))));
    }

    #[test]
    fn the_server_that_is_there_without_a_file_can_go_and_come_back() {
        let (_dir, home) = home("{}");
        fs::remove_file(home.config.join("mcp-servers.json")).unwrap();
        Removal::plan(&home, &[], "filesystem").unwrap().write().unwrap();
        assert_eq!(Servers::load(&home).unwrap().names().count(), 0);
        put_back(&home, "filesystem").unwrap();
        assert_eq!(Servers::load(&home).unwrap(), {
            let default = Home::under(&home.config.join("none"), &home.person);
            Servers::load(&default).unwrap()
        });
    }
}
