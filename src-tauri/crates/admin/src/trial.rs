//! Evaluates calls with a policy, without a session and without asking the user.
//!
//! - Reads the disk, and either the user's policy files or the given policy files. Changes nothing.
//! - Ignores session grants, which only the trusted process knows.

mod client_grants;

pub use client_grants::{AmbiguousClient, ClientGrants};

use crate::replay::{ReplayError, replay};
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, PolicyFiles, PolicySnapshot, Server, Servers, SnapshotError};
use ironcurtain_consent::found_paths::FoundPaths;
use ironcurtain_grants::StoreError;
use ironcurtain_judging::JudgingContext;
use ironcurtain_paths::{CanonicalPath, PathError, Resolver};
use ironcurtain_policy::{Denial, Explanation, JudgedRequest, Unannotated};
use ironcurtain_policy_tools::replay::Replay;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// Error from evaluating a call.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The servers file is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The policy is invalid.
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),
    /// The scratch folder could not be resolved.
    #[error("failed to resolve the session's scratch folder: {0}")]
    Sandbox(#[from] PathError),
    /// A path is not valid UTF-8.
    #[error("`{0}` is not valid UTF-8")]
    NotUtf8(String),
    /// The grants could not be read.
    #[error(transparent)]
    Grants(#[from] StoreError),
    /// Several clients have this name.
    #[error(transparent)]
    Client(#[from] AmbiguousClient),
    /// The log could not be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A policy with all the data needed to evaluate calls.
pub struct PolicyTrial {
    /// Snapshot of the policy.
    pub snapshot: Arc<PolicySnapshot>,
    home: Home,
    servers: Servers,
    sandbox: Option<CanonicalPath>,
    /// Folder from which relative paths are resolved if there is no scratch folder.
    cwd: CanonicalPath,
}

/// A call and its decision.
pub struct JudgedCall {
    /// Paths in the call, with their targets and the symlinks that lead to them.
    pub paths: FoundPaths,
    /// Explanation of the decision, or a denial if the call is invalid.
    pub outcome: Result<Explanation, Denial>,
}

impl PolicyTrial {
    /// Loads the policy files. Relative paths in calls are resolved from the `cwd` folder.
    ///
    /// # Errors
    /// Returns a [`TrialError`] if a file is invalid. The error names the file and the line.
    pub fn open(home: Home, files: &PolicyFiles, cwd: &Path) -> Result<Self, TrialError> {
        let servers = Servers::load(&home)?;
        Self::with_servers(home, servers, files, cwd)
    }

    /// Loads the policy files for `servers`. These servers need not be configured yet.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`PolicyTrial::open`].
    pub fn with_servers(
        home: Home,
        servers: Servers,
        files: &PolicyFiles,
        cwd: &Path,
    ) -> Result<Self, TrialError> {
        let snapshot = Arc::new(PolicySnapshot::from_files(&home, &servers, files)?);
        let cwd = cwd.to_str().ok_or_else(|| TrialError::NotUtf8(cwd.display().to_string()))?;
        let cwd = Resolver::new(snapshot.home.clone(), snapshot.home.clone()).locate(cwd)?;
        Ok(Self { snapshot, home, servers, sandbox: None, cwd })
    }

    /// Sets the session's scratch folder. Relative paths are then resolved from this folder.
    ///
    /// # Errors
    /// Returns [`TrialError::Sandbox`] or [`TrialError::NotUtf8`] if the path cannot be used.
    pub fn with_sandbox(mut self, sandbox: Option<&Path>) -> Result<Self, TrialError> {
        if let Some(sandbox) = sandbox {
            let raw = sandbox.to_str().ok_or_else(|| TrialError::NotUtf8(sandbox.display().to_string()))?;
            self.sandbox = Some(self.resolver().resolve(raw)?.path);
        }
        Ok(self)
    }

    /// Returns the configured servers.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Returns the names of the servers whose unannotated tools require approval.
    #[must_use]
    pub fn servers_asking_about_unannotated(&self) -> Vec<&str> {
        let is_asking = |server: &&Server| server.unannotated == Unannotated::Ask;
        self.servers.iter().filter(is_asking).map(|server| server.name.as_str()).collect()
    }

    /// Returns a client's permanent grants for a server.
    ///
    /// # Errors
    /// Returns [`TrialError::Grants`] if reading fails, or [`TrialError::Client`] if several clients have the name.
    pub fn grants_of(&self, client: &str, server: &str) -> Result<ClientGrants, TrialError> {
        ClientGrants::read(&self.home, client, server)
    }

    /// Re-evaluates all calls in the audit log since `since_ms`.
    ///
    /// # Errors
    /// Returns [`TrialError::Replay`] if the log cannot be read or was changed.
    pub fn replay(&self, since_ms: u64) -> Result<Replay, TrialError> {
        Ok(replay(&self.home, &self.servers, &self.snapshot, since_ms)?)
    }

    /// Evaluates a call as the trusted process would with a client's grants.
    #[must_use]
    pub fn judge(
        &self,
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        client_grants: Option<&ClientGrants>,
    ) -> JudgedCall {
        let grants = client_grants.map(ClientGrants::path_grants).unwrap_or_default();
        let reach =
            JudgingContext::reach_by_entry(&self.home, &self.servers, &self.snapshot, server, &grants);
        let confined = JudgingContext::confined_by_entry(&self.home, &self.servers, &self.snapshot, server);
        let context = JudgingContext {
            snapshot: self.snapshot.clone(),
            server: server.to_owned(),
            contained: JudgingContext::contained_by_name(&self.servers, server),
            denied: JudgingContext::denied_by_entry(
                &self.home,
                &self.servers,
                &self.snapshot,
                server,
                self.sandbox.as_ref(),
            ),
            unannotated: JudgingContext::unannotated_by_name(&self.servers, server),
            sandbox: self.sandbox.clone(),
            resolver: self.resolver(),
            grants,
            hosts: client_grants.map(ClientGrants::host_grants).unwrap_or_default(),
            tools: client_grants.map(ClientGrants::tool_grants).unwrap_or_default(),
            approved: Vec::new(),
            reach,
            confined,
            reading_hints: Arc::default(),
        };
        let arguments = match JudgedRequest::parse(tool).map(|request| request.arguments(arguments)) {
            None => Arc::new(arguments.clone()),
            Some(Ok(arguments)) => Arc::new(arguments),
            Some(Err(problem)) => {
                let denial = Denial::invalid(problem.to_string());
                return JudgedCall { paths: FoundPaths::default(), outcome: Err(denial) };
            }
        };
        match context.plan(tool, &arguments).and_then(|planned| planned.locate(&context)) {
            Err(denial) => JudgedCall { paths: FoundPaths::default(), outcome: Err(denial) },
            Ok(located) => {
                let paths = located.paths.clone();
                JudgedCall { outcome: Ok(context.explain(located)), paths }
            }
        }
    }

    fn resolver(&self) -> Resolver {
        let base = self.sandbox.as_ref().unwrap_or(&self.cwd);
        Resolver::new(self.snapshot.home.clone(), base.clone())
    }
}
