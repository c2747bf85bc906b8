//! Login state of each server, for display in lists. Reads no secrets.

use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{LoginMark, Logins, SecretStore};
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
        ends_at: Option<u64>,
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
    marks: BTreeMap<String, LoginMark>,
    /// URLs of the servers that require a login.
    required: BTreeMap<String, String>,
    now: SystemTime,
}

impl LoginStates {
    /// Reads the lists of logins. Treats an unreadable list as empty.
    #[must_use]
    pub fn load(home: &Home) -> Self {
        let logins = Logins::of(&SecretStore::of(&home.state));
        let (marks, required) = (logins.all().unwrap_or_default(), logins.required().unwrap_or_default());
        Self { marks, required, now: SystemTime::now() }
    }

    /// Returns a server's login state, or `None` if the server is local or its entry contains credentials.
    #[must_use]
    pub fn of(&self, server: &Server) -> Option<LoginState> {
        let remote = server.remote.as_ref().filter(|remote| remote.uses_login())?;
        let mark = self.marks.get(&server.name).filter(|mark| mark.url == remote.url().as_str());
        let is_required = self.required.get(&server.name).is_some_and(|url| url == remote.url().as_str());
        Some(match mark {
            None if is_required => LoginState::Required,
            None => LoginState::NotLoggedIn,
            Some(mark) if mark.has_ended(self.now) => LoginState::Expired,
            Some(mark) => LoginState::LoggedIn { ends_at: mark.ends_at },
        })
    }
}

impl fmt::Display for LoginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn { ends_at: None } => f.write_str("logged in"),
            Self::LoggedIn { ends_at: Some(at) } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                write!(f, "logged in, expires in {}", words(at.saturating_sub(now)))
            }
            Self::Expired => f.write_str("login expired"),
            Self::NotLoggedIn => f.write_str("not logged in"),
            Self::Required => f.write_str("login required"),
        }
    }
}

fn words(seconds: u64) -> String {
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
        let state = |mark: Option<&LoginMark>, name: &str| {
            let marks = mark.map(|mark| (name.to_owned(), mark.clone())).into_iter().collect();
            let required = BTreeMap::from([("other".to_owned(), "https://a.example/mcp".to_owned())]);
            let states = LoginStates { marks, required, now: UNIX_EPOCH + Duration::from_secs(1_000) };
            states.of(servers.find(Some(name)).unwrap())
        };
        let mark = LoginMark::new("https://a.example/mcp", "https://auth.example", &[]).unwrap();
        assert_eq!(state(None, "other"), Some(LoginState::Required));
        assert_eq!(state(Some(&mark), "other"), Some(LoginState::LoggedIn { ends_at: None }));
        let elsewhere = LoginMark { url: "https://b.example/mcp".into(), ..mark.clone() };
        let expired = LoginMark { is_expired: true, ..mark.clone() };
        let until = |at: u64| LoginMark { ends_at: Some(at), ..mark.clone() };
        assert_eq!(state(None, "far"), Some(LoginState::NotLoggedIn));
        assert_eq!(state(Some(&elsewhere), "far"), Some(LoginState::NotLoggedIn), "its address has changed");
        assert_eq!(state(Some(&mark), "far"), Some(LoginState::LoggedIn { ends_at: None }));
        assert_eq!(state(Some(&until(1_001)), "far"), Some(LoginState::LoggedIn { ends_at: Some(1_001) }));
        assert_eq!(state(Some(&until(1_000)), "far"), Some(LoginState::Expired));
        assert_eq!(state(Some(&expired), "far"), Some(LoginState::Expired));
        assert_eq!((state(Some(&mark), "local"), state(Some(&mark), "own")), (None, None));
        let said = [59, 7_199, 7_200, 172_799, 172_800].map(words);
        assert_eq!(said, ["0 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
