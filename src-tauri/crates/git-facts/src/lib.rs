//! The addresses that the git remotes of a call lead to, by the configuration of the repository and the person's own.
//!
//! - Git never works in the repository: its configuration is read here, bounded and only from regular files at places
//!   that the caller lets be looked at, and git only spells it out (`git config --file -`). No hook, file system
//!   monitor, credential helper, ssh command, pager or alias is started by that, and no include is followed by git.
//! - The person's and the machine's own configuration is read by git itself (`git config --file` and `--system`),
//!   because it decides what git really does. With `GIT_DIR` named, git looks at `HEAD` and `config` there for the
//!   conditions of includes, and at nothing else.
//! - Every run is bounded in time, memory and output (`run`). What is not found out is an address that no pattern
//!   covers: the call is then asked about or refused, never waved through.
//! - Never decides, never connects to anything, never writes: it says where the caller may be led.
//! - All addresses count: of every push URL, and as git has them with and without the person's own configuration where
//!   the server is not shown that, and with and without the machine's where git may be told to pass over it.

mod address;
mod config;
mod files;
mod remotes;
mod repository;
mod run;
mod settings;

use files::MayLook;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{CallPlan, Fact};
use remotes::{RemoteUse, Remotes};
use repository::Repository;
use run::GitRunner;
use settings::GitSettings;

/// The circumstances that git's answers depend on.
#[derive(Debug, Clone)]
pub struct GitContext {
    /// The person's home.
    pub person: CanonicalPath,
    /// The server's git may be without the person's own configuration.
    pub in_sandbox: bool,
}

/// A call's question about remotes, which git's configuration answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQuestion {
    repositories: Vec<CanonicalPath>,
    way: RemoteUse,
    values: Vec<(usize, Option<String>)>,
}

/// Why an address is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum UnknownAddress {
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
    #[error("the repository is of a format that not every git reads")]
    Foreign,
    #[error("the configuration of the repository includes other files under conditions")]
    Conditional,
    #[error("the person's own configuration of git includes other files by the remotes of a repository")]
    ByRemote,
    #[error("the repository has remotes in files of their own, outside its configuration")]
    Legacy,
    #[error("the configuration of the repository changes how git connects")]
    Connected,
    #[error("the remote is reached by a helper program")]
    Helper,
    #[error("a remote has an empty address")]
    Empty,
    #[error("programs may understand the address of the remote differently")]
    Ambiguous,
    #[error("the call does not say in which repository it works")]
    NoRepository,
}

/// Remotes, as git knows them.
#[derive(Default)]
struct KnownRemotes {
    /// Those of the place where the call works.
    there: Vec<Remotes>,
    /// Without a repository, where git may also go by that.
    anywhere: Vec<Remotes>,
}

impl RemoteQuestion {
    /// The question of a call; none when it has no git remote. Its paths may lead to repositories. An address is asked
    /// about as it is sent.
    #[must_use]
    pub fn of<'a>(plan: &CallPlan<'_>, paths: impl IntoIterator<Item = &'a CanonicalPath>) -> Option<Self> {
        let remotes = plan.values().iter().enumerate().filter(|(_, value)| value.is_remote());
        let values: Vec<_> = remotes.map(|(at, value)| (at, value.raw.map(address::sent))).collect();
        let mut repositories: Vec<CanonicalPath> = paths.into_iter().cloned().collect();
        repositories.dedup();
        (!values.is_empty()).then(|| Self { repositories, way: RemoteUse::of(plan.tool()), values })
    }

    /// The answer when nothing may be looked at.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Fact)> {
        self.values.iter().map(|(at, _)| (*at, unknown(&UnknownAddress::NotAllowed))).collect()
    }

    /// The folders that may be repositories.
    #[must_use]
    pub fn repositories(&self) -> &[CanonicalPath] {
        &self.repositories
    }

    /// Asks git. Blocking. `may_look` says whether the file or folder at a place may be looked at.
    #[must_use]
    pub fn answer(&self, git: &GitContext, may_look: &MayLook<'_>) -> Vec<(usize, Fact)> {
        let runner = GitRunner::new(&git.person);
        let known = self.all_settings(git, &runner, may_look);
        let fact = |raw: Option<&str>| {
            let all =
                known.as_ref().map_err(UnknownAddress::clone).and_then(|known| self.addresses(known, raw));
            all.map_or_else(|why| unknown(&why), Fact::Remotes)
        };
        self.values.iter().map(|(at, raw)| (*at, fact(raw.as_deref()))).collect()
    }

    fn addresses(&self, known: &KnownRemotes, raw: Option<&str>) -> Result<Vec<String>, UnknownAddress> {
        let mut all = Vec::new();
        let is_name = raw.is_some_and(|raw| !raw.contains(':'));
        for remotes in known.there.iter().chain(known.anywhere.iter().filter(|_| !is_name)) {
            for address in remotes.addresses(raw, self.way)? {
                let address = address::shown(&address)?;
                if !all.contains(&address) {
                    all.push(address);
                }
            }
        }
        Ok(all)
    }

    /// The settings of each repository, with the person's own and, in a sandbox, also without.
    ///
    /// - A call that makes a repository needs none, and git does not look at one around it.
    /// - Any other that names none works in one that it was told of before, or that its server always works in. That
    ///   one's settings could lead an address anywhere.
    /// - Nothing is pushed or fetched without a repository. What else git does with an address it also does without
    ///   one, for which it takes one that it may not use.
    fn all_settings(
        &self,
        git: &GitContext,
        runner: &GitRunner,
        may_look: &MayLook<'_>,
    ) -> Result<KnownRemotes, UnknownAddress> {
        if self.repositories.is_empty() && self.way != RemoteUse::Clone {
            return Err(UnknownAddress::NoRepository);
        }
        let mut known = KnownRemotes::default();
        for folder in self.repositories.iter().filter(|_| self.way != RemoteUse::Clone) {
            if let Some(place) = Repository::find(folder, may_look)? {
                known.there.extend(inside(&place, git, runner, may_look)?);
            }
        }
        if known.there.is_empty() {
            known.there = outside(git, runner)?;
        } else if self.way == RemoteUse::Either {
            known.anywhere = outside(git, runner)?;
        }
        Ok(known)
    }
}

/// The remotes that git knows outside of any repository.
fn outside(git: &GitContext, runner: &GitRunner) -> Result<Vec<Remotes>, UnknownAddress> {
    let layers = own_layers(git, runner, None)?;
    Ok(layers.into_iter().map(|own| Remotes::new([own], None)).collect())
}

/// The remotes that git knows in a repository.
fn inside(
    place: &Repository,
    git: &GitContext,
    runner: &GitRunner,
    may_look: &MayLook<'_>,
) -> Result<Vec<Remotes>, UnknownAddress> {
    // What is odd there is found before git looks at the place.
    let local = config::read_settings(place, runner, may_look)?;
    let branch = place.branch(&local, may_look)?;
    // With a working tree elsewhere, names are looked for there.
    let is_elsewhere = local.last("core.worktree").is_some();
    let known = |own| {
        let remotes = Remotes::new([own, local.clone()], branch.clone());
        remotes.with_beside(|name| is_elsewhere || place.may_hold(name, may_look))
    };
    Ok(own_layers(git, runner, Some(place))?.into_iter().map(known).collect())
}

/// The settings of the machine and the person; in a sandbox also those of the machine alone. Where git may pass over
/// those of the machine, also the same without them.
fn own_layers(
    git: &GitContext,
    runner: &GitRunner,
    place: Option<&Repository>,
) -> Result<Vec<GitSettings>, UnknownAddress> {
    let without = run::may_pass_over_machine().then(GitSettings::default);
    let (machine, person) = (runner.of_machine(place)?, runner.of_person(place)?);
    let mut layers = Vec::new();
    for machine in [machine].into_iter().chain(without) {
        layers.extend(git.in_sandbox.then(|| machine.clone()));
        layers.push(GitSettings([machine.0, person.0.clone()].concat()));
    }
    Ok(layers)
}

/// No pattern covers a sentence.
fn unknown(why: &UnknownAddress) -> Fact {
    Fact::Remotes(vec![format!("(not known, because {why})")])
}

#[cfg(test)]
mod tests;
