//! Login state of each server, for display in lists. Reads no secrets.

use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{LoginRecord, Logins, SecretStore};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// State of the user's login to a remote server that has no other credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum LoginState {
    /// The user is logged in.
    LoggedIn {
        /// Time at which the user must log in again, in seconds since the Unix epoch, or `None` if the login can be
        /// renewed or does not expire.
        #[serde(rename = "endsAt")]
        expires_at: Option<u64>,
    },
    /// The login has expired.
    Expired,
    /// There is no login for the server's URL. The server may not need one.
    NotLoggedIn,
    /// There is no login for the server's URL, and the server has refused a request because of that.
    Required,
}

/// Snapshot of the logins to all servers.
#[derive(Debug)]
pub struct LoginStates {
    records: BTreeMap<String, LoginRecord>,
    /// URLs of the servers that require a login.
    required: BTreeMap<String, String>,
    now: SystemTime,
}

impl LoginStates {
    /// Reads the lists of logins. Treats an unreadable list as empty.
    #[must_use]
    pub fn load(home: &Home) -> Self {
        let logins = Logins::of(&SecretStore::of(&home.state));
        let (records, required) = (logins.all().unwrap_or_default(), logins.required().unwrap_or_default());
        Self { records, required, now: SystemTime::now() }
    }

    /// Returns the entry of the user's login to a server, or `None` if there is no login for the server's URL or the
    /// server's entry contains credentials.
    #[must_use]
    pub fn record_of(&self, server: &Server) -> Option<&LoginRecord> {
        let remote = server.remote.as_ref().filter(|remote| remote.uses_login())?;
        self.records.get(&server.name).filter(|record| record.url == remote.url().as_str())
    }

    /// Returns a server's login state, or `None` if the server is local or its entry contains credentials.
    #[must_use]
    pub fn state_of(&self, server: &Server) -> Option<LoginState> {
        let remote = server.remote.as_ref().filter(|remote| remote.uses_login())?;
        let record = self.record_of(server);
        let is_required = self.required.get(&server.name).is_some_and(|url| url == remote.url().as_str());
        Some(match record {
            None if is_required => LoginState::Required,
            None => LoginState::NotLoggedIn,
            Some(record) if record.has_expired(self.now) => LoginState::Expired,
            Some(record) => LoginState::LoggedIn { expires_at: record.expires_at },
        })
    }
}

impl fmt::Display for LoginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn { expires_at: None } => f.write_str("logged in"),
            Self::LoggedIn { expires_at: Some(at) } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                write!(f, "logged in, expires in {}", format_duration(at.saturating_sub(now)))
            }
            Self::Expired => f.write_str("login expired"),
            Self::NotLoggedIn => f.write_str("not logged in"),
            Self::Required => f.write_str("login required"),
        }
    }
}

fn format_duration(seconds: u64) -> String {
    match seconds {
        ..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::Servers;
    use std::time::Duration;

    #[test]
    fn a_login_is_listed_for_the_address_that_it_was_made_at() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        let text = r#"{ "mcpServers": { "local": { "command": "/usr/bin/true" }, "far": { "url": "https://a.example/mcp" },
            "other": { "url": "https://a.example/mcp" },
            "own": { "url": "https://a.example/mcp", "headers": { "Authorization": "Bearer x" } } } }"#;
        std::fs::write(home.config.join("mcp-servers.json"), text).unwrap();
        let servers = Servers::load(&home).unwrap();
        let state = |record: Option<&LoginRecord>, name: &str| {
            let records = record.map(|record| (name.to_owned(), record.clone())).into_iter().collect();
            let required = BTreeMap::from([("other".to_owned(), "https://a.example/mcp".to_owned())]);
            let states = LoginStates { records, required, now: UNIX_EPOCH + Duration::from_secs(1_000) };
            states.state_of(servers.find(Some(name)).unwrap())
        };
        let record = LoginRecord::new("1", "https://a.example/mcp", "https://auth.example", &[]);
        assert_eq!(state(None, "other"), Some(LoginState::Required));
        assert_eq!(state(Some(&record), "other"), Some(LoginState::LoggedIn { expires_at: None }));
        let elsewhere = LoginRecord { url: "https://b.example/mcp".into(), ..record.clone() };
        let expired = LoginRecord { is_expired: true, ..record.clone() };
        let until = |at: u64| LoginRecord { expires_at: Some(at), ..record.clone() };
        assert_eq!(state(None, "far"), Some(LoginState::NotLoggedIn));
        assert_eq!(state(Some(&elsewhere), "far"), Some(LoginState::NotLoggedIn), "its address has changed");
        assert_eq!(state(Some(&record), "far"), Some(LoginState::LoggedIn { expires_at: None }));
        assert_eq!(state(Some(&until(1_001)), "far"), Some(LoginState::LoggedIn { expires_at: Some(1_001) }));
        assert_eq!(state(Some(&until(1_000)), "far"), Some(LoginState::Expired));
        assert_eq!(state(Some(&expired), "far"), Some(LoginState::Expired));
        assert_eq!((state(Some(&record), "local"), state(Some(&record), "own")), (None, None));
        let said = [59, 7_199, 7_200, 172_799, 172_800].map(format_duration);
        assert_eq!(said, ["0 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
