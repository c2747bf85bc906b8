//! Resolves remotes to addresses from settings, like git's `remote.c`. Performs no I/O.

use super::UnknownAddress;
use super::settings::GitSettings;

/// Maximum number of names resolved for one call.
const MAX_NAMES: usize = 1000;

/// Operation that a tool performs with a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemoteUse {
    /// Receives objects from the remote.
    Fetch,
    /// Sends objects to the remote.
    Push,
    /// Creates a new repository from the remote, ignoring any existing one.
    Clone,
    /// The tool's name does not reveal the operation.
    Either,
}

impl RemoteUse {
    pub(super) fn from_tool_name(tool: &str) -> Self {
        let tool = tool.to_ascii_lowercase();
        let has_word = |words: &[&str]| words.iter().any(|word| tool.contains(word));
        if has_word(&["push"]) {
            Self::Push
        } else if has_word(&["fetch", "pull"]) {
            Self::Fetch
        } else if has_word(&["clone"]) {
            Self::Clone
        } else {
            Self::Either
        }
    }
}

/// Remotes that git knows in one repository, or outside any repository.
#[derive(Debug, Clone)]
pub(super) struct Remotes {
    settings: GitSettings,
    branch: Option<String>,
    local_repositories: Vec<String>,
}

impl Remotes {
    /// Creates the remotes from the current branch's name and from settings, in the order in which git reads them.
    pub(super) fn new(layers: impl IntoIterator<Item = GitSettings>, branch: Option<String>) -> Self {
        let settings = GitSettings(layers.into_iter().flat_map(|layer| layer.0).collect());
        Self { settings, branch, local_repositories: Vec::new() }
    }

    /// Records which default remotes may be names of repositories in the folder, according to `is_repository`.
    pub(super) fn with_local_repositories(mut self, is_repository: impl Fn(&str) -> bool) -> Self {
        let local_repositories = self.defaults(true).into_iter().filter(|name| is_repository(name));
        self.local_repositories = local_repositories.collect();
        self
    }

    /// Returns every address that the tool's argument can mean. `raw` is `None` if the call names no remote.
    pub(super) fn addresses(
        &self,
        raw: Option<&str>,
        remote_use: RemoteUse,
    ) -> Result<Vec<String>, UnknownAddress> {
        match remote_use {
            RemoteUse::Fetch | RemoteUse::Clone => self.for_direction(raw, false),
            RemoteUse::Push => self.for_direction(raw, true),
            RemoteUse::Either => {
                Ok([self.for_direction(raw, false)?, self.for_direction(raw, true)?].concat())
            }
        }
    }

    fn for_direction(&self, raw: Option<&str>, pushes: bool) -> Result<Vec<String>, UnknownAddress> {
        let mut all = Vec::new();
        match raw {
            // Git parses a leading dash as an option.
            Some(raw) if raw.starts_with('-') => all.push(raw.to_owned()),
            Some(raw) => self.add_addresses(raw, pushes, &mut Vec::new(), &mut all)?,
            None => self.add_default_addresses(pushes, &mut all)?,
        }
        // Any operation can make git fetch missing objects from these remotes.
        for name in self.names()?.into_iter().filter(|name| self.is_promisor(name)) {
            all.extend(self.remote(name, false)?);
        }
        Ok(all)
    }

    /// Returns `true` if git may later fetch objects from this remote that a partial clone omitted.
    fn is_promisor(&self, name: &str) -> bool {
        let is_named = self.settings.all("extensions.partialclone").any(|partial| partial == name);
        is_named
            || self.remote_settings(name).any(|(key, _)| matches!(key, "promisor" | "partialclonefilter"))
    }

    /// Adds every address that a name can mean: the addresses of a remote or of a group's remotes, or the name itself
    /// as an address.
    fn add_addresses(
        &self,
        name: &str,
        pushes: bool,
        visited: &mut Vec<String>,
        all: &mut Vec<String>,
    ) -> Result<(), UnknownAddress> {
        if visited.iter().any(|known| known == name) {
            return Ok(());
        }
        if visited.len() >= MAX_NAMES {
            return Err(UnknownAddress::TooLarge);
        }
        visited.push(name.to_owned());
        let group = format!("remotes.{name}");
        let members: Vec<&str> = self.settings.all(&group).flat_map(split_list).collect();
        for member in &members {
            self.add_addresses(member, pushes, visited, all)?;
        }
        let own_addresses = self.remote(name, pushes)?;
        // Only fetches accept a group. Other operations treat the group's name as a remote.
        if pushes || members.len() < 2 || !self.is_unknown(name, &own_addresses) {
            all.extend(own_addresses);
        }
        Ok(())
    }

    /// Adds the addresses used if the call names no remote. Skips plain names that are not configured.
    fn add_default_addresses(&self, pushes: bool, all: &mut Vec<String>) -> Result<(), UnknownAddress> {
        if !pushes && self.settings.is_on("fetch.all")? {
            let mut visited = Vec::new();
            for name in self.names()? {
                self.add_addresses(name, pushes, &mut visited, all)?;
            }
        }
        for name in self.defaults(pushes) {
            let found = self.remote(&name, pushes)?;
            if self.local_repositories.contains(&name) || !self.is_unknown(&name, &found) {
                all.extend(found);
                return Ok(());
            }
        }
        let name = match self.names()?.as_slice() {
            [only] => only,
            _ => "origin",
        };
        if self.is_configured(name) {
            all.extend(self.remote(name, pushes)?);
        }
        Ok(())
    }

    /// Returns the default remotes from the configuration, in order of precedence.
    fn defaults(&self, pushes: bool) -> Vec<String> {
        let branch_key = |key: &str| Some(format!("branch.{}.{key}", self.branch.as_deref()?));
        let push_keys = [branch_key("pushremote"), Some("remote.pushdefault".to_owned())];
        let keys = push_keys.into_iter().filter(|_| pushes).chain([branch_key("remote")]).flatten();
        keys.filter_map(|key| self.settings.last(&key).map(str::to_owned)).collect()
    }

    /// Returns the addresses of the remote with this name, even if it is not configured.
    fn remote(&self, name: &str, pushes: bool) -> Result<Vec<String>, UnknownAddress> {
        let setting_values = |key: &str| {
            let values = self.remote_settings(name).filter(|(known, _)| *known == key);
            values.map(|(_, value)| value.unwrap_or_default()).collect::<Vec<_>>()
        };
        if !setting_values("vcs").is_empty() {
            return Err(UnknownAddress::HelperProgram);
        }
        let (mut urls, push_urls) = (setting_values("url"), setting_values("pushurl"));
        if [&urls, &push_urls].into_iter().flatten().any(|url| url.is_empty()) {
            return Err(UnknownAddress::EmptyAddress);
        }
        let is_address = urls.is_empty();
        if is_address {
            urls.push(name);
        }
        let replaced =
            |url: &&str| self.replace_prefix(url, ".insteadof").unwrap_or_else(|| (*url).to_owned());
        let mut all: Vec<String> = Vec::new();
        if pushes {
            all.extend(push_urls.iter().map(replaced));
            if all.is_empty() || is_address {
                all.extend(urls.iter().filter_map(|url| self.replace_prefix(url, ".pushinsteadof")));
            }
        }
        if all.is_empty() {
            all.extend(urls.iter().map(replaced));
        }
        // An empty address makes git clear the list.
        if all.iter().any(String::is_empty) { Err(UnknownAddress::EmptyAddress) } else { Ok(all) }
    }

    /// Returns `true` if a name is neither a configured remote nor an address.
    fn is_unknown(&self, name: &str, found: &[String]) -> bool {
        let is_plain = !name.is_empty() && !name.contains(['/', ':', '.', '\\']);
        is_plain && !self.is_configured(name) && found == [name]
    }

    fn is_configured(&self, name: &str) -> bool {
        self.remote_settings(name).next().is_some()
    }

    /// Iterates over a remote's settings. Git ignores remotes whose name starts with a slash.
    fn remote_settings<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let settings = self.settings.0.iter().filter(move |_| !name.starts_with('/'));
        settings.filter_map(move |(key, value)| {
            let rest = key.strip_prefix("remote.")?.strip_prefix(name)?.strip_prefix('.')?;
            (!rest.contains('.')).then_some((rest, value.as_deref()))
        })
    }

    /// Returns the names of all configured remotes.
    fn names(&self) -> Result<Vec<&str>, UnknownAddress> {
        let mut names = Vec::new();
        for (key, _) in &self.settings.0 {
            let name = key.strip_prefix("remote.").and_then(|rest| Some(rest.rsplit_once('.')?.0));
            names.extend(name.filter(|name| !name.starts_with('/') && !names.contains(name)));
            if names.len() > MAX_NAMES {
                return Err(UnknownAddress::TooLarge);
            }
        }
        Ok(names)
    }

    /// Applies git's `url.<base>.<name>` settings, such as `insteadOf`: replaces the longest matching prefix of an
    /// address. Returns `None` if no prefix matches. If several bases define that prefix, git uses the base that
    /// appears first in its configuration, even if that first entry defines a different prefix.
    fn replace_prefix(&self, url: &str, name: &str) -> Option<String> {
        let matches = |(_, prefix): &(&str, &str)| url.starts_with(prefix);
        let matching: Vec<_> = self.settings.subsections("url.", name).filter(matches).collect();
        let longest = matching.iter().map(|(_, prefix)| prefix.len()).max()?;
        let is_best = |(base, _): &(&str, &str)| {
            matching.iter().any(|(other, prefix)| other == base && prefix.len() == longest)
        };
        let (base, _) = self.settings.subsections("url.", name).find(is_best)?;
        Some(format!("{base}{}", url.get(longest..)?))
    }
}

/// Splits a list at git's separator characters.
fn split_list(list: &str) -> impl Iterator<Item = &str> {
    list.split([' ', '\t', '\n']).filter(|word| !word.is_empty())
}
