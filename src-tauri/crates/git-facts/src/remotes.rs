//! Resolves remotes to addresses from settings, like git's `remote.c`. Performs no I/O.

use super::UnknownAddress;
use super::settings::GitSettings;

/// Maximum number of names resolved for one call.
const MAX_COUNT: usize = 1000;

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
    pub(super) fn of(tool: &str) -> Self {
        let tool = tool.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| tool.contains(word));
        if says(&["push"]) {
            Self::Push
        } else if says(&["fetch", "pull"]) {
            Self::Fetch
        } else if says(&["clone"]) {
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
    beside: Vec<String>,
}

impl Remotes {
    /// Creates the remotes from the current branch's name and from settings, in the order in which git reads them.
    pub(super) fn new(layers: impl IntoIterator<Item = GitSettings>, branch: Option<String>) -> Self {
        let settings = GitSettings(layers.into_iter().flat_map(|layer| layer.0).collect());
        Self { settings, branch, beside: Vec::new() }
    }

    /// Records which default remotes may be names of repositories in the folder, according to `is_beside`.
    pub(super) fn with_beside(mut self, is_beside: impl Fn(&str) -> bool) -> Self {
        let beside = self.defaults(true).into_iter().filter(|name| is_beside(name));
        self.beside = beside.collect();
        self
    }

    /// Returns every address that the tool's argument can mean. `raw` is `None` if the call names no remote.
    pub(super) fn addresses(&self, raw: Option<&str>, way: RemoteUse) -> Result<Vec<String>, UnknownAddress> {
        match way {
            RemoteUse::Fetch | RemoteUse::Clone => self.one_way(raw, false),
            RemoteUse::Push => self.one_way(raw, true),
            RemoteUse::Either => Ok([self.one_way(raw, false)?, self.one_way(raw, true)?].concat()),
        }
    }

    fn one_way(&self, raw: Option<&str>, pushes: bool) -> Result<Vec<String>, UnknownAddress> {
        let mut all = Vec::new();
        match raw {
            // Git parses a leading dash as an option.
            Some(raw) if raw.starts_with('-') => all.push(raw.to_owned()),
            Some(raw) => self.named(raw, pushes, &mut Vec::new(), &mut all)?,
            None => self.usual(pushes, &mut all)?,
        }
        // Any operation can make git fetch missing objects from these remotes.
        for name in self.names()?.into_iter().filter(|name| self.has_missing(name)) {
            all.extend(self.remote(name, false)?);
        }
        Ok(all)
    }

    /// Returns `true` if git may later fetch objects from this remote that a partial clone omitted.
    fn has_missing(&self, name: &str) -> bool {
        let is_named = self.settings.all("extensions.partialclone").any(|partial| partial == name);
        is_named || self.of_remote(name).any(|(key, _)| matches!(key, "promisor" | "partialclonefilter"))
    }

    /// Adds every address that a name can mean: the addresses of a remote or of a group's remotes, or the name itself
    /// as an address.
    fn named(
        &self,
        name: &str,
        pushes: bool,
        met: &mut Vec<String>,
        all: &mut Vec<String>,
    ) -> Result<(), UnknownAddress> {
        if met.iter().any(|known| known == name) {
            return Ok(());
        }
        if met.len() >= MAX_COUNT {
            return Err(UnknownAddress::TooBig);
        }
        met.push(name.to_owned());
        let group = format!("remotes.{name}");
        let members: Vec<&str> = self.settings.all(&group).flat_map(words).collect();
        for member in &members {
            self.named(member, pushes, met, all)?;
        }
        let own = self.remote(name, pushes)?;
        // Only fetches accept a group. Other operations treat the group's name as a remote.
        if pushes || members.len() < 2 || !self.is_unknown(name, &own) {
            all.extend(own);
        }
        Ok(())
    }

    /// Adds the addresses used if the call names no remote. Skips plain names that are not configured.
    fn usual(&self, pushes: bool, all: &mut Vec<String>) -> Result<(), UnknownAddress> {
        if !pushes && self.settings.is_on("fetch.all")? {
            let mut met = Vec::new();
            for name in self.names()? {
                self.named(name, pushes, &mut met, all)?;
            }
        }
        for name in self.defaults(pushes) {
            let found = self.remote(&name, pushes)?;
            if self.beside.contains(&name) || !self.is_unknown(&name, &found) {
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
        let of_branch = |key: &str| Some(format!("branch.{}.{key}", self.branch.as_deref()?));
        let for_push = [of_branch("pushremote"), Some("remote.pushdefault".to_owned())];
        let keys = for_push.into_iter().filter(|_| pushes).chain([of_branch("remote")]).flatten();
        keys.filter_map(|key| self.settings.last(&key).map(str::to_owned)).collect()
    }

    /// Returns the addresses of the remote with this name, even if it is not configured.
    fn remote(&self, name: &str, pushes: bool) -> Result<Vec<String>, UnknownAddress> {
        let given = |key: &str| {
            let of_key = self.of_remote(name).filter(|(known, _)| *known == key);
            of_key.map(|(_, value)| value.unwrap_or_default()).collect::<Vec<_>>()
        };
        if !given("vcs").is_empty() {
            return Err(UnknownAddress::Helper);
        }
        let (mut urls, push_urls) = (given("url"), given("pushurl"));
        if [&urls, &push_urls].into_iter().flatten().any(|url| url.is_empty()) {
            return Err(UnknownAddress::Empty);
        }
        let is_address_itself = urls.is_empty();
        if is_address_itself {
            urls.push(name);
        }
        let plain = |url: &&str| self.instead(url, ".insteadof").unwrap_or_else(|| (*url).to_owned());
        let mut all: Vec<String> = Vec::new();
        if pushes {
            all.extend(push_urls.iter().map(plain));
            if all.is_empty() || is_address_itself {
                all.extend(urls.iter().filter_map(|url| self.instead(url, ".pushinsteadof")));
            }
        }
        if all.is_empty() {
            all.extend(urls.iter().map(plain));
        }
        // An empty address makes git clear the list.
        if all.iter().any(String::is_empty) { Err(UnknownAddress::Empty) } else { Ok(all) }
    }

    /// Returns `true` if a name is neither a configured remote nor an address.
    fn is_unknown(&self, name: &str, found: &[String]) -> bool {
        let is_plain = !name.is_empty() && !name.contains(['/', ':', '.', '\\']);
        is_plain && !self.is_configured(name) && found == [name]
    }

    fn is_configured(&self, name: &str) -> bool {
        self.of_remote(name).next().is_some()
    }

    /// Iterates over a remote's settings. Git ignores remotes whose name starts with a slash.
    fn of_remote<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
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
            if names.len() > MAX_COUNT {
                return Err(UnknownAddress::TooBig);
            }
        }
        Ok(names)
    }

    /// Replaces the longest matching prefix of an address, or returns `None` if no prefix matches. If several
    /// replacements have a matching prefix of that length, git uses the replacement that it read first, even if it
    /// first read that replacement with a different prefix.
    fn instead(&self, url: &str, name: &str) -> Option<String> {
        let fits = |(_, beginning): &(&str, &str)| url.starts_with(beginning);
        let fitting: Vec<_> = self.settings.between("url.", name).filter(fits).collect();
        let longest = fitting.iter().map(|(_, beginning)| beginning.len()).max()?;
        let is_best = |(base, _): &(&str, &str)| {
            fitting.iter().any(|(other, beginning)| other == base && beginning.len() == longest)
        };
        let (base, _) = self.settings.between("url.", name).find(is_best)?;
        Some(format!("{base}{}", url.get(longest..)?))
    }
}

/// Splits a list at git's separator characters.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([' ', '\t', '\n']).filter(|word| !word.is_empty())
}
