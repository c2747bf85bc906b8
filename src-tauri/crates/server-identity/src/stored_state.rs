//! State stored under a server name.

use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_grants::StandingGrant;
use ironcurtain_policy::Annotations;
use ironcurtain_secrets::{Logins, SecretStore};
use std::fmt;
use std::path::PathBuf;

/// State stored under a server name, which belongs to one identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredServerState {
    /// Grants that outlive sessions.
    pub grants: Vec<StandingGrant>,
    /// The server's data folder, or `None` if it is empty or does not exist.
    pub data: Option<PathBuf>,
    /// Number of the server's annotated tools.
    pub annotated: usize,
    /// Names of the secrets that the server's entry uses.
    pub secrets: Vec<String>,
    /// `true` if the user is logged in to the server.
    pub login: bool,
}

impl StoredServerState {
    /// Collects the state under a server name. `None` as the entry means that no such server is configured.
    #[must_use]
    pub fn of<'a>(
        home: &Home,
        (name, entry): (&str, Option<&Server>),
        grants: impl IntoIterator<Item = &'a StandingGrant>,
        annotations: &Annotations,
    ) -> Self {
        let belongs_to_server =
            |grant: &&StandingGrant| grant.subject.server == name && grant.subject.session.is_none();
        let data = home.server_data(name);
        let has_data = std::fs::read_dir(&data).is_ok_and(|mut names| names.next().is_some());
        let secrets = entry.map(Server::secret_names).unwrap_or_default();
        Self {
            grants: grants.into_iter().filter(belongs_to_server).cloned().collect(),
            data: has_data.then_some(data),
            annotated: annotations.tools(name).count(),
            secrets: secrets.iter().map(|secret| secret.as_str().to_owned()).collect(),
            login: Logins::of(&SecretStore::of(&home.state)).record(name).is_some(),
        }
    }

    /// Returns `true` if nothing is stored under the name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for StoredServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let grants = counted(self.grants.len(), "grant");
        let data = self.data.as_ref().map(|_| "its data folder".to_owned());
        let tools = counted(self.annotated, "annotated tool");
        let secrets =
            (!self.secrets.is_empty()).then(|| format!("its secrets `{}`", self.secrets.join("`, `")));
        let login = self.login.then(|| "your login".to_owned());
        let all: Vec<String> = [grants, data, tools, secrets, login].into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}
