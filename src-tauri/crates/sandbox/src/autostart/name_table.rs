//! The meaning of a path, by the names of files that run later.
//!
//! - Upper and lower case are the same on some file systems, so they are here.

mod table;

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::{AutostartMode, AutostartRules, RunsLater};
use table::TABLE;

/// Names that are treated alike. A name has up to three components.
#[derive(Debug)]
pub(super) struct NameGroup {
    pub(super) place: NameScope,
    /// Not writable where it is there already.
    pub(super) closed: bool,
    /// The verdict by the name alone.
    pub(super) verdict: RunVerdict,
    /// The question that the content is asked.
    pub(super) check: ContentCheck,
    /// Quarantined in the strict mode.
    pub(super) strict: bool,
    pub(super) when: &'static str,
    files: &'static [&'static str],
    /// With all that is in them.
    folders: &'static [&'static str],
}

/// The folders in which a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameScope {
    Any,
    /// The person's home itself.
    Home,
    /// A folder in which git keeps a repository.
    Git,
}

/// The verdict on a file that is new or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunVerdict {
    /// Nothing runs it.
    Harmless,
    /// It stays, and the person is told.
    Listed,
    /// A program of the person's runs it without being asked.
    Unasked,
}

/// The question that a file's content is asked, where its name does not tell enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentCheck {
    /// None: the name tells enough.
    Always,
    /// Samples of hooks do not run.
    Hook,
    GitConfig,
    /// It leads git to another folder.
    Redirect,
    /// Runs when direnv has allowed it already.
    Direnv,
    /// Settings of an agent in JSON: some start programs.
    Agent,
    /// The same in TOML.
    AgentToml,
    /// Only its scripts run.
    Scripts,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownName {
    pub(super) name: &'static str,
    pub(super) folder: bool,
    pub(super) group: &'static NameGroup,
}

/// Folders in which package managers install.
const DEPENDENCIES: &[&str] = &["/node_modules/", "/site-packages/"];

/// The most components that a name has.
const DEEPEST: usize = 3;

/// The table by place and name, and the folders that names of several components begin with.
struct Lookup {
    rows: [HashMap<&'static str, KnownName>; 3],
}

static LOOKUP: LazyLock<Lookup> = LazyLock::new(|| {
    let mut rows = [HashMap::new(), HashMap::new(), HashMap::new()];
    let [any, home, git] = &mut rows;
    for group in TABLE {
        let rows = match group.place {
            NameScope::Any => &mut *any,
            NameScope::Home => &mut *home,
            NameScope::Git => &mut *git,
        };
        for (names, folder) in [(group.files, false), (group.folders, true)] {
            rows.extend(names.iter().map(|name| (*name, KnownName { name, folder, group })));
        }
    }
    Lookup { rows }
});

/// The names that count in one sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    home: Option<String>,
    /// Names of the home count in every folder.
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

    fn at_home(home: Option<&str>) -> Self {
        Self { home: home.map(str::to_owned), ..Self::default() }
    }

    /// The person's home.
    pub(super) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// The line for a path itself.
    pub(super) fn exactly(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<KnownName> {
        if self.denied.iter().any(|denied| denied == path) {
            return Some(KnownName { name: "", folder: true, group: &table::DENIED });
        }
        let lookup: &[HashMap<&str, KnownName>; 3] = &LOOKUP.rows;
        let [any, home, git] = lookup;
        let mut found = None;
        let mut end = path.len();
        for _ in 0..DEEPEST {
            let Some(start) = path.get(..end).and_then(|above| above.rfind('/')) else { break };
            let suffix = lower(path.get(start + 1..).unwrap_or_default());
            let above = path.get(..start).unwrap_or_default();
            let rows = any.get(suffix.as_ref()).or_else(|| {
                let at_home = self.strict || self.home.as_deref().is_some_and(|home| home == above);
                let here = at_home.then(|| home.get(suffix.as_ref())).flatten();
                here.or_else(|| git.get(suffix.as_ref()).filter(|_| is_git(above)))
            });
            // The longest says most.
            found = rows.copied().or(found);
            end = start;
        }
        found.filter(|row| !self.allows(row) && !self.is_a_dependencys(row, path))
    }

    /// True if a file is one of what a package manager has installed. Nobody opens or builds these by themselves, and
    /// they are to be listed no more than the code beside them.
    fn is_a_dependencys(&self, row: &KnownName, path: &str) -> bool {
        let is_inside = |folder: &str| path.contains(folder);
        row.group.verdict == RunVerdict::Listed
            && !self.strict
            && DEPENDENCIES.iter().any(|folder| is_inside(folder))
    }

    /// The line for a path, or for a folder above it that counts with all that is in it, and where that ends.
    pub(super) fn find(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<(KnownName, usize)> {
        let ends = std::iter::once(path.len()).chain(path.rmatch_indices('/').map(|(at, _)| at));
        ends.filter_map(|end| Some((self.exactly(path.get(..end)?, &is_git)?, end)))
            .find(|(row, end)| row.folder || *end == path.len())
    }

    /// True if files of this row are not to be written: in the strict mode also all that it would quarantine.
    pub(super) fn closes(&self, row: &KnownName) -> bool {
        row.group.closed || self.strict && row.group.strict
    }

    fn allows(&self, row: &KnownName) -> bool {
        let inside = |name: &str, allowed: &str| {
            name.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.allow.iter().any(|allowed| {
            inside(row.name, allowed)
                // In a repository's folder the names stand without that folder's.
                || row.group.place == NameScope::Git
                    && allowed.strip_prefix(".git").is_some_and(|rest| {
                        rest.is_empty() || rest.strip_prefix('/').is_some_and(|part| inside(row.name, part))
                    })
        })
    }
}

/// The line for a folder in which hooks are by a repository's configuration.
pub(super) static HOOK_FOLDER: KnownName = KnownName { name: "hooks", folder: true, group: &table::HOOKS };

/// The line for a further configuration that a repository's names.
pub(super) static FURTHER_CONFIG: KnownName =
    KnownName { name: "config", folder: false, group: &table::CONFIG };

/// True if a folder is git's by its name, or by that of one in which git keeps further repositories.
pub(super) fn is_git_by_name(path: &str) -> bool {
    let mut above = path.rsplit('/');
    above.next().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
        || above.any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The names that the strict mode knows, relative to the folder in which they count: those of any folder, and those of the home
/// as well where `at_home`.
pub fn strict_names(at_home: bool) -> Vec<String> {
    let groups = TABLE.iter().filter(|group| group.strict && (at_home || group.place != NameScope::Home));
    let names = groups.flat_map(|group| {
        let above = if group.place == NameScope::Git { ".git/" } else { "" };
        group.files.iter().chain(group.folders).map(move |name| format!("{above}{name}"))
    });
    names.collect()
}

/// When a file's content is run; nothing for a file that no program of the person's runs by its name.
pub fn runs_later(path: &str, home: Option<&str>) -> Option<RunsLater> {
    let (row, _) = NameTable::at_home(home).find(path, is_git_by_name)?;
    Some(RunsLater { when: row.group.when, unasked: row.group.verdict == RunVerdict::Unasked })
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.to_ascii_lowercase().into();
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_what_its_last_components_say() {
        let when = |path: &str| runs_later(path, Some("/home/me")).map(|found| (found.when, found.unasked));
        for (path, unasked) in [
            ("/p/.git/hooks/pre-commit", true),
            ("/p/.GIT/Config", true),
            ("/p/.git/modules/m/hooks/x", true),
            ("/p/.git", true),
            ("/p/.mcp.json", true),
            ("/p/node_modules/a/.mcp.json", true),
            ("/p/.cursor/mcp.json", true),
            ("/p/.cursor/rules/a.mdc", false),
            ("/p/.vscode/tasks.json", false),
            ("/p/.vscode/a/b", false),
            ("/p/.github/workflows/a.yml", false),
            ("/p/Makefile", false),
            ("/home/me/.bashrc", true),
            ("/home/me/.config/systemd/user/x.service", true),
        ] {
            assert_eq!(when(path).map(|(_, unasked)| unasked), Some(unasked), "{path}");
        }
        for path in [
            "/p",
            "/p/.git/objects/ab",
            "/p/.bashrc",
            "/p/.config/fish/a.fish",
            "/home/me/x/.zshrc",
            "/p/hooks/x",
            "/p/.envrc/x",
            "/p/config",
            "/p/node_modules/a/package.json",
            "/p/node_modules/a/.vscode/settings.json",
        ] {
            assert_eq!(when(path), None, "{path}");
        }
        assert_eq!(when("/p/.husky/pre-commit"), Some(("when you commit in this repository", false)));
        assert_eq!(runs_later("/home/me/.bashrc", None), None);
    }

    #[test]
    fn what_is_allowed_does_not_count() {
        let names = |allow: &[&str]| {
            let allow = allow.iter().map(|name| (*name).to_owned()).collect();
            NameTable::new(&AutostartRules { allow, ..AutostartRules::default() })
        };
        let some = names(&[".git", ".VSCode"]);
        for path in ["/p/.git/hooks/a", "/p/.git", "/p/.vscode/tasks.json"] {
            assert!(some.find(path, is_git_by_name).is_none(), "{path}");
        }
        assert!(some.find("/p/.gitattributes", is_git_by_name).is_some());
        let one = names(&[".git/config"]);
        assert!(one.find("/p/.git/config", is_git_by_name).is_none());
        assert!(one.find("/p/.git/hooks/a", is_git_by_name).is_some());
    }

    #[test]
    fn a_denied_path_counts_with_all_that_is_in_it() {
        let names =
            NameTable::new(&AutostartRules { denied: vec!["/p/out".into()], ..AutostartRules::default() });
        for path in ["/p/out", "/p/out/a/b"] {
            assert!(
                names
                    .find(path, is_git_by_name)
                    .is_some_and(|(row, _)| row.group.verdict == RunVerdict::Unasked)
            );
        }
        for path in ["/p", "/p/outer", "/p/in/out"] {
            assert!(names.find(path, is_git_by_name).is_none(), "{path}");
        }
    }

    #[test]
    fn names_of_the_home_count_everywhere_in_the_strict_mode() {
        let is_found = |mode| {
            let names = NameTable::new(&AutostartRules {
                mode,
                home: Some("/home/me".into()),
                ..AutostartRules::default()
            });
            ["/home/me/.bashrc", "/p/.bashrc"].map(|path| names.find(path, is_git_by_name).is_some())
        };
        assert_eq!(
            (is_found(AutostartMode::Listed), is_found(AutostartMode::Strict)),
            ([true, false], [true, true])
        );
    }

    #[test]
    fn every_name_stands_once_in_lower_case_with_words_to_say() {
        for (place, rows) in [NameScope::Any, NameScope::Home, NameScope::Git].iter().zip(&LOOKUP.rows) {
            let named = TABLE.iter().filter(|group| group.place == *place);
            assert_eq!(
                rows.len(),
                named.map(|group| group.files.len() + group.folders.len()).sum::<usize>(),
                "{place:?}"
            );
        }
        for group in TABLE {
            assert!(group.when.starts_with("when you "), "{}", group.when);
            for name in group.files.iter().chain(group.folders) {
                assert_eq!(name.to_ascii_lowercase(), *name);
                assert!(name.split('/').count() <= DEEPEST, "{name}");
            }
        }
    }
}
