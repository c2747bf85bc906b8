//! The names of files that run later. A name has up to three components, in lower case.

use super::{Class, Group, Judge, Place};

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
/// Hooks.
pub(super) const HOOKS: Group = Group { judge: Judge::Hook, folders: &["hooks"], ..GIT };
/// Configurations of repositories.
pub(super) const CONFIG: Group =
    Group { judge: Judge::GitConfig, files: &["config", "config.worktree"], ..GIT };
/// Places where the person said that nothing may be.
pub(super) static DENIED: Group =
    Group { place: Place::Any, when: "where you said that nothing may be", ..HOME };
/// Settings of agents that can start programs.
const AGENT: Group = Group { place: Place::Any, judge: Judge::Agent, ..HOME };
/// Closed where they are, listed where they are new.
const EDITOR: Group = Group { closed: true, strict: true, ..GROUP };

/// All of them.
pub(super) const TABLE: &[Group] = &[
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
    HOOKS,
    CONFIG,
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
        files: &[".amazonq/mcp.json", ".roo/mcp.json", "opencode.json", "opencode.jsonc"],
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
