//! The files judging goes by: those named on the command line, else the person's, else what ships.

use super::PolicyInputs;
use super::client::HeldGrants;
use anyhow::Context as _;
use ironcurtain_admin::replay::replay;
use ironcurtain_daemon::judging::JudgingContext;
use ironcurtain_daemon::resolve::FoundPaths;
use ironcurtain_daemon::{Home, PolicyFiles, PolicySnapshot, Server, Servers};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{Denial, Explanation, Unannotated};
use ironcurtain_policy_tools::replay::Replay;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// A policy and everything calls are judged with.
pub struct World {
    pub snapshot: Arc<PolicySnapshot>,
    ours: Home,
    servers: Servers,
    sandbox: Option<CanonicalPath>,
}

/// A call with what was found out about it.
pub struct JudgedCall {
    /// Each path, where it leads, and over which links.
    pub paths: FoundPaths,
    /// The explanation of the verdict; a denial when the call was not even understood.
    pub outcome: Result<Explanation, Denial>,
}

impl World {
    /// Reads the files.
    pub fn open(policy: Option<&Path>, inputs: &PolicyInputs) -> anyhow::Result<Self> {
        let ours = Home::from_env()?;
        let servers = Servers::load(&ours)?;
        let files = PolicyFiles {
            policy: policy.map(Path::to_path_buf),
            annotations: inputs.annotations.clone(),
            lists: inputs.lists.clone(),
        };
        let snapshot = Arc::new(PolicySnapshot::from_files(&ours, &servers, &files)?);
        Ok(Self { snapshot, ours, servers, sandbox: None })
    }

    /// With a session sandbox at this folder.
    pub fn with_sandbox(mut self, sandbox: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(sandbox) = sandbox {
            let raw = sandbox.to_str().context("the session sandbox is not UTF-8")?;
            self.sandbox = Some(self.resolver()?.resolve(raw)?.path);
        }
        Ok(self)
    }

    /// The standing grants of a client with a server.
    pub fn grants_of(&self, client: &str, server: &str) -> anyhow::Result<HeldGrants> {
        HeldGrants::read(&self.ours, client, server)
    }

    /// The servers whose tools that nobody has annotated are asked about.
    pub fn asking_about_unannotated(&self) -> Vec<&str> {
        let asks = |server: &&Server| server.unannotated == Unannotated::Ask;
        self.servers.iter().filter(asks).map(|server| server.name.as_str()).collect()
    }

    /// Judges the calls of the audit log since a moment.
    pub fn replay(&self, since_ms: u64) -> anyhow::Result<Replay> {
        Ok(replay(&self.ours, &self.servers, &self.snapshot, since_ms)?)
    }

    /// Judges a call as the trusted process would with what a client holds.
    pub fn judge(
        &self,
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        held: Option<&HeldGrants>,
    ) -> anyhow::Result<JudgedCall> {
        let grants = held.map(HeldGrants::for_judging).unwrap_or_default();
        let reach =
            JudgingContext::reach_by_entry(&self.ours, &self.servers, &self.snapshot, server, &grants);
        let setting = JudgingContext {
            snapshot: self.snapshot.clone(),
            server: server.to_owned(),
            contained: JudgingContext::contained_by_name(&self.servers, server),
            unannotated: JudgingContext::unannotated_by_name(&self.servers, server),
            sandbox: self.sandbox.clone(),
            resolver: self.resolver()?,
            grants,
            hosts: held.map(HeldGrants::for_gate).unwrap_or_default(),
            tools: held.map(HeldGrants::for_tools).unwrap_or_default(),
            approved: Vec::new(),
            reach,
        };
        let arguments = Arc::new(arguments.clone());
        let located = setting.plan(tool, &arguments).and_then(|planned| planned.locate(&setting));
        Ok(match located {
            Err(denial) => JudgedCall { paths: FoundPaths::default(), outcome: Err(denial) },
            Ok(located) => {
                let paths = located.paths.clone();
                JudgedCall { outcome: Ok(setting.explain(located)), paths }
            }
        })
    }

    fn resolver(&self) -> anyhow::Result<Resolver> {
        let base = match &self.sandbox {
            Some(sandbox) => sandbox.clone(),
            None => {
                let here = std::env::current_dir()?.canonicalize()?;
                let here = here.to_str().context("this folder's name is not UTF-8")?;
                CanonicalPath::assume_canonical(here)?
            }
        };
        Ok(Resolver::new(self.snapshot.home.clone(), base))
    }
}
