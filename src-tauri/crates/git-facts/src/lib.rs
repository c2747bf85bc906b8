//! Resolves the git remotes of a call to addresses, using the configuration of the repository and the user.
//!
//! - Git never runs in the repository. This crate reads the repository's configuration, within limits and only
//!   from regular files that the caller permits, and git merely parses it (`git config --file -`). No hook,
//!   file system monitor, credential helper, ssh command, pager or alias is started, and git follows no
//!   include.
//! - Git itself reads the configuration of the user and the machine (`git config --file` and `--system`), because git's
//!   own rules determine what these files include. With `GIT_DIR` set, git reads only `HEAD` and `config` there,
//!   for conditional includes.
//! - Every run is limited in time, memory and output. An address that cannot be determined is replaced by one
//!   that no pattern covers, so that the call requires approval or is denied.
//! - This crate never decides, connects or writes.
//! - All possible addresses are reported: those of every push URL, with and without the user's configuration if
//!   the server may not see it, and with and without the machine's if the environment may make git ignore it.

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

/// Environment on which the result depends.
#[derive(Debug, Clone)]
pub struct GitContext {
    /// The user's home directory.
    pub home: CanonicalPath,
    /// `true` if the server runs in a sandbox in which git may not see the user's configuration.
    pub in_sandbox: bool,
}

/// Remotes in a call, whose addresses must be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQuestion {
    repositories: Vec<CanonicalPath>,
    way: RemoteUse,
    values: Vec<(usize, Option<String>)>,
}

/// Reason an address is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum UnknownAddress {
    #[error("git timed out")]
    Late,
    #[error("failed to run git")]
    NotRun,
    #[error("git cannot parse the configuration of the repository")]
    NotUnderstood,
    #[error("the configuration of the repository is too large")]
    TooBig,
    #[error("the configuration of the repository is in a place that may not be read")]
    NotAllowed,
    #[error("the configuration of the repository is not in regular files")]
    NotPlain,
    #[error("not every version of git supports the format of the repository")]
    Foreign,
    #[error("the configuration of the repository has conditional includes")]
    Conditional,
    #[error("the user's git configuration has includes that depend on a repository's remotes")]
    ByRemote,
    #[error("the repository has remotes in files outside its configuration")]
    Legacy,
    #[error("the configuration of the repository changes how git connects")]
    Connected,
    #[error("the remote uses a helper program")]
    Helper,
    #[error("a remote has an empty address")]
    Empty,
    #[error("programs may read the address of the remote differently")]
    Ambiguous,
    #[error("the call does not name its repository")]
    NoRepository,
}

/// Remotes that git may use for a call.
#[derive(Default)]
struct KnownRemotes {
    /// Remotes in the repositories of the call.
    there: Vec<Remotes>,
    /// Remotes outside any repository, if git may use those instead.
    anywhere: Vec<Remotes>,
}

impl RemoteQuestion {
    /// Collects the remotes of a call; `None` if it has none. `paths` are folders that may be in repositories. The
    /// addresses in the call must have the form in which they are sent to the server.
    #[must_use]
    pub fn of<'a>(plan: &CallPlan<'_>, paths: impl IntoIterator<Item = &'a CanonicalPath>) -> Option<Self> {
        let remotes = plan.values().iter().enumerate().filter(|(_, value)| value.is_remote());
        let values: Vec<_> = remotes.map(|(at, value)| (at, value.raw.map(address::sent))).collect();
        let mut repositories: Vec<CanonicalPath> = paths.into_iter().cloned().collect();
        repositories.dedup();
        (!values.is_empty()).then(|| Self { repositories, way: RemoteUse::of(plan.tool()), values })
    }

    /// Returns unknown addresses for all remotes, for a caller that may not read the repositories.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, Fact)> {
        self.values.iter().map(|(at, _)| (*at, unknown(&UnknownAddress::NotAllowed))).collect()
    }

    /// Returns the folders that may be in repositories.
    #[must_use]
    pub fn repositories(&self) -> &[CanonicalPath] {
        &self.repositories
    }

    /// Determines the addresses of the remotes. Blocking. `may_look` returns `true` for paths that may be
    /// accessed.
    #[must_use]
    pub fn answer(&self, git: &GitContext, may_look: &MayLook<'_>) -> Vec<(usize, Fact)> {
        let runner = GitRunner::new(&git.home);
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

    /// Returns the remotes in each repository, with the user's configuration and, in a sandbox, also without
    /// it.
    ///
    /// - A call that creates a repository uses no existing repository, and git ignores repositories above its folder.
    /// - Any other call without a path works in a repository from an earlier call or in the server's folder,
    ///   whose settings could redirect the address anywhere. Its addresses are unknown.
    /// - Push and fetch require a repository. Other operations also work without one, or if git rejects the
    ///   repository.
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

/// Returns the remotes that git uses outside any repository.
fn outside(git: &GitContext, runner: &GitRunner) -> Result<Vec<Remotes>, UnknownAddress> {
    let layers = own_layers(git, runner, None)?;
    Ok(layers.into_iter().map(|own| Remotes::new([own], None)).collect())
}

/// Returns the remotes in a repository.
fn inside(
    place: &Repository,
    git: &GitContext,
    runner: &GitRunner,
    may_look: &MayLook<'_>,
) -> Result<Vec<Remotes>, UnknownAddress> {
    // Unsupported content must be found before git reads the repository.
    let local = config::read_settings(place, runner, may_look)?;
    let branch = place.branch(&local, may_look)?;
    // With a separate working tree, git resolves names there.
    let is_elsewhere = local.last("core.worktree").is_some();
    let known = |own| {
        let remotes = Remotes::new([own, local.clone()], branch.clone());
        remotes.with_beside(|name| is_elsewhere || place.may_hold(name, may_look))
    };
    Ok(own_layers(git, runner, Some(place))?.into_iter().map(known).collect())
}

/// Returns the possible combinations of the machine's and the user's settings. In a sandbox, git may see only the
/// machine's settings. The environment may make git ignore the machine's settings.
fn own_layers(
    git: &GitContext,
    runner: &GitRunner,
    place: Option<&Repository>,
) -> Result<Vec<GitSettings>, UnknownAddress> {
    let without = run::may_pass_over_machine().then(GitSettings::default);
    let (machine, user) = (runner.of_machine(place)?, runner.of_user(place)?);
    let mut layers = Vec::new();
    for machine in [machine].into_iter().chain(without) {
        layers.extend(git.in_sandbox.then(|| machine.clone()));
        layers.push(GitSettings([machine.0, user.0.clone()].concat()));
    }
    Ok(layers)
}

/// Returns a placeholder for an unknown address. No pattern covers it, because it is a sentence.
fn unknown(why: &UnknownAddress) -> Fact {
    Fact::Remotes(vec![format!("(unknown: {why})")])
}

#[cfg(test)]
mod tests;
