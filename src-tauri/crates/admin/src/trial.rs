//! Trying a call on a policy: how it would be judged, without a session and without asking anybody.
//!
//! - Reads the person's files, or those that are named, and the disk; changes nothing.
//! - Grants that end with their session are known to the trusted process alone, and do not count here.

mod held;

pub use held::{HeldGrants, SeveralClients};

use crate::replay::{ReplayError, replay};
use ironcurtain_config::ConfigError;
use ironcurtain_config::Server;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_consent::found_paths::FoundPaths;
use ironcurtain_daemon::judging::JudgingContext;
use ironcurtain_daemon::{PolicyFiles, PolicySnapshot, SnapshotError};
use ironcurtain_grants::StoreError;
use ironcurtain_paths::{CanonicalPath, PathError, Resolver};
use ironcurtain_policy::{Denial, Explanation, JudgedRequest, Unannotated};
use ironcurtain_policy_tools::replay::Replay;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// Why nothing can be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The servers are refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The policy is refused.
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),
    /// The folder of the session cannot be resolved.
    #[error("the session sandbox cannot be used: {0}")]
    Sandbox(#[from] PathError),
    /// A path is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    NotUtf8(String),
    /// The grants cannot be read.
    #[error(transparent)]
    Grants(#[from] StoreError),
    /// The client is not one.
    #[error(transparent)]
    Client(#[from] SeveralClients),
    /// The record cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A policy and everything that calls are judged with.
pub struct PolicyTrial {
    /// The policy.
    pub snapshot: Arc<PolicySnapshot>,
    home: Home,
    servers: Servers,
    sandbox: Option<CanonicalPath>,
    /// The folder that relative paths start in, where there is no session sandbox.
    here: CanonicalPath,
}

/// A call with what was found out about it.
pub struct JudgedCall {
    /// Each path, where it leads, and over which links.
    pub paths: FoundPaths,
    /// The explanation of the verdict; a denial when the call was not even understood.
    pub outcome: Result<Explanation, Denial>,
}

impl PolicyTrial {
    /// Reads the files. Relative paths of calls start in `here`.
    ///
    /// # Errors
    /// [`TrialError`], naming file and place.
    pub fn open(home: Home, files: &PolicyFiles, here: &Path) -> Result<Self, TrialError> {
        let servers = Servers::load(&home)?;
        Self::among(home, servers, files, here)
    }

    /// The same with these servers, which may not be written down yet.
    ///
    /// # Errors
    /// As [`PolicyTrial::open`].
    pub fn among(home: Home, servers: Servers, files: &PolicyFiles, here: &Path) -> Result<Self, TrialError> {
        let snapshot = Arc::new(PolicySnapshot::from_files(&home, &servers, files)?);
        let here = here.to_str().ok_or_else(|| TrialError::NotUtf8(here.display().to_string()))?;
        let here = Resolver::new(snapshot.home.clone(), snapshot.home.clone()).locate(here)?;
        Ok(Self { snapshot, home, servers, sandbox: None, here })
    }

    /// The same with a session sandbox at this folder.
    ///
    /// # Errors
    /// [`TrialError::Sandbox`], [`TrialError::NotUtf8`].
    pub fn with_sandbox(mut self, sandbox: Option<&Path>) -> Result<Self, TrialError> {
        if let Some(sandbox) = sandbox {
            let raw = sandbox.to_str().ok_or_else(|| TrialError::NotUtf8(sandbox.display().to_string()))?;
            self.sandbox = Some(self.resolver().resolve(raw)?.path);
        }
        Ok(self)
    }

    /// The servers that calls are judged for.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The servers whose tools that nobody has annotated are asked about.
    #[must_use]
    pub fn asking_about_unannotated(&self) -> Vec<&str> {
        let asks = |server: &&Server| server.unannotated == Unannotated::Ask;
        self.servers.iter().filter(asks).map(|server| server.name.as_str()).collect()
    }

    /// The standing grants of a client with a server.
    ///
    /// # Errors
    /// [`TrialError::Grants`], [`TrialError::Client`].
    pub fn grants_of(&self, client: &str, server: &str) -> Result<HeldGrants, TrialError> {
        HeldGrants::read(&self.home, client, server)
    }

    /// Judges the calls of the audit log since a moment.
    ///
    /// # Errors
    /// [`TrialError::Replay`].
    pub fn replay(&self, since_ms: u64) -> Result<Replay, TrialError> {
        Ok(replay(&self.home, &self.servers, &self.snapshot, since_ms)?)
    }

    /// Judges a call as the trusted process would with what a client holds.
    #[must_use]
    pub fn judge(
        &self,
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        held: Option<&HeldGrants>,
    ) -> JudgedCall {
        let grants = held.map(HeldGrants::for_judging).unwrap_or_default();
        let reach =
            JudgingContext::reach_by_entry(&self.home, &self.servers, &self.snapshot, server, &grants);
        let confined = JudgingContext::confined_by_entry(&self.home, &self.servers, &self.snapshot, server);
        let setting = JudgingContext {
            snapshot: self.snapshot.clone(),
            server: server.to_owned(),
            contained: JudgingContext::contained_by_name(&self.servers, server),
            unannotated: JudgingContext::unannotated_by_name(&self.servers, server),
            sandbox: self.sandbox.clone(),
            resolver: self.resolver(),
            grants,
            hosts: held.map(HeldGrants::for_gate).unwrap_or_default(),
            tools: held.map(HeldGrants::for_tools).unwrap_or_default(),
            approved: Vec::new(),
            reach,
            confined,
        };
        let arguments = match JudgedRequest::parse(tool).map(|request| request.arguments(arguments)) {
            None => Arc::new(arguments.clone()),
            Some(Ok(arguments)) => Arc::new(arguments),
            Some(Err(problem)) => {
                let denial = Denial::invalid(problem.to_string());
                return JudgedCall { paths: FoundPaths::default(), outcome: Err(denial) };
            }
        };
        match setting.plan(tool, &arguments).and_then(|planned| planned.locate(&setting)) {
            Err(denial) => JudgedCall { paths: FoundPaths::default(), outcome: Err(denial) },
            Ok(located) => {
                let paths = located.paths.clone();
                JudgedCall { outcome: Ok(setting.explain(located)), paths }
            }
        }
    }

    fn resolver(&self) -> Resolver {
        let base = self.sandbox.as_ref().unwrap_or(&self.here);
        Resolver::new(self.snapshot.home.clone(), base.clone())
    }
}
