//! Persistence files: what would have the person's own programs run something later, by their names.
//!
//! - INVARIANT: none of these can be written at a writable root, nor where it exists below one, unless the spec names it.
//!   What appears below nevertheless is moved out of the way when the server has ended.

#[cfg(target_os = "linux")]
mod ghosts;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod marks;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod quarantine;
#[cfg(target_os = "linux")]
mod repository;
#[cfg(target_os = "linux")]
mod search;

#[cfg(target_os = "linux")]
pub(crate) use guard::{Guard, GuardError};
#[cfg(target_os = "linux")]
pub(crate) use marks::{Mark, ask};

/// The names that are protected, relative to any directory: files, and directories with all below them.
pub const PERSISTENCE_NAMES: &[&str] = &[
    // Start-up files of shells.
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".config/nushell",
    ".cshrc",
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
    // Start-up of a desktop session.
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    // Git.
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/info",
    ".git/modules",
    ".git/worktrees",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    // Editors, and what runs in a terminal all day: at their start, or when a folder is opened.
    ".config/emacs",
    ".config/nvim",
    ".config/tmux",
    ".config/zed",
    ".devcontainer",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".gdbinit",
    ".gvimrc",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".tmux.conf",
    ".vim",
    ".vimrc",
    ".vscode",
    ".zed",
    // Agents: hooks, commands, and servers that they start.
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/skills",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".cursor",
    ".gemini/commands",
    ".gemini/extensions",
    ".gemini/settings.json",
    ".mcp.json",
    // Tools that run what a file in the directory says.
    ".envrc",
    ".husky",
    ".mise.toml",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".ripgreprc",
];

/// Whether a spec may name `name` as allowed: one of the names, or the directory several of them are in.
pub(crate) fn may_be_allowed(name: &str) -> bool {
    PERSISTENCE_NAMES.iter().any(|known| is_at_or_below(known, name))
}

/// Whether `path` is `above` or lies below it.
pub(crate) fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_directories_can_be_allowed() {
        for name in [".git/config", ".git", ".vscode", ".claude"] {
            assert!(may_be_allowed(name), "{name}");
        }
        for name in ["", ".gi", ".git/objects", ".bashrc/x", "src"] {
            assert!(!may_be_allowed(name), "{name}");
        }
    }
}
