//! Resolves the git remotes named in a call to addresses, using the repository's and the user's configuration.
//!
//! - Git never runs in the repository. This crate reads the repository's configuration within limits, from regular
//!   files that the caller permits, and git only parses it (`git config --file -`). Git starts no hook, file system
//!   monitor, credential helper, ssh command, pager or alias, and follows no include.
//! - Git itself reads the user's and the machine's configuration (`git config --file` and `--system`), because its own
//!   rules determine which files they include. With `GIT_DIR` set, git reads only `HEAD` and `config` there, to
//!   evaluate conditional includes.
//! - Runs are limited in time, memory and output. If an address cannot be resolved, a placeholder that matches no
//!   pattern takes its place, so the call requires approval or is denied.
//! - This crate makes no decisions, opens no connections and writes no files.
//! - All possible addresses are reported, including every push URL.
//! - If the server may be unable to see the user's configuration, addresses are resolved both with and without it. The
//!   same applies to the machine's configuration if the environment may make git ignore it.

mod address;
mod config;
mod files;
mod remotes;
mod repository;
mod run;
mod settings;

use files::MayAccess;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{CallPlan, Fact};
use remotes::{RemoteUse, Remotes};
use repository::Repository;
use run::GitRunner;
use settings::GitSettings;

/// Environment that affects how git resolves remotes.
#[derive(Debug, Clone)]
pub struct GitContext {
    /// The user's home directory.
    pub home: CanonicalPath,
    /// `true` if the server runs in a sandbox where git may be unable to read the user's configuration.
    pub in_sandbox: bool,
}

/// Remotes of a call whose addresses must be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQuery {
    repositories: Vec<CanonicalPath>,
    remote_use: RemoteUse,
    values: Vec<(usize, Option<String>)>,
}

/// Reason an address is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum UnknownAddress {
    #[error("git timed out")]
    TimedOut,
    #[error("failed to run git")]
    GitFailed,
    #[error("git cannot parse the repository's configuration")]
    Unparsable,
    #[error("the repository's configuration is too large")]
    TooLarge,
    #[error("the repository's configuration is in a location that may not be read")]
    NotAllowed,
    #[error("the repository's configuration is not in regular files")]
    IrregularFile,
    #[error("not every version of git supports the repository's format")]
    UnsupportedFormat,
    #[error("the repository's configuration has conditional includes")]
    ConditionalIncludes,
    #[error("the user's git configuration has includes that depend on a repository's remotes")]
    IncludesByRemote,
    #[error("the repository has remotes in files outside its configuration")]
    LegacyRemotes,
    #[error("the repository's configuration changes how git connects")]
    CustomConnection,
    #[error("the remote uses a helper program")]
    HelperProgram,
    #[error("a remote has an empty address")]
    EmptyAddress,
    #[error("programs may interpret the remote's address differently")]
    Ambiguous,
    #[error("the call does not name its repository")]
    NoRepository,
}

/// Remotes that git may use for a call.
#[derive(Default)]
struct KnownRemotes {
    /// Remotes configured in the call's repositories.
    in_repositories: Vec<Remotes>,
    /// Remotes configured outside any repository, if git may use them.
    outside: Vec<Remotes>,
}

impl RemoteQuery {
    /// Collects a call's remotes, or returns `None` if the call has no remotes. `paths` are folders that may be in
    /// repositories. Addresses in the call must be in the form that is sent to the server.
    #[must_use]
    pub fn new<'a>(plan: &CallPlan<'_>, paths: impl IntoIterator<Item = &'a CanonicalPath>) -> Option<Self> {
        let remotes = plan.values().iter().enumerate().filter(|(_, value)| value.is_remote());
        let values: Vec<_> = remotes.map(|(at, value)| (at, value.raw.map(address::to_send))).collect();
        let mut repositories: Vec<CanonicalPath> = paths.into_iter().cloned().collect();
        repositories.dedup();
        (!values.is_empty()).then(|| Self {
            repositories,
            remote_use: RemoteUse::from_tool_name(plan.tool()),
            values,
        })
    }

    /// Returns unknown addresses for all remotes, for callers that are not allowed to read the repositories.
    #[must_use]
    pub fn all_unknown(&self) -> Vec<(usize, Fact)> {
        self.values.iter().map(|(at, _)| (*at, unknown(&UnknownAddress::NotAllowed))).collect()
    }

    /// Returns the folders that may be in repositories.
    #[must_use]
    pub fn repositories(&self) -> &[CanonicalPath] {
        &self.repositories
    }

    /// Determines the remotes' addresses. Blocking. `may_access` returns `true` for paths that may be accessed.
    #[must_use]
    pub fn resolve_addresses(&self, git: &GitContext, may_access: &MayAccess<'_>) -> Vec<(usize, Fact)> {
        let runner = GitRunner::new(&git.home);
        let known = self.all_settings(git, &runner, may_access);
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
        for remotes in known.in_repositories.iter().chain(known.outside.iter().filter(|_| !is_name)) {
            for address in remotes.addresses(raw, self.remote_use)? {
                let address = address::for_display(&address)?;
                if !all.contains(&address) {
                    all.push(address);
                }
            }
        }
        Ok(all)
    }

    /// Returns the remotes of each repository, with the user's configuration and, in a sandbox, also without it.
    ///
    /// - A call that creates a repository uses no existing repository, and git ignores repositories in parent folders.
    /// - Any other call without a path uses the repository of an earlier call or of the server's folder. Settings there
    ///   could redirect the address anywhere, so the call's addresses are unknown.
    /// - Push and fetch require a repository. Other operations also work outside a repository, or if git rejects the
    ///   repository.
    fn all_settings(
        &self,
        git: &GitContext,
        runner: &GitRunner,
        may_access: &MayAccess<'_>,
    ) -> Result<KnownRemotes, UnknownAddress> {
        if self.repositories.is_empty() && self.remote_use != RemoteUse::Clone {
            return Err(UnknownAddress::NoRepository);
        }
        let mut known = KnownRemotes::default();
        for folder in self.repositories.iter().filter(|_| self.remote_use != RemoteUse::Clone) {
            if let Some(repository) = Repository::find(folder, may_access)? {
                known.in_repositories.extend(repository_remotes(&repository, git, runner, may_access)?);
            }
        }
        if known.in_repositories.is_empty() {
            known.in_repositories = outside_remotes(git, runner)?;
        } else if self.remote_use == RemoteUse::Either {
            known.outside = outside_remotes(git, runner)?;
        }
        Ok(known)
    }
}

/// Returns the remotes that git uses outside any repository.
fn outside_remotes(git: &GitContext, runner: &GitRunner) -> Result<Vec<Remotes>, UnknownAddress> {
    let layers = setting_layers(git, runner, None)?;
    Ok(layers.into_iter().map(|own| Remotes::new([own], None)).collect())
}

/// Returns the remotes in a repository.
fn repository_remotes(
    repository: &Repository,
    git: &GitContext,
    runner: &GitRunner,
    may_access: &MayAccess<'_>,
) -> Result<Vec<Remotes>, UnknownAddress> {
    // Detects unsupported content before git reads the repository.
    let local = config::read_settings(repository, runner, may_access)?;
    let branch = repository.branch(&local, may_access)?;
    // If the worktree is elsewhere, git resolves names relative to that worktree.
    let has_other_worktree = local.last("core.worktree").is_some();
    let known = |own| {
        let remotes = Remotes::new([own, local.clone()], branch.clone());
        remotes.with_local_repositories(|name| has_other_worktree || repository.may_contain(name, may_access))
    };
    Ok(setting_layers(git, runner, Some(repository))?.into_iter().map(known).collect())
}

/// Returns the possible combinations of the machine's and the user's settings. In a sandbox, git may see only the
/// machine's settings, and the environment may make git ignore the machine's settings.
fn setting_layers(
    git: &GitContext,
    runner: &GitRunner,
    repository: Option<&Repository>,
) -> Result<Vec<GitSettings>, UnknownAddress> {
    let without = run::may_ignore_machine_settings().then(GitSettings::default);
    let (machine, user) = (runner.machine_settings(repository)?, runner.user_settings(repository)?);
    let mut layers = Vec::new();
    for machine in [machine].into_iter().chain(without) {
        layers.extend(git.in_sandbox.then(|| machine.clone()));
        layers.push(GitSettings([machine.0, user.0.clone()].concat()));
    }
    Ok(layers)
}

/// Returns a sentence in place of an unknown address. No pattern covers a sentence.
fn unknown(why: &UnknownAddress) -> Fact {
    Fact::Remotes(vec![format!("(unknown: {why})")])
}

#[cfg(test)]
mod tests;
