//! Files and folders that git reads or runs because a configuration refers to them.
//!
//! - Conditional includes are always followed, because their condition may hold later.
//! - Programs started by these programs are not followed.

use std::collections::BTreeSet;

use super::{keys, parse_config, read_config};
use crate::autostart::{
    name_table::{GIT_PROGRAM, GIT_TEMPLATE, HOOK_FOLDER, INCLUDED_CONFIG, KnownName},
    paths::{join, parent},
};

/// Maximum number of configurations read per repository, and for the user's own configuration.
const MAX_CONFIGS: usize = 100;
/// Maximum number of paths collected from these configurations.
const MAX_TARGETS: usize = 1_000;

/// Path that git reads or runs, and the path's kind.
pub(in crate::autostart) type GitTarget = (String, KnownName);

/// Collects the paths that configurations refer to.
#[derive(Debug, Default)]
pub(in crate::autostart) struct TargetFinder<'a> {
    home: Option<&'a str>,
    seen: BTreeSet<(String, Option<String>)>,
    /// Absolute referenced paths.
    pub(in crate::autostart) found: Vec<GitTarget>,
    /// Referenced paths relative to the top of each work tree.
    pub(in crate::autostart) relative: Vec<GitTarget>,
}

/// Interpretation of a setting's value.
enum ConfigValue<'a> {
    Nothing,
    Include,
    Hooks,
    Template,
    Command(&'a str),
}

impl<'a> TargetFinder<'a> {
    pub(in crate::autostart) fn new(home: Option<&'a str>) -> Self {
        Self { home, ..Self::default() }
    }

    /// Adds the paths to which the configuration at `path` refers. `top` is the folder in which git runs programs, or
    /// `None` if there are several.
    pub(in crate::autostart) fn add_config(&mut self, path: &str, text: &[u8], top: Option<&str>) {
        if !self.seen.insert((path.to_owned(), top.map(str::to_owned))) || !keys::may_run_programs(text) {
            return;
        }
        // Git does nothing if it cannot parse its configuration.
        for (key, values) in parse_config(text).unwrap_or_default() {
            values.iter().for_each(|value| self.add_setting(path, &key, value, top));
        }
    }

    /// Adds the paths to which one setting refers.
    pub(in crate::autostart) fn add_setting(
        &mut self,
        config: &str,
        key: &str,
        value: &str,
        top: Option<&str>,
    ) {
        match classify(key, value) {
            ConfigValue::Nothing => {}
            ConfigValue::Include => self.include(config, value, top),
            ConfigValue::Hooks => self.add(value, HOOK_FOLDER, top),
            ConfigValue::Template => self.add(value, GIT_TEMPLATE, top),
            ConfigValue::Command(command) => {
                program_paths(command).iter().for_each(|program| self.add(program, GIT_PROGRAM, top));
            }
        }
    }

    fn include(&mut self, config: &str, value: &str, top: Option<&str>) {
        let Some(path) = self.absolute(value, Some(parent(config))) else { return };
        if self.seen.len() >= MAX_CONFIGS {
            return;
        }
        let text = read_config(&path);
        self.push(path.clone(), INCLUDED_CONFIG);
        self.add_config(&path, &text.unwrap_or_default(), top);
    }

    fn add(&mut self, value: &str, known: KnownName, top: Option<&str>) {
        match self.absolute(value, top) {
            Some(path) => self.push(path, known),
            None if top.is_none() && self.relative.len() < MAX_TARGETS => {
                self.relative.extend(normalize_relative(value).map(|path| (path, known)));
            }
            None => {}
        }
    }

    fn push(&mut self, path: String, known: KnownName) {
        if self.found.len() < MAX_TARGETS {
            self.found.push((path, known));
        }
    }

    /// Makes a path absolute, relative to a folder or the home directory. Keeps `..`, because the kernel resolves it
    /// after following symlinks.
    fn absolute(&self, value: &str, folder: Option<&str>) -> Option<String> {
        for home in ["~/", "$HOME/", "${HOME}/"] {
            if let Some(below) = value.strip_prefix(home) {
                return Some(join(self.home?, below));
            }
        }
        let is_expanded = value.starts_with(['~', '%', '$']);
        if value.starts_with('/') {
            Some(value.to_owned())
        } else {
            Some(join(folder?, value)).filter(|_| !is_expanded)
        }
    }
}

fn classify<'a>(key: &str, value: &'a str) -> ConfigValue<'a> {
    let command = || value.strip_prefix('!').map_or(ConfigValue::Nothing, ConfigValue::Command);
    match key {
        "core.hookspath" => return ConfigValue::Hooks,
        "init.templatedir" => return ConfigValue::Template,
        "include.path" => return ConfigValue::Include,
        _ if key.starts_with("includeif.") && key.ends_with(".path") => return ConfigValue::Include,
        _ if key.starts_with("alias.") => return command(),
        _ if key.starts_with("submodule.") && key.ends_with(".update") => return command(),
        _ => {}
    }
    if keys::is_command_line(key, value) {
        return ConfigValue::Command(value.strip_prefix('!').unwrap_or(value));
    }
    ConfigValue::Nothing
}

/// Interpreters. An interpreter's first argument is the program to run.
const INTERPRETERS: &[&str] =
    &["bash", "bun", "dash", "deno", "env", "exec", "node", "perl", "ruby", "sh", "sudo", "tsx", "uv", "zsh"];
/// Shell words that can precede a command name.
const COMMAND_STARTS: &[&str] = &["!", "(", "{", "|", "||", "&&", ";", "do", "else", "if", "then", "while"];

/// Returns the program paths in a shell command. Bare names, which the shell looks up in `PATH`, are returned only
/// after an interpreter.
fn program_paths(command: &str) -> Vec<String> {
    let command = command.replace("$(git rev-parse --show-toplevel)", ".");
    let mut found = Vec::new();
    let (mut is_program, mut is_script) = (true, false);
    for word in command.split_whitespace() {
        let ends_command = word.ends_with(';');
        let word = word.trim_matches(['"', '\'', ';', '(', ')']);
        let is_option = word.starts_with('-') || word.split('/').next().unwrap_or_default().contains('=');
        if COMMAND_STARTS.contains(&word) || word.is_empty() {
            (is_program, is_script) = (true, false);
        } else if (is_program || is_script) && !is_option {
            let name = word.rsplit('/').next().unwrap_or_default();
            if (word.contains('/') || is_script) && !word.contains("://") {
                found.push(word.to_owned());
            }
            is_script = INTERPRETERS.contains(&name) || name.starts_with("python");
            is_program = false;
        }
        if ends_command {
            (is_program, is_script) = (true, false);
        }
    }
    found
}

/// Normalizes a relative path. Returns `None` if the path leaves its folder or contains a shell expansion.
fn normalize_relative(value: &str) -> Option<String> {
    let parts: Vec<&str> = value.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_plain = |part: &&str| *part != ".." && !part.contains(['$', '%', '~', '*']);
    (!parts.is_empty() && parts.iter().all(is_plain)).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autostart::git::resolve;

    fn found(text: &str, top: Option<&str>) -> (Vec<String>, Vec<String>) {
        let mut finder = TargetFinder::new(Some("/home/me"));
        finder.add_config("/r/.git/config", text.as_bytes(), top);
        let plain = |path: String| if path.starts_with('/') { resolve("/", &path).unwrap() } else { path };
        let paths = |targets: Vec<GitTarget>| targets.into_iter().map(|(path, _)| plain(path)).collect();
        (paths(finder.found), paths(finder.relative))
    }

    #[test]
    fn finds_hooks_configurations_templates_and_programs() {
        for (text, path) in [
            ("[core]\nhooksPath = .githooks", "/r/.githooks"),
            ("[core]\nhooksPath = ~/hooks", "/home/me/hooks"),
            ("[include]\npath = ../x", "/r/x"),
            ("[includeIf \"onbranch:evil\"]\npath = /r/y", "/r/y"),
            ("[includeIf \"hasconfig:remote.*.url:https://x/**\"]\npath = ../z", "/r/z"),
            ("[init]\ntemplateDir = /r/templates", "/r/templates"),
            ("[core]\nfsmonitor = ./watch", "/r/watch"),
            ("[core]\nsshCommand = \"/r/ssh -i key\"", "/r/ssh"),
            ("[filter \"x\"]\nclean = python3 -u tools/clean.py %f", "/r/tools/clean.py"),
            ("[diff \"x\"]\ntextconv = sh to-text.sh", "/r/to-text.sh"),
            ("[merge \"x\"]\ndriver = scripts/merge %O %A %B", "/r/scripts/merge"),
            ("[alias]\nst = \"!cd sub && ./status; git status\"", "/r/status"),
            ("[alias]\nst = \"!$(git rev-parse --show-toplevel)/status\"", "/r/status"),
            ("[credential]\nhelper = /r/helper", "/r/helper"),
            ("[gpg]\nprogram = tools/gpg", "/r/tools/gpg"),
        ] {
            assert_eq!(found(text, Some("/r")).0, [path], "{text}");
        }
    }

    #[test]
    fn relative_path_in_user_configuration_applies_to_every_work_tree() {
        let text = "[core]\nhooksPath = ./.githooks/\n[alias]\nst = !./status";
        let expected = (vec![], vec!["status".to_owned(), ".githooks".to_owned()]);
        assert_eq!(found(text, None), expected);
    }

    #[test]
    fn ignores_system_programs_and_plain_arguments() {
        for text in [
            "[core]\neditor = code --wait src/main.rs",
            "[filter \"lfs\"]\nclean = git-lfs clean -- %f",
            "[alias]\nco = checkout\nlint = !make lint",
            "[alias]\nlast = \"!git log -1 docs/guide.md\"",
            "[core]\nfsmonitor = true",
            "[remote \"o\"]\nurl = https://example.org/a.git\nfetch = +refs/heads/*:refs/remotes/o/*",
        ] {
            assert_eq!(found(text, Some("/r")), (vec![], vec![]), "{text}");
        }
    }
}
