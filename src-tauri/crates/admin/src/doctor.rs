//! Checks everything that IronCurtain needs. Each warning and problem includes a suggested fix.
//!
//! - Changes nothing. With `deep`, briefly starts each server in its sandbox, like `servers annotate`. Otherwise,
//!   reports the results of each server's last run.
//! - Every wait is limited by a timeout.

mod checks;
mod organization;

use crate::clients::Clients;
use crate::inspect::{InspectError, Inspection, inspect};
use crate::login::{LoginState, LoginStates};
use futures_util::StreamExt;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, PolicySnapshot, Server, Servers};
use ironcurtain_grants::{Pins, ToolPin};
use ironcurtain_packages::{PackageState, Packages};
use ironcurtain_protocol::PromptLocation;
use ironcurtain_secrets::SecretStore;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of servers that are started at the same time.
const MAX_CONCURRENT: usize = 4;

/// Maximum time for a server to list its tools.
const SERVER_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Component that was checked, in one or two words.
    #[serde(rename = "about")]
    pub component: String,
    /// Condition of the component.
    pub condition: Condition,
    /// Explanation of the condition for the user.
    #[serde(rename = "says")]
    pub message: String,
    /// Command that fixes the problem, or other advice.
    #[serde(rename = "mend", skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Condition of a component. Variants are ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The component works.
    Ok,
    /// The component works with restrictions.
    Warning,
    /// The component does not work.
    Problem,
}

/// State of the trusted process as determined by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonStatus {
    /// The process is not running.
    No,
    /// The process is running and responds.
    Yes {
        /// Process id.
        pid: u32,
        /// Problems that the trusted process reports, as sentences, except `managed_trouble`.
        troubles: Vec<String>,
        /// Problem with the rules of the user's organization, as a sentence.
        managed_trouble: Option<String>,
        /// Front end that asks the user.
        prompt_location: PromptLocation,
        /// `true` if the trusted process has unlocked the encrypted secrets file.
        has_secrets: bool,
    },
    /// The process is running but does not respond, or its socket cannot be used. Contains the reason.
    Unresponsive(String),
}

/// Settings for the checks.
#[derive(Debug, Clone)]
pub struct Doctor {
    /// IronCurtain's directories.
    pub home: Home,
    /// Directory of IronCurtain's programs.
    pub programs: PathBuf,
    /// `true` to create sandboxes even as root.
    pub allow_root: bool,
    /// `true` if a display is available.
    pub has_display: bool,
    /// `true` to start each server.
    pub deep: bool,
}

impl Diagnosis {
    fn new(component: &str, condition: Condition, message: impl Into<String>) -> Self {
        Self { component: component.to_owned(), condition, message: message.into(), fix: None }
    }

    fn ok(component: &str, message: impl Into<String>) -> Self {
        Self::new(component, Condition::Ok, message)
    }

    fn warning(component: &str, message: impl Into<String>) -> Self {
        Self::new(component, Condition::Warning, message)
    }

    fn problem(component: &str, message: impl Into<String>) -> Self {
        Self::new(component, Condition::Problem, message)
    }

    fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

impl Doctor {
    /// Runs all checks. Calls `progress` with the name of each slow check before it starts.
    pub async fn check(&self, running: &DaemonStatus, progress: impl Fn(&str)) -> Vec<Diagnosis> {
        let mut found = checks::programs(&self.programs);
        progress("the sandbox");
        found.push(checks::sandbox(self));
        found.push(checks::running(running));
        found.push(checks::questions(self, running));
        found.push(match Config::load(&self.home) {
            Ok(_) => Diagnosis::ok("settings", "`config.json` is valid"),
            Err(problem) => Diagnosis::problem("settings", problem.to_string()),
        });
        found.extend(organization::managed(&self.home, running));
        found.push(checks::grants(&self.home));
        match Servers::load(&self.home) {
            Err(problem) => found.push(Diagnosis::problem("servers", problem.to_string())),
            Ok(servers) => {
                progress("the secrets");
                found.push(checks::secrets(&self.secrets(), &servers, running).await);
                found.push(match PolicySnapshot::load(&self.home, &servers) {
                    Ok(_) => Diagnosis::ok("policy", "the policy and the annotations are valid"),
                    Err(problem) => Diagnosis::problem("policy", problem.to_string())
                        .with_fix("run `ironcurtain policy check` to see where"),
                });
                let logins = LoginStates::load(&self.home);
                let checks = futures_util::stream::iter(servers.iter()).map(|server| async {
                    progress(&server.name);
                    match logins.state_of(server) {
                        Some(LoginState::Expired) => needed_login(&server.name, "your login has expired"),
                        Some(LoginState::Required) => needed_login(&server.name, "it requires a login"),
                        login if self.deep => self.check_started(server, login).await,
                        login => with_login(self.check_stored(server), login),
                    }
                });
                found.extend(checks.buffered(MAX_CONCURRENT).collect::<Vec<_>>().await);
            }
        }
        // The programs check already reports a missing shim.
        if let Ok(clients) = Clients::new(self.home.clone(), &self.programs) {
            found.extend(checks::clients(&clients.survey()));
        }
        progress("the record");
        found.push(checks::audit_log(&self.home));
        found.extend(organization::export(&self.home, &self.secrets()).await);
        found.push(checks::disk(&self.home));
        found.extend(checks::limits());
        found
    }

    fn secrets(&self) -> SecretStore {
        SecretStore::of(&self.home.state)
    }

    /// Reports the stored state of a server without starting it.
    fn check_stored(&self, server: &Server) -> Diagnosis {
        let (name, component) = (server.name.as_str(), format!("server {}", server.name));
        if let PackageState::NotReady(problem) = Packages::in_home(&self.home).state(server) {
            return Diagnosis::problem(&component, problem.to_string())
                .with_fix(format!("`ironcurtain servers install {name}`"));
        }
        // The grants check already reports an unreadable database.
        let pins = Pins::of(&self.home.database()).for_server(&server.identity()).unwrap_or_default();
        let suspended = pins.iter().filter(|pin| pin.needs_decision()).count();
        if suspended > 0 {
            let message = format!("changed {suspended} of its tools, which are suspended until you decide");
            return Diagnosis::warning(&component, message)
                .with_fix(format!("`ironcurtain servers diff {name}`"));
        }
        let tools: BTreeSet<&str> = pins.iter().map(|pin: &ToolPin| pin.tool.as_str()).collect();
        if tools.is_empty() {
            return Diagnosis::ok(&component, "not used yet")
                .with_fix("`ironcurtain doctor --deep` starts it");
        }
        let count = if tools.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", tools.len()) };
        Diagnosis::ok(&component, format!("has listed {count}"))
    }

    /// Starts a server and reports whether it lists its tools.
    async fn check_started(&self, server: &Server, login: Option<LoginState>) -> Diagnosis {
        let (name, secrets) = (server.name.as_str(), self.secrets());
        let component = format!("server {name}");
        let has_secrets =
            !server.secret_names().is_empty() || matches!(login, Some(LoginState::LoggedIn { .. }));
        if has_secrets && matches!(secrets.file_is_locked(), Ok(Some(true))) {
            let message =
                "not started for this check, because its secrets are in the encrypted file, which is locked";
            return Diagnosis::warning(&component, message)
                .with_fix(format!("`ironcurtain servers annotate {name}` asks for its passphrase"));
        }
        let inspection = Inspection {
            home: self.home.clone(),
            programs: self.programs.clone(),
            allow_root: self.allow_root,
            timeout: SERVER_TIMEOUT,
            secrets,
        };
        match inspect(&inspection, name).await.and_then(|look| look.listed) {
            Ok(tools) => with_login(
                Diagnosis::ok(&component, format!("starts and lists {} tools", tools.len())),
                login,
            ),
            // The grants check already reports an unreadable database.
            Err(InspectError::Grants(_)) => {
                Diagnosis::warning(&component, "not started for a check: the grants cannot be read")
            }
            Err(problem) => Diagnosis::problem(&component, problem.to_string()),
        }
    }
}

fn needed_login(server: &str, message: &str) -> Diagnosis {
    Diagnosis::warning(&format!("server {server}"), message)
        .with_fix(format!("`ironcurtain servers login {server}`"))
}

/// Adds the login state to a diagnosis.
fn with_login(diagnosis: Diagnosis, login: Option<LoginState>) -> Diagnosis {
    // A server without a stored login may not need one.
    let Some(login @ LoginState::LoggedIn { .. }) = login else { return diagnosis };
    Diagnosis { message: format!("{}; {login}", diagnosis.message), ..diagnosis }
}
