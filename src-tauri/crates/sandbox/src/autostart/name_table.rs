//! Classifies paths by the known names of autostart files.
//!
//! - Names are matched case-insensitively, because some file systems ignore case.
//! - The names are listed in `name_table/names.json`.

mod leading;
mod pattern;
mod table;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

pub use leading::leads_to_programs;
use pattern::{NamePattern, is_pattern};
use serde::Deserialize;

use super::{AutostartCondition, AutostartMode, AutostartRules};

/// Group of names that are handled in the same way.
#[derive(Debug)]
pub(super) struct NameGroup {
    pub(super) scope: NameScope,
    /// `true` if existing files of the group are read-only in the sandbox.
    pub(super) read_only: bool,
    /// Verdict on a new or changed file before its content is checked.
    pub(super) verdict: RunVerdict,
    /// Content check that can change the verdict.
    pub(super) check: ContentCheck,
    /// `true` if strict mode quarantines new files of the group.
    pub(super) strict: bool,
    /// `true` if package managers write such files. They are listed even inside installed packages, and a new folder
    /// of them is listed as one entry.
    pub(super) installed: bool,
    pub(super) when: &'static str,
}

/// Folders in which a name applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NameScope {
    Any,
    /// The user's home directory itself, not its subfolders.
    Home,
    /// A git folder.
    Git,
}

/// Verdict on a new or changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunVerdict {
    /// No program runs the file.
    Harmless,
    /// The file is reported and stays in place.
    Reported,
    /// One of the user's programs runs the file without asking.
    Automatic,
}

/// Content check for files whose name alone is inconclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ContentCheck {
    /// No check: the name decides.
    #[default]
    Always,
    /// Git hook. Samples are harmless, because git does not run them.
    Hook,
    GitConfig,
    /// File that redirects git to another folder.
    Redirect,
    /// `.envrc`, which runs if direnv has already allowed it.
    Direnv,
    /// JSON settings of an agent, in which some keys start programs.
    Agent,
    /// TOML settings of an agent, in which some keys start programs.
    AgentToml,
    /// `package.json`. Only its scripts are run.
    Scripts,
    /// Configuration of a version control system. Some sections are harmless.
    Sections,
}

/// Listed name with its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownName {
    pub(super) name: &'static str,
    pub(super) folder: bool,
    pub(super) group: &'static NameGroup,
}

/// Folders in which package managers install dependencies.
const DEPENDENCY_FOLDERS: &[&str] = &["/node_modules/", "/site-packages/"];

/// Index of the listed names by scope and name.
struct Lookup {
    names: [HashMap<&'static str, KnownName>; 3],
    /// Last components of all names, used to rule out most paths quickly.
    last: HashSet<&'static str>,
    /// Maximum number of components in a name.
    max_depth: usize,
    /// Patterns with their positions in the list, by the last byte that a matching path must have; `None` for any.
    patterns: HashMap<Option<u8>, Vec<ListedPattern>>,
}

/// Pattern of a listed name.
struct ListedPattern {
    /// Position in the list.
    position: usize,
    pattern: NamePattern,
    known: KnownName,
}

static LOOKUP: LazyLock<Lookup> = LazyLock::new(|| {
    let (names, last) = ([HashMap::new(), HashMap::new(), HashMap::new()], HashSet::new());
    let mut lookup = Lookup { names, last, max_depth: 0, patterns: HashMap::new() };
    for (position, listed) in table::names().enumerate() {
        if is_pattern(listed.pattern) {
            let pattern = NamePattern::new(listed.pattern);
            let same_end = lookup.patterns.entry(pattern.last_byte()).or_default();
            same_end.push(ListedPattern { position, pattern, known: listed.known });
            continue;
        }
        lookup.last.extend(listed.pattern.rsplit('/').next());
        lookup.max_depth = lookup.max_depth.max(listed.pattern.split('/').count());
        let [any, home, git] = &mut lookup.names;
        let names = match listed.known.group.scope {
            NameScope::Any => any,
            NameScope::Home => home,
            NameScope::Git => git,
        };
        names.insert(listed.pattern, listed.known);
    }
    lookup
});

/// Autostart names that apply in one sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    home: Option<String>,
    /// `true` in strict mode, in which the names for the home directory apply in every folder.
    strict: bool,
    allow: Vec<String>,
    denied: Vec<String>,
}

impl NameTable {
    pub(super) fn new(rules: &AutostartRules) -> Self {
        let allow = rules.allow.iter().map(|name| name.to_ascii_lowercase()).collect();
        let strict = rules.mode == AutostartMode::Strict;
        Self { home: rules.home.clone(), strict, allow, denied: rules.denied.clone() }
    }

    pub(super) fn for_home(home: Option<&str>) -> Self {
        Self { home: home.map(str::to_owned), ..Self::default() }
    }

    /// Returns the user's home directory, if it is known.
    pub(super) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Returns the listed name that matches the whole path, not just a folder above it.
    pub(super) fn find_exact(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<KnownName> {
        if self.denied.iter().any(|denied| denied == path) {
            return Some(KnownName { name: "", folder: true, group: &table::DENIED });
        }
        let lower = lower(path);
        let applies = |scope: NameScope, above: usize| {
            let above = path.get(..above).unwrap_or_default();
            match scope {
                NameScope::Any => true,
                NameScope::Home => self.strict || self.home.as_deref().is_some_and(|home| home == above),
                NameScope::Git => is_git(above),
            }
        };
        // The longest match is the most specific.
        let (depth, name) = longest_match(&lower, applies).unzip();
        let ends = [lower.bytes().next_back(), None];
        let patterns = ends.iter().filter_map(|end| LOOKUP.patterns.get(end)).flatten();
        let matching = patterns.filter(|ListedPattern { pattern, known, .. }| {
            depth.is_none_or(|depth| depth < pattern.depth())
                && pattern.matches_end(&lower, &|above| applies(known.group.scope, above))
        });
        let longest = matching.max_by_key(|listed| (listed.pattern.depth(), listed.position));
        let found = longest.map(|listed| listed.known).or(name);
        found.filter(|known| !self.is_allowed(known) && !self.is_in_dependency(known, path))
    }

    /// Returns `true` if a package manager installed the file. Such files are not listed: users do not open or build
    /// them directly, and the unlisted code next to them is just as dangerous.
    fn is_in_dependency(&self, known: &KnownName, path: &str) -> bool {
        let is_inside = |folder: &str| path.contains(folder);
        known.group.verdict == RunVerdict::Reported
            && !known.group.installed
            && !self.strict
            && DEPENDENCY_FOLDERS.iter().any(|folder| is_inside(folder))
    }

    /// Returns the listed name that matches the path or a folder above it, and the length of the matched part.
    pub(super) fn find(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<(KnownName, usize)> {
        let ends = std::iter::once(path.len()).chain(path.rmatch_indices('/').map(|(at, _)| at));
        ends.filter_map(|end| Some((self.find_exact(path.get(..end)?, &is_git)?, end)))
            .find(|(known, end)| known.folder || *end == path.len())
    }

    /// Returns `true` if files with this name are read-only. In strict mode, every file that would be quarantined is
    /// read-only as well.
    pub(super) fn makes_read_only(&self, known: &KnownName) -> bool {
        known.group.read_only || self.strict && known.group.strict
    }

    fn is_allowed(&self, known: &KnownName) -> bool {
        let inside = |name: &str, allowed: &str| {
            name.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.allow.iter().any(|allowed| {
            inside(known.name, allowed)
                // Names listed for git folders do not include `.git` itself, but allowed names do.
                || known.group.scope == NameScope::Git
                    && allowed.strip_prefix(".git").is_some_and(|rest| {
                        rest.is_empty() || rest.strip_prefix('/').is_some_and(|part| inside(known.name, part))
                    })
        })
    }
}

/// Folder of git hooks.
pub(super) static HOOK_FOLDER: KnownName = KnownName { name: "hooks", folder: true, group: &table::HOOKS };

/// Configuration that another git configuration includes.
pub(super) static INCLUDED_CONFIG: KnownName =
    KnownName { name: "config", folder: false, group: &table::CONFIG };

/// Program that git runs because a configuration or symlink refers to it.
pub(super) static GIT_PROGRAM: KnownName =
    KnownName { name: "program", folder: false, group: &table::PROGRAM };

/// Template folder, from which git copies hooks into new repositories.
pub(super) static GIT_TEMPLATE: KnownName =
    KnownName { name: "templates", folder: true, group: &table::PROGRAM };

/// Returns the names for the home directory, except those with wildcards.
pub(super) fn home_names() -> impl Iterator<Item = KnownName> {
    let names = table::names().map(|listed| listed.known);
    names.filter(|known| known.group.scope == NameScope::Home && !is_pattern(known.name))
}

/// Returns the longest listed name at the end of a path, and its number of components.
fn longest_match(path: &str, applies: impl Fn(NameScope, usize) -> bool) -> Option<(usize, KnownName)> {
    let lookup: &Lookup = &LOOKUP;
    if !lookup.last.contains(path.rsplit('/').next().unwrap_or_default()) {
        return None;
    }
    let ends = path.rmatch_indices('/').take(lookup.max_depth).enumerate();
    let found = ends.filter_map(|(above, (start, _))| {
        let suffix = path.get(start + 1..)?;
        let mut known = lookup.names.iter().filter_map(|names| names.get(suffix));
        Some((above + 1, *known.find(|known| applies(known.group.scope, start))?))
    });
    found.last()
}

/// Returns `true` if the folder is named `.git` or is inside such a folder, where git keeps submodule repositories.
pub(super) fn is_git_by_name(path: &str) -> bool {
    let mut above = path.rsplit('/');
    above.next().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
        || above.any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Returns the names of the strict list that apply in any folder and, if `at_home`, in the home directory. Names with
/// wildcards are excluded.
pub fn strict_names(at_home: bool) -> Vec<String> {
    let names = table::names().map(|listed| listed.known).filter(|known| !is_pattern(known.name));
    let strict =
        names.filter(|known| known.group.strict && (at_home || known.group.scope != NameScope::Home));
    let relative = strict.map(|known| {
        let above = if known.group.scope == NameScope::Git { ".git/" } else { "" };
        format!("{above}{}", known.name)
    });
    relative.collect()
}

/// Returns the condition under which a program runs the file at this path, judged by its name, or `None` if no program
/// runs it.
pub fn autostart_condition(path: &str, home: Option<&str>) -> Option<AutostartCondition> {
    let (known, _) = NameTable::for_home(home).find(path, is_git_by_name)?;
    Some(AutostartCondition {
        when: known.group.when,
        automatic: known.group.verdict == RunVerdict::Automatic,
    })
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.to_ascii_lowercase().into();
    }
    name.into()
}

#[cfg(test)]
mod tests;
