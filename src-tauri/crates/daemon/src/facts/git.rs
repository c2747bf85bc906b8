//! Where the git remotes of a call lead, by the configuration of the repository and the person's own.
//!
//! - Git never works in the repository: its configuration is read here, bounded and only from regular files at places
//!   that the caller lets be looked at, and git only spells it out (`git config --file -`). No hook, file system
//!   monitor, credential helper, ssh command, pager or alias is started by that, and no include is followed by git.
//! - The person's and the machine's own configuration is read by git itself (`git config --global` and `--system`),
//!   because it decides what git really does. With `GIT_DIR` named, git looks at `HEAD` and `config` there for the
//!   conditions of includes, and at nothing else.
//! - Every run is bounded in time, memory and output ([`run`]). What is not found out is an address that no pattern
//!   covers: the call is then asked about or refused, never waved through.
//! - All addresses count: of every push URL, and as git has them with and without the person's own configuration where
//!   the server is not shown that.

mod place;
mod remotes;
mod run;
mod settings;

use super::FoundPath;
use ironcurtain_paths::{CanonicalPath, Target};
use ironcurtain_policy::{CallPlan, Fact};
use place::Place;
use remotes::{Remotes, Way};
use run::Runner;
use settings::Settings;

/// How git is asked.
#[derive(Debug, Clone)]
pub struct Git {
    /// The person's home.
    pub person: CanonicalPath,
    /// Whether the server's git may be without the person's own configuration.
    pub in_sandbox: bool,
}

/// What a call needs to know of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQuestion {
    repositories: Vec<CanonicalPath>,
    way: Way,
    values: Vec<(usize, Option<String>)>,
}

/// Why an address is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unknown {
    #[error("git did not answer in time")]
    Late,
    #[error("git could not be run")]
    NotRun,
    #[error("git does not understand the configuration of the repository")]
    NotUnderstood,
    #[error("the configuration of the repository is too big")]
    TooBig,
    #[error("the configuration of the repository is in a place that may not be looked at")]
    NotAllowed,
    #[error("the configuration of the repository is not in plain files")]
    NotPlain,
    #[error("the configuration of the repository includes other files under conditions")]
    Conditional,
    #[error("the remote is reached by a helper program")]
    Helper,
}

impl RemoteQuestion {
    /// What is to be asked for a call; nothing when it has no git remote. The repositories are the folders that its
    /// paths lead to.
    #[must_use]
    pub fn of(plan: &CallPlan<'_>, paths: &[FoundPath]) -> Option<Self> {
        let remotes = plan.values().iter().enumerate().filter(|(_, value)| value.is_remote());
        let values: Vec<_> = remotes.map(|(at, value)| (at, value.raw.map(str::to_owned))).collect();
        let folders = paths.iter().filter(|found| found.target == Target::Folder);
        let mut repositories: Vec<CanonicalPath> = folders.map(|found| found.path.clone()).collect();
        repositories.dedup();
        (!values.is_empty()).then(|| Self { repositories, way: Way::of(plan.tool()), values })
    }

    /// The answer when nothing may be looked at.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Fact)> {
        self.values.iter().map(|(at, _)| (*at, unknown(&Unknown::NotAllowed))).collect()
    }

    /// The folders that may be repositories.
    #[must_use]
    pub fn repositories(&self) -> &[CanonicalPath] {
        &self.repositories
    }

    /// Asks git. Blocking. `may_look` says whether the file or folder at a place may be looked at.
    #[must_use]
    pub fn answer(&self, git: &Git, may_look: &dyn Fn(&CanonicalPath) -> bool) -> Vec<(usize, Fact)> {
        let runner = Runner::new(&git.person);
        let known = self.all_settings(git, &runner, may_look);
        let fact = |raw: Option<&str>| {
            let all = known.as_ref().map_err(Unknown::clone).and_then(|known| self.addresses(known, raw));
            all.map_or_else(|why| unknown(&why), Fact::Remotes)
        };
        self.values.iter().map(|(at, raw)| (*at, fact(raw.as_deref()))).collect()
    }

    fn addresses(&self, known: &[Remotes], raw: Option<&str>) -> Result<Vec<String>, Unknown> {
        let mut all = Vec::new();
        for remotes in known {
            for address in remotes.addresses(raw, self.way)? {
                let address = without_password(&address);
                if !all.contains(&address) {
                    all.push(address);
                }
            }
        }
        Ok(all)
    }

    /// The settings of each repository, with the person's own and, in a sandbox, also without.
    fn all_settings(
        &self,
        git: &Git,
        runner: &Runner,
        may_look: &dyn Fn(&CanonicalPath) -> bool,
    ) -> Result<Vec<Remotes>, Unknown> {
        let mut places = Vec::new();
        for repository in &self.repositories {
            places.push(Place::find(repository, may_look)?);
        }
        places.retain(Option::is_some);
        if places.is_empty() {
            places.push(None);
        }
        let mut all = Vec::new();
        for place in places {
            // What is odd there is found before git looks at the place.
            let (local, branch) = match &place {
                Some(place) => (place.settings(runner, may_look)?, place.branch(may_look)?),
                None => (Settings::default(), None),
            };
            let system = runner.own("--system", place.as_ref())?;
            let global = runner.own("--global", place.as_ref())?;
            if git.in_sandbox {
                all.push(Remotes::new([system.clone(), local.clone()], branch.clone()));
            }
            all.push(Remotes::new([system, global, local], branch));
        }
        Ok(all)
    }
}

/// No pattern covers a sentence.
fn unknown(why: &Unknown) -> Fact {
    Fact::Remotes(vec![format!("(not known, because {why})")])
}

/// An address is shown and put on record: what it may hold of a secret is not part of where it leads.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Some((login, host)) = authority.rsplit_once('@') else { return address.to_owned() };
    match login.split_once(':') {
        // Forges take a token in place of a name.
        _ if scheme.starts_with("http") => format!("{scheme}://{host}{path}"),
        Some((name, _)) => format!("{scheme}://{name}@{host}{path}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests;
