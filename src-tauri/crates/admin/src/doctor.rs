//! A look at everything that IronCurtain needs: each thing in order, worth a warning or in the way, with the command that mends
//! it.
//!
//! - Changes nothing. A server is started in its sandbox for a moment, as `servers annotate` does, and is gone afterwards.
//! - Every wait has a bound.

mod checks;

use crate::clients::Clients;
use crate::inspect::{InspectError, Inspection, inspect};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, Server, Servers};
use ironcurtain_daemon::policy_snapshot::PolicySnapshot;
use ironcurtain_protocol::AskedOn;
use ironcurtain_secrets::SecretStore;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The time that one server has to list its tools.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// The thing, in a word or two.
    pub about: String,
    /// Its state.
    pub condition: Condition,
    /// Its state in a sentence.
    pub says: String,
    /// The command that mends it, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// The state of a thing, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// In order.
    Ok,
    /// It works, but not as well as it should.
    Warning,
    /// It does not work.
    Problem,
}

/// The trusted process, as the command line found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Running {
    /// It does not run.
    No,
    /// It runs and tells its troubles.
    Yes {
        /// Its process id.
        pid: u32,
        /// In sentences.
        troubles: Vec<String>,
        /// The place at which it asks the user.
        asked_on: AskedOn,
        /// Somebody has typed the passphrase of the encrypted file of secrets.
        has_secrets: bool,
    },
    /// It runs and does not answer, or its socket cannot be used.
    Silent(String),
}

/// The places that are looked at.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// The folders of IronCurtain.
    pub home: Home,
    /// The folder of our programs.
    pub programs: PathBuf,
    /// Sandboxes may be made by uid 0.
    pub allow_root: bool,
    /// A program can show something on a screen from here.
    pub has_display: bool,
}

impl Diagnosis {
    fn new(about: &str, condition: Condition, says: impl Into<String>) -> Self {
        Self { about: about.to_owned(), condition, says: says.into(), mend: None }
    }

    fn ok(about: &str, says: impl Into<String>) -> Self {
        Self::new(about, Condition::Ok, says)
    }

    fn warning(about: &str, says: impl Into<String>) -> Self {
        Self::new(about, Condition::Warning, says)
    }

    fn problem(about: &str, says: impl Into<String>) -> Self {
        Self::new(about, Condition::Problem, says)
    }

    fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

impl Doctor {
    /// Looks at everything, and tells `progress` what it looks at.
    pub async fn look(&self, running: &Running, progress: impl Fn(&str)) -> Vec<Diagnosis> {
        let mut found = checks::programs(&self.programs);
        progress("the sandbox");
        found.push(checks::sandbox(self));
        found.push(checks::running(running));
        found.push(checks::questions(self, running));
        found.push(match Config::load(&self.home) {
            Ok(_) => Diagnosis::ok("settings", "`config.json` is understood"),
            Err(problem) => Diagnosis::problem("settings", problem.to_string()),
        });
        found.push(checks::grants(&self.home));
        match Servers::load(&self.home) {
            Err(problem) => found.push(Diagnosis::problem("servers", problem.to_string())),
            Ok(servers) => {
                progress("the secrets");
                found.push(checks::secrets(&self.secrets(), &servers, running).await);
                found.push(match PolicySnapshot::load(&self.home, &servers) {
                    Ok(_) => Diagnosis::ok("policy", "the policy and the annotations are understood"),
                    Err(problem) => Diagnosis::problem("policy", problem.to_string())
                        .mended_by("`ironcurtain policy check` says where"),
                });
                for server in servers.iter() {
                    progress(&server.name);
                    found.push(self.server(server).await);
                }
            }
        }
        // A shim that is missing is told among the programs.
        if let Ok(clients) = Clients::new(self.home.clone(), &self.programs) {
            found.extend(checks::clients(&clients.survey()));
        }
        progress("the record");
        found.push(checks::record(&self.home));
        found.push(checks::disk(&self.home));
        found.extend(checks::limits());
        found
    }

    fn secrets(&self) -> SecretStore {
        SecretStore::of(&self.home.state)
    }

    async fn server(&self, server: &Server) -> Diagnosis {
        let (name, secrets) = (server.name.as_str(), self.secrets());
        let about = format!("server {name}");
        if !server.secret_names().is_empty() && matches!(secrets.file_is_locked(), Ok(Some(true))) {
            let says =
                "not started for a look: its secrets are in the encrypted file, which is not opened for that";
            return Diagnosis::warning(&about, says)
                .mended_by(format!("`ironcurtain servers annotate {name}` asks for its passphrase"));
        }
        let inspection = Inspection {
            home: self.home.clone(),
            programs: self.programs.clone(),
            allow_root: self.allow_root,
            patience: SERVER_PATIENCE,
            secrets,
        };
        match inspect(&inspection, name).await.and_then(|look| look.listed) {
            Ok(tools) => Diagnosis::ok(&about, format!("it starts, and lists {} tools", tools.len())),
            // Reported by an earlier check.
            Err(InspectError::Grants(_)) => {
                Diagnosis::warning(&about, "not started for a check: the grants cannot be read")
            }
            Err(problem) => Diagnosis::problem(&about, problem.to_string()),
        }
    }
}
