//! The names of files that run later. A name has up to three components, in lower case.

use super::{ContentCheck, NameGroup, NameScope, RunVerdict};

const GROUP: NameGroup = NameGroup {
    place: NameScope::Any,
    closed: false,
    verdict: RunVerdict::Listed,
    check: ContentCheck::Always,
    strict: false,
    when: "",
    files: &[],
    folders: &[],
};
/// In the home, and run unasked.
const HOME: NameGroup =
    NameGroup { place: NameScope::Home, closed: true, verdict: RunVerdict::Unasked, strict: true, ..GROUP };
/// In a repository, and run unasked.
const GIT: NameGroup =
    NameGroup { place: NameScope::Git, when: "when you use git in this repository", ..HOME };
/// Hooks.
pub(super) const HOOKS: NameGroup = NameGroup { check: ContentCheck::Hook, folders: &["hooks"], ..GIT };
/// Configurations of repositories.
pub(super) const CONFIG: NameGroup =
    NameGroup { check: ContentCheck::GitConfig, files: &["config", "config.worktree"], ..GIT };
/// Places where the person said that nothing may be.
pub(super) static DENIED: NameGroup =
    NameGroup { place: NameScope::Any, when: "where you said that nothing may be", ..HOME };
/// Settings of agents that can start programs.
const AGENT: NameGroup = NameGroup { place: NameScope::Any, check: ContentCheck::Agent, ..HOME };
/// Closed where they are, listed where they are new.
const EDITOR: NameGroup = NameGroup { closed: true, strict: true, ..GROUP };

/// All of them.
pub(super) const TABLE: &[NameGroup] = &[
    NameGroup {
        when: "when you open a shell",
        files: &[
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".cshrc",
            ".direnvrc",
            ".cargo/env",
            ".nvm/nvm.sh",
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
        folders: &[
            ".bashrc.d",
            ".config/direnv",
            ".config/fish",
            ".config/nushell",
            ".local/share/direnv",
            ".oh-my-zsh",
        ],
        ..HOME
    },
    NameGroup {
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
    NameGroup { when: "when you use git", files: &[".gitconfig"], folders: &[".config/git"], ..HOME },
    NameGroup {
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
    NameGroup {
        place: NameScope::Home,
        when: "when you run a program of its name",
        folders: &[".local/bin"],
        ..GROUP
    },
    // Git. A `.git` that is a file, and `commondir`, say where the repository is.
    HOOKS,
    CONFIG,
    NameGroup { check: ContentCheck::Redirect, files: &["commondir"], ..GIT },
    NameGroup { place: NameScope::Any, check: ContentCheck::Redirect, files: &[".git"], ..GIT },
    NameGroup { verdict: RunVerdict::Listed, files: &["info/attributes"], ..GIT },
    NameGroup {
        strict: true,
        when: "when you use git in this repository",
        files: &[".gitattributes", ".gitmodules"],
        ..GROUP
    },
    // Agents. See `content` for the settings that count.
    NameGroup {
        when: "when you start Claude Code in this folder",
        files: &[".mcp.json", ".claude/settings.json", ".claude/settings.local.json"],
        ..AGENT
    },
    NameGroup {
        when: "when you start Claude Code in this folder",
        folders: &[".claude/agents", ".claude/commands", ".claude/hooks", ".claude/skills"],
        ..EDITOR
    },
    NameGroup {
        when: "when you open this folder in Cursor",
        files: &[".cursor/mcp.json", ".cursor/hooks.json"],
        ..AGENT
    },
    NameGroup { when: "when you open this folder in Cursor", folders: &[".cursor"], ..EDITOR },
    NameGroup { when: "when you open this folder in VS Code", files: &[".vscode/mcp.json"], ..AGENT },
    NameGroup {
        when: "when you start Codex in this folder",
        check: ContentCheck::AgentToml,
        files: &[".codex/config.toml"],
        ..AGENT
    },
    NameGroup { when: "when you start Codex in this folder", files: &[".codex/hooks.json"], ..AGENT },
    NameGroup { when: "when you start Gemini in this folder", files: &[".gemini/settings.json"], ..AGENT },
    NameGroup {
        check: ContentCheck::Always,
        when: "when you start Gemini in this folder",
        folders: &[".gemini/extensions"],
        ..AGENT
    },
    NameGroup { when: "when you start Gemini in this folder", folders: &[".gemini/commands"], ..EDITOR },
    NameGroup {
        when: "when you start an agent in this folder",
        files: &[".amazonq/mcp.json", ".roo/mcp.json", "opencode.json", "opencode.jsonc"],
        ..AGENT
    },
    // Editors: with a question first, or when the person has turned it on. A task of VS Code's with `runOn: folderOpen` asks.
    NameGroup {
        when: "when you open this folder in VS Code",
        files: &[".vscode/launch.json", ".vscode/settings.json", ".vscode/tasks.json"],
        ..EDITOR
    },
    NameGroup {
        closed: false,
        when: "when you open this folder in VS Code",
        folders: &[".vscode"],
        ..EDITOR
    },
    NameGroup { when: "when you open this folder in a JetBrains editor", folders: &[".idea"], ..EDITOR },
    NameGroup { when: "when you open this folder in Zed", folders: &[".zed"], ..EDITOR },
    NameGroup {
        when: "when you open this folder in a container",
        files: &[".devcontainer.json"],
        folders: &[".devcontainer"],
        ..EDITOR
    },
    NameGroup {
        when: "when you open a file of this folder in an editor",
        files: &[".dir-locals-2.el", ".dir-locals.el", ".exrc", ".nvim.lua", ".nvimrc"],
        ..EDITOR
    },
    NameGroup { when: "when you debug in this folder", files: &[".gdbinit"], ..EDITOR },
    // Tools that run what a file in the folder says.
    NameGroup {
        closed: true,
        verdict: RunVerdict::Unasked,
        check: ContentCheck::Direnv,
        strict: true,
        when: "when you enter this folder, with direnv",
        files: &[".envrc"],
        ..GROUP
    },
    NameGroup { when: "when you commit in this repository", folders: &[".husky"], ..EDITOR },
    NameGroup {
        strict: true,
        when: "when you commit in this repository",
        files: &[".pre-commit-config.yaml"],
        ..GROUP
    },
    NameGroup { when: "when you commit in this repository", files: &["lefthook.yml"], ..GROUP },
    NameGroup {
        strict: true,
        when: "when you enter this folder, with mise",
        files: &[".mise.toml"],
        ..GROUP
    },
    NameGroup {
        when: "when you enter this folder, with mise or asdf",
        files: &["mise.toml", ".tool-versions"],
        ..GROUP
    },
    NameGroup { strict: true, when: "when you run npm in this folder", files: &[".npmrc"], ..GROUP },
    NameGroup { strict: true, when: "when you search in this folder", files: &[".ripgreprc"], ..GROUP },
    NameGroup {
        when: "when you run yarn or pnpm in this folder",
        files: &[".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml"],
        ..GROUP
    },
    NameGroup {
        check: ContentCheck::Scripts,
        when: "when you install this package or run its scripts",
        files: &["package.json"],
        ..GROUP
    },
    NameGroup {
        when: "when you run make or just in this folder",
        files: &["makefile", "gnumakefile", "justfile", ".justfile"],
        ..GROUP
    },
    NameGroup {
        when: "when you build this project",
        files: &["build.rs", ".cargo/config.toml", "build.gradle", "build.gradle.kts", "settings.gradle"],
        ..GROUP
    },
    NameGroup { when: "when you install this package", files: &["setup.py"], ..GROUP },
    NameGroup { when: "when you run the tests of this folder", files: &["conftest.py"], ..GROUP },
    NameGroup { when: "when you start R in this folder", files: &[".rprofile"], ..GROUP },
    NameGroup {
        when: "when you push this repository",
        files: &[".gitlab-ci.yml", ".circleci/config.yml", "jenkinsfile"],
        folders: &[".github/workflows"],
        ..GROUP
    },
];
