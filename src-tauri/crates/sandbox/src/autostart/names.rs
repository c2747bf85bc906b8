//! The names of files that run later, as data, and what a path means by them.
//!
//! - Upper and lower case are the same on some file systems, so they are here.

use std::{collections::HashMap, sync::LazyLock};

use super::RunsLater;

/// Names that are treated alike. A name has up to three components.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) place: Place,
    /// Not writable where it is there already.
    pub(super) closed: bool,
    pub(super) new: Class,
    /// The question that the content is asked.
    pub(super) judge: Judge,
    /// Quarantined in the strict mode.
    pub(super) strict: bool,
    pub(super) when: &'static str,
    files: &'static [&'static str],
    /// With all that is in them.
    folders: &'static [&'static str],
}

/// The folders in which a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Any,
    /// The person's home itself.
    Home,
    /// A folder in which git keeps a repository.
    Git,
}

/// The treatment of a name that appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A program of the person's runs it without being asked.
    Unasked,
    /// It stays, and the person is told.
    Listed,
}

/// How the content tells more than the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    /// It does not.
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

const GROUP: Group = Group {
    place: Place::Any,
    closed: false,
    new: Class::Listed,
    judge: Judge::Always,
    strict: false,
    when: "",
    files: &[],
    folders: &[],
};
/// In the home, and run unasked.
const HOME: Group = Group { place: Place::Home, closed: true, new: Class::Unasked, strict: true, ..GROUP };
/// In a repository, and run unasked.
const GIT: Group = Group { place: Place::Git, when: "when you use git in this repository", ..HOME };
/// Settings of agents that can start programs.
const AGENT: Group = Group { place: Place::Any, judge: Judge::Agent, ..HOME };
/// Closed where they are, listed where they are new.
const EDITOR: Group = Group { closed: true, strict: true, ..GROUP };

/// All of them.
const TABLE: &[Group] = &[
    Group {
        when: "when you open a shell",
        files: &[
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".cshrc",
            ".direnvrc",
            ".inputrc",
            ".kshrc",
            ".login",
            ".logout",
            ".mkshrc",
            ".profile",
            ".tcshrc",
            ".zlogin",
            ".zlogout",
            ".zprofile",
            ".zshenv",
            ".zshrc",
        ],
        // Fedora's .bashrc reads all of .bashrc.d; what is in direnv's folder allows files of other folders.
        folders: &[".bashrc.d", ".config/direnv", ".config/fish", ".config/nushell", ".local/share/direnv"],
        ..HOME
    },
    Group {
        when: "when you log in",
        files: &[".pam_environment", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc"],
        folders: &[
            ".config/autostart",
            ".config/autostart-scripts",
            ".config/environment.d",
            ".config/hypr",
            ".config/i3",
            ".config/plasma-workspace",
            ".config/sway",
            ".config/systemd",
            ".local/share/dbus-1",
            ".local/share/systemd",
        ],
        ..HOME
    },
    Group { when: "when you use git", files: &[".gitconfig"], folders: &[".config/git"], ..HOME },
    Group {
        when: "when you start an editor or a terminal",
        files: &[".emacs", ".gdbinit", ".gvimrc", ".tmux.conf", ".vimrc"],
        folders: &[
            ".config/emacs",
            ".config/gdb",
            ".config/nvim",
            ".config/tmux",
            ".config/zed",
            ".emacs.d",
            ".vim",
        ],
        ..HOME
    },
    Group {
        place: Place::Home,
        when: "when you run a program of its name",
        folders: &[".local/bin"],
        ..GROUP
    },
    // Git. A `.git` that is a file, and `commondir`, say where the repository is.
    Group { judge: Judge::Hook, folders: &["hooks"], ..GIT },
    Group { judge: Judge::GitConfig, files: &["config", "config.worktree"], ..GIT },
    Group { judge: Judge::Redirect, files: &["commondir"], ..GIT },
    Group { place: Place::Any, judge: Judge::Redirect, files: &[".git"], ..GIT },
    Group { new: Class::Listed, files: &["info/attributes"], ..GIT },
    Group {
        strict: true,
        when: "when you use git in this repository",
        files: &[".gitattributes", ".gitmodules"],
        ..GROUP
    },
    // Agents. See `content` for the settings that count.
    Group {
        when: "when you start Claude Code in this folder",
        files: &[".mcp.json", ".claude/settings.json", ".claude/settings.local.json"],
        ..AGENT
    },
    Group {
        when: "when you start Claude Code in this folder",
        folders: &[".claude/agents", ".claude/commands", ".claude/hooks", ".claude/skills"],
        ..EDITOR
    },
    Group {
        when: "when you open this folder in Cursor",
        files: &[".cursor/mcp.json", ".cursor/hooks.json"],
        ..AGENT
    },
    Group { when: "when you open this folder in Cursor", folders: &[".cursor"], ..EDITOR },
    Group { when: "when you open this folder in VS Code", files: &[".vscode/mcp.json"], ..AGENT },
    Group {
        when: "when you start Codex in this folder",
        judge: Judge::AgentToml,
        files: &[".codex/config.toml"],
        ..AGENT
    },
    Group { when: "when you start Codex in this folder", files: &[".codex/hooks.json"], ..AGENT },
    Group { when: "when you start Gemini in this folder", files: &[".gemini/settings.json"], ..AGENT },
    Group {
        judge: Judge::Always,
        when: "when you start Gemini in this folder",
        folders: &[".gemini/extensions"],
        ..AGENT
    },
    Group { when: "when you start Gemini in this folder", folders: &[".gemini/commands"], ..EDITOR },
    Group {
        when: "when you start an agent in this folder",
        files: &[".amazonq/mcp.json", ".roo/mcp.json", "opencode.json"],
        ..AGENT
    },
    // Editors: with a question first, or when the person has turned it on. A task of VS Code's with `runOn: folderOpen` asks.
    Group {
        when: "when you open this folder in VS Code",
        files: &[".vscode/launch.json", ".vscode/settings.json", ".vscode/tasks.json"],
        ..EDITOR
    },
    Group { closed: false, when: "when you open this folder in VS Code", folders: &[".vscode"], ..EDITOR },
    Group { when: "when you open this folder in a JetBrains editor", folders: &[".idea"], ..EDITOR },
    Group { when: "when you open this folder in Zed", folders: &[".zed"], ..EDITOR },
    Group {
        when: "when you open this folder in a container",
        files: &[".devcontainer.json"],
        folders: &[".devcontainer"],
        ..EDITOR
    },
    Group {
        when: "when you open a file of this folder in an editor",
        files: &[".dir-locals-2.el", ".dir-locals.el", ".exrc", ".nvim.lua", ".nvimrc"],
        ..EDITOR
    },
    Group { when: "when you debug in this folder", files: &[".gdbinit"], ..EDITOR },
    // Tools that run what a file in the folder says.
    Group {
        closed: true,
        new: Class::Unasked,
        judge: Judge::Direnv,
        strict: true,
        when: "when you enter this folder, with direnv",
        files: &[".envrc"],
        ..GROUP
    },
    Group { when: "when you commit in this repository", folders: &[".husky"], ..EDITOR },
    Group {
        strict: true,
        when: "when you commit in this repository",
        files: &[".pre-commit-config.yaml"],
        ..GROUP
    },
    Group { when: "when you commit in this repository", files: &["lefthook.yml"], ..GROUP },
    Group { strict: true, when: "when you enter this folder, with mise", files: &[".mise.toml"], ..GROUP },
    Group {
        when: "when you enter this folder, with mise or asdf",
        files: &["mise.toml", ".tool-versions"],
        ..GROUP
    },
    Group { strict: true, when: "when you run npm in this folder", files: &[".npmrc"], ..GROUP },
    Group { strict: true, when: "when you search in this folder", files: &[".ripgreprc"], ..GROUP },
    Group {
        when: "when you run yarn or pnpm in this folder",
        files: &[".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml"],
        ..GROUP
    },
    Group {
        judge: Judge::Scripts,
        when: "when you install this package or run its scripts",
        files: &["package.json"],
        ..GROUP
    },
    Group {
        when: "when you run make or just in this folder",
        files: &["makefile", "gnumakefile", "justfile", ".justfile"],
        ..GROUP
    },
    Group {
        when: "when you build this project",
        files: &["build.rs", ".cargo/config.toml", "build.gradle", "build.gradle.kts", "settings.gradle"],
        ..GROUP
    },
    Group { when: "when you install this package", files: &["setup.py"], ..GROUP },
    Group { when: "when you run the tests of this folder", files: &["conftest.py"], ..GROUP },
    Group { when: "when you start R in this folder", files: &[".rprofile"], ..GROUP },
    Group {
        when: "when you push this repository",
        files: &[".gitlab-ci.yml", ".circleci/config.yml", "jenkinsfile"],
        folders: &[".github/workflows"],
        ..GROUP
    },
];

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) folder: bool,
    pub(super) group: &'static Group,
}

/// The most components that a name has.
const DEEPEST: usize = 3;

/// The table by place and name, and the folders that names of several components begin with.
struct Lookup {
    rows: [HashMap<&'static str, Row>; 3],
}

static LOOKUP: LazyLock<Lookup> = LazyLock::new(|| {
    let mut rows = [HashMap::new(), HashMap::new(), HashMap::new()];
    let [any, home, git] = &mut rows;
    for group in TABLE {
        let rows = match group.place {
            Place::Any => &mut *any,
            Place::Home => &mut *home,
            Place::Git => &mut *git,
        };
        for (names, folder) in [(group.files, false), (group.folders, true)] {
            rows.extend(names.iter().map(|name| (*name, Row { name, folder, group })));
        }
    }
    Lookup { rows }
});

/// The names that count in one sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    home: Option<String>,
    allow: Vec<String>,
}

impl Names {
    pub(super) fn new(home: Option<&str>, allow: &[String]) -> Self {
        let allow = allow.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { home: home.map(str::to_owned), allow }
    }

    /// The line for a path itself.
    pub(super) fn exactly(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<Row> {
        let lookup: &[HashMap<&str, Row>; 3] = &LOOKUP.rows;
        let [any, home, git] = lookup;
        let mut found = None;
        let mut end = path.len();
        for _ in 0..DEEPEST {
            let Some(start) = path.get(..end).and_then(|above| above.rfind('/')) else { break };
            let suffix = lower(path.get(start + 1..).unwrap_or_default());
            let above = path.get(..start).unwrap_or_default();
            let rows = any.get(suffix.as_ref()).or_else(|| {
                let at_home = self.home.as_deref().is_some_and(|home| home == above);
                let here = at_home.then(|| home.get(suffix.as_ref())).flatten();
                here.or_else(|| git.get(suffix.as_ref()).filter(|_| is_git(above)))
            });
            // The longest says most.
            found = rows.copied().or(found);
            end = start;
        }
        found.filter(|row| !self.allows(row))
    }

    /// The line for a path, or for a folder above it that counts with all that is in it, and where that ends.
    pub(super) fn find(&self, path: &str, is_git: impl Fn(&str) -> bool) -> Option<(Row, usize)> {
        let ends = std::iter::once(path.len()).chain(path.rmatch_indices('/').map(|(at, _)| at));
        ends.filter_map(|end| Some((self.exactly(path.get(..end)?, &is_git)?, end)))
            .find(|(row, end)| row.folder || *end == path.len())
    }

    fn allows(&self, row: &Row) -> bool {
        let inside = |name: &str, allowed: &str| {
            name.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.allow.iter().any(|allowed| {
            inside(row.name, allowed)
                // In a repository's folder the names stand without that folder's.
                || row.group.place == Place::Git
                    && allowed.strip_prefix(".git").is_some_and(|rest| {
                        rest.is_empty() || rest.strip_prefix('/').is_some_and(|part| inside(row.name, part))
                    })
        })
    }
}

/// Whether a folder is git's by its name, or by that of one in which git keeps further repositories.
pub(super) fn is_git_by_name(path: &str) -> bool {
    let mut above = path.rsplit('/');
    above.next().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
        || above.any(|name| name.eq_ignore_ascii_case(".git"))
}

/// When a file's content is run; nothing for a file that no program of the person's runs by its name.
pub fn runs_later(path: &str, home: Option<&str>) -> Option<RunsLater> {
    let (row, _) = Names::new(home, &[]).find(path, is_git_by_name)?;
    Some(RunsLater { when: row.group.when, unasked: row.group.new == Class::Unasked })
}

fn lower(name: &str) -> std::borrow::Cow<'_, str> {
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
        ] {
            assert_eq!(when(path), None, "{path}");
        }
        assert_eq!(when("/p/.husky/pre-commit"), Some(("when you commit in this repository", false)));
        assert_eq!(runs_later("/home/me/.bashrc", None), None);
    }

    #[test]
    fn what_is_allowed_does_not_count() {
        let names = Names::new(None, &[".git".into(), ".VSCode".into()]);
        for path in ["/p/.git/hooks/a", "/p/.git", "/p/.vscode/tasks.json"] {
            assert!(names.find(path, is_git_by_name).is_none(), "{path}");
        }
        assert!(names.find("/p/.gitattributes", is_git_by_name).is_some());
        let names = Names::new(None, &[".git/config".into()]);
        assert!(names.find("/p/.git/config", is_git_by_name).is_none());
        assert!(names.find("/p/.git/hooks/a", is_git_by_name).is_some());
    }

    #[test]
    fn every_name_stands_once_in_lower_case_with_words_to_say() {
        for (place, rows) in [Place::Any, Place::Home, Place::Git].iter().zip(&LOOKUP.rows) {
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
