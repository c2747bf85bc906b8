//! The files judging goes by: those named on the command line, else the person's, else what ships.

use super::Beside;
use anyhow::{Context as _, anyhow};
use ironcurtain_daemon::{Home, canonical_home, protected};
use ironcurtain_paths::{CanonicalPath, Link, Resolver};
use ironcurtain_policy::{
    Annotations, Context, Denial, DynamicLists, Explanation, Fact, Gates, Policy, Protected, ResolvedCall,
    defaults, explain,
};
use serde_json::{Map, Value};
use std::path::Path;

/// A policy and everything calls are judged with.
pub struct World {
    pub policy: Policy,
    pub annotations: Annotations,
    pub home: CanonicalPath,
    pub sandbox: Option<CanonicalPath>,
    protected: Protected,
}

/// A call with what was found out about it.
pub struct Judged {
    /// Each path: its argument, as written, where it leads, and over which links.
    pub paths: Vec<FoundPath>,
    /// The way to the verdict; a denial when the call was not even understood.
    pub outcome: Result<Explanation, Denial>,
}

/// Where a path of a call leads.
pub struct FoundPath {
    pub argument: String,
    pub written: String,
    pub path: CanonicalPath,
    pub links: Vec<Link>,
}

impl World {
    /// Reads the files.
    pub fn open(policy: Option<&Path>, beside: &Beside) -> anyhow::Result<Self> {
        let ours = Home::from_env()?;
        let home = canonical_home(&ours)?;
        let resolver = Resolver::new(home.clone(), home.clone());
        let place = |named: Option<&Path>, name: &str| {
            named.map_or_else(|| Place::Usual(ours.policy().join(name)), |path| Place::Named(path.to_owned()))
        };
        let lists = place(beside.lists.as_deref(), "dynamic-lists.json");
        let lists = match lists.read()? {
            Some(text) => DynamicLists::from_json(&text, &lists.name())?,
            None => DynamicLists::default(),
        };
        let file = place(policy, "compiled-policy.json");
        let text = file.read()?.unwrap_or_else(|| defaults::POLICY_JSON.to_owned());
        let within = |raw: &str| resolver.locate(raw).map_err(|e| e.to_string());
        let policy = Policy::from_json(&text, &file.name(), &within, &lists)?;
        let file = place(beside.annotations.as_deref(), "tool-annotations.json");
        let text = file.read()?.unwrap_or_else(|| defaults::ANNOTATIONS_JSON.to_owned());
        let annotations = Annotations::from_json(&text, &file.name())?;
        let protected = protected(&ours, &home, &resolver)?.into_iter().collect();
        Ok(Self { policy, annotations, home, sandbox: None, protected })
    }

    /// With a session sandbox at this folder.
    pub fn with_sandbox(mut self, sandbox: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(sandbox) = sandbox {
            let raw = sandbox.to_str().context("the session sandbox is not UTF-8")?;
            self.sandbox = Some(self.resolver()?.resolve(raw)?.path);
        }
        Ok(self)
    }

    /// Judges a call as the trusted process would without grants.
    pub fn judge(&self, server: &str, tool: &str, arguments: &Map<String, Value>) -> anyhow::Result<Judged> {
        let mut paths = Vec::new();
        let resolver = self.resolver()?;
        let outcome = self.resolve(server, tool, arguments, &resolver, &mut paths).map(|call| {
            let context = Context {
                sandbox: self.sandbox.as_ref(),
                sandbox_servers: &[server.to_owned()],
                protected: &self.protected,
                gates: &Gates::default(),
                grants: &[],
                approved: &[],
            };
            explain(&self.policy, &context, &call)
        });
        Ok(Judged { paths, outcome })
    }

    fn resolve(
        &self,
        server: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        resolver: &Resolver,
        paths: &mut Vec<FoundPath>,
    ) -> Result<ResolvedCall, Denial> {
        let plan = self.annotations.plan(server, tool, &arguments.clone().into())?;
        let mut facts = Vec::new();
        for value in plan.values() {
            let (true, Some(raw)) = (value.is_path(), &value.raw) else {
                facts.push(Fact::Plain);
                continue;
            };
            let found = resolver.resolve(raw).map_err(|e| Denial::unresolvable(&value.argument, &e))?;
            facts.push(Fact::Path(found.path.clone()));
            let (argument, written) = (value.argument.to_string(), raw.clone());
            paths.push(FoundPath { argument, written, path: found.path, links: found.links });
        }
        plan.with_facts(facts)
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
        Ok(Resolver::new(self.home.clone(), base))
    }
}

/// Where a file is looked for.
enum Place {
    /// Where the person named it: it must be there.
    Named(std::path::PathBuf),
    /// Where it usually is: what ships stands in for it.
    Usual(std::path::PathBuf),
}

impl Place {
    fn read(&self) -> anyhow::Result<Option<String>> {
        let (Self::Named(path) | Self::Usual(path)) = self;
        match (std::fs::read_to_string(path), self) {
            (Ok(text), _) => Ok(Some(text)),
            (Err(e), Self::Usual(_)) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            (Err(e), _) => Err(anyhow!("`{}` cannot be read: {e}", path.display())),
        }
    }

    fn name(&self) -> String {
        let (Self::Named(path) | Self::Usual(path)) = self;
        path.display().to_string()
    }
}
