//! From settings to addresses, as git does it (`remote.c`). Pure.

use super::Unknown;
use super::settings::Settings;

/// Which way a tool uses a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It receives.
    Fetch,
    /// It sends.
    Push,
    /// Its name does not say.
    Either,
}

impl Way {
    pub(super) fn of(tool: &str) -> Self {
        let tool = tool.to_ascii_lowercase();
        if tool.contains("push") {
            Self::Push
        } else if ["fetch", "pull", "clone", "ls_remote", "ls-remote"].iter().any(|word| tool.contains(word))
        {
            Self::Fetch
        } else {
            Self::Either
        }
    }
}

/// What git knows of remotes, for one repository or none.
#[derive(Debug, Clone)]
pub(super) struct Remotes {
    settings: Settings,
    branch: Option<String>,
}

impl Remotes {
    /// From settings in the order in which git takes them, and the branch that is checked out.
    pub(super) fn new(layers: impl IntoIterator<Item = Settings>, branch: Option<String>) -> Self {
        let settings = Settings(layers.into_iter().flat_map(|layer| layer.0).collect());
        Self { settings, branch }
    }

    /// Every address that a value, or the lack of one, stands for.
    pub(super) fn addresses(&self, raw: Option<&str>, way: Way) -> Result<Vec<String>, Unknown> {
        match way {
            Way::Fetch => self.one_way(raw, false),
            Way::Push => self.one_way(raw, true),
            Way::Either => Ok([self.one_way(raw, false)?, self.one_way(raw, true)?].concat()),
        }
    }

    fn one_way(&self, raw: Option<&str>, pushes: bool) -> Result<Vec<String>, Unknown> {
        match raw {
            Some(raw) => Ok(self.named(raw, pushes)?.unwrap_or_else(|| self.rewritten(&[raw], &[], pushes))),
            None => self.usual(pushes),
        }
    }

    /// What a configured remote, or a group of them, stands for.
    fn named(&self, name: &str, pushes: bool) -> Result<Option<Vec<String>>, Unknown> {
        if name.starts_with('-') {
            return Ok(None);
        }
        let mut all = Vec::new();
        let group = format!("remotes.{name}");
        // A group goes before a remote of its name.
        for member in self.settings.all(&group).flat_map(str::split_whitespace) {
            all.extend(
                self.remote(member, pushes)?.unwrap_or_else(|| self.rewritten(&[member], &[], pushes)),
            );
        }
        let own = self.remote(name, pushes)?;
        let known = own.is_some() || !all.is_empty();
        all.extend(own.unwrap_or_default());
        Ok(known.then_some(all))
    }

    fn remote(&self, name: &str, pushes: bool) -> Result<Option<Vec<String>>, Unknown> {
        let section = format!("remote.{name}.");
        let is_own = |key: &str| key.strip_prefix(&section).is_some_and(|rest| !rest.contains('.'));
        if !self.settings.0.iter().any(|(key, _)| is_own(key)) {
            return Ok(None);
        }
        if self.settings.last(&format!("{section}vcs")).is_some() {
            return Err(Unknown::Helper);
        }
        let given = |name: &str| {
            let key = format!("{section}{name}");
            self.settings.all(&key).filter(|url| !url.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let (mut urls, push_urls) = (given("url"), given("pushurl"));
        if urls.is_empty() {
            // Git takes the name for an address then.
            urls.push(name.to_owned());
        }
        Ok(Some(self.rewritten(&urls, &push_urls, pushes)))
    }

    /// What git takes when no remote is named. A configured name that no remote has is passed over, but an address
    /// written in its place counts.
    fn usual(&self, pushes: bool) -> Result<Vec<String>, Unknown> {
        if !pushes && self.settings.is_on("fetch.all") {
            let mut all = Vec::new();
            for name in self.names() {
                all.extend(self.remote(name, pushes)?.unwrap_or_default());
            }
            return Ok(all);
        }
        let of_branch = |key: &str| {
            let key = format!("branch.{}.{key}", self.branch.as_deref()?);
            self.settings.last(&key).map(str::to_owned)
        };
        let push_default = || self.settings.last("remote.pushdefault").map(str::to_owned);
        let for_push = pushes.then(|| [of_branch("pushremote"), push_default()]);
        let names = self.names();
        let only = match names.as_slice() {
            [only] => Some((*only).to_owned()),
            _ => None,
        };
        let fallback = [of_branch("remote"), only, Some("origin".to_owned())];
        for name in for_push.into_iter().flatten().chain(fallback).flatten() {
            if let Some(found) = self.named(&name, pushes)? {
                return Ok(found);
            }
            if name.contains(['/', ':', '.', '\\']) {
                return Ok(self.rewritten(&[name], &[], pushes));
            }
        }
        Ok(Vec::new())
    }

    /// The names of all remotes.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (key, _) in &self.settings.0 {
            let name =
                key.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.')).map(|(name, _)| name);
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    }

    fn rewritten(&self, urls: &[impl AsRef<str>], push_urls: &[String], pushes: bool) -> Vec<String> {
        let plain = |url: &str| self.instead(url, ".insteadof").unwrap_or_else(|| url.to_owned());
        if pushes && !push_urls.is_empty() {
            return push_urls.iter().map(|url| plain(url)).collect();
        }
        let for_push = urls.iter().filter_map(|url| self.instead(url.as_ref(), ".pushinsteadof"));
        let for_push: Vec<String> = if pushes { for_push.collect() } else { Vec::new() };
        if for_push.is_empty() { urls.iter().map(|url| plain(url.as_ref())).collect() } else { for_push }
    }

    /// The address by the longest beginning that is to be replaced, where one is.
    fn instead(&self, url: &str, name: &str) -> Option<String> {
        let rules = self.settings.between("url.", name);
        let fitting = rules.filter(|(_, beginning)| url.starts_with(beginning));
        // Of two as long git takes the first.
        let (base, beginning) =
            fitting.reduce(|best, next| if next.1.len() > best.1.len() { next } else { best })?;
        Some(format!("{base}{}", url.get(beginning.len()..)?))
    }
}
