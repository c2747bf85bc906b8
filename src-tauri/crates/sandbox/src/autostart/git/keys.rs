//! Keys that make git run a program or read another configuration (`git-config(1)`).

/// Context for paths in a configuration.
pub(in crate::autostart) struct ConfigPaths<'a> {
    /// Returns `true` if all files at a path are checked, regardless of their names.
    pub(in crate::autostart) is_checked: &'a dyn Fn(&str) -> bool,
    /// Folder that contains the configuration.
    pub(in crate::autostart) folder: &'a str,
}

/// Sections in which any key can run a program or read a file.
const PROGRAM_SECTIONS: &[&str] = &[
    "include",
    "includeif",
    // `protocol` enables transports. By default, git enables no transport that runs a command.
    "protocol",
    "sendemail",
    "instaweb",
    "hook",
    // Programs for git-lfs and git-annex.
    "lfs.customtransfer",
    "lfs.extension",
    "annex",
];

/// Keys that name a program or file, without their subsection.
const PROGRAM_KEYS: &[&str] = &[
    "core.gitproxy",
    "core.hookspath",
    "core.fsmonitor",
    "credential.helper",
    "diff.external",
    "filter.clean",
    "filter.smudge",
    "filter.process",
    "diff.textconv",
    "http.proxy",
    "remote.proxy",
    "remote.uploadpack",
    "remote.receivepack",
    "remote.vcs",
    "init.templatedir",
    "interactive.difffilter",
    "imap.tunnel",
    "lfs.standalonetransferagent",
    "difftool.path",
    "mergetool.path",
    "browser.path",
    "man.path",
    "web.browser",
    "help.browser",
    "url.insteadof",
    "url.pushinsteadof",
    "svn.authorsprog",
];

/// Suffixes of keys whose value is a program, in git and its extensions.
const PROGRAM_SUFFIXES: &[&str] = &[
    "askpass",
    "cmd",
    "command",
    "driver",
    "editor",
    "exec",
    "helper",
    "hook",
    "hookspath",
    "pager",
    "program",
];

/// Keys whose value is a repository's URL.
const URL_KEYS: &[&str] = &[
    "remote.url",
    "remote.pushurl",
    "submodule.url",
    "branch.remote",
    "branch.pushremote",
    "remote.pushdefault",
];

/// Git commands that a harmless alias can use, each with its permitted long options.
const HARMLESS_COMMANDS: &[&str] = &[
    "add", "branch", "checkout", "commit", "diff", "fetch", "log", "pull", "push", "reset", "restore",
    "show", "stash", "status", "switch", "tag",
];
const HARMLESS_OPTIONS: &[&str] = &[
    "--all",
    "--amend",
    "--cached",
    "--decorate",
    "--graph",
    "--hard",
    "--no-edit",
    "--oneline",
    "--short",
    "--soft",
    "--staged",
    "--stat",
];

/// Returns `true` if a key with this value makes git run a program. Both are in the format of `git config --list`.
pub(super) fn may_run_program(key: &str, value: &str, paths: &ConfigPaths<'_>) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let name = rest.rsplit('.').next().unwrap_or_default();
    let in_section =
        |listed: &str| key.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if PROGRAM_SECTIONS.iter().any(|listed| in_section(listed)) || name.starts_with("annex-") {
        return true;
    }
    let bare_key = format!("{section}.{name}");
    if section == "alias" {
        return !is_plain_alias(value);
    }
    if URL_KEYS.contains(&bare_key.as_str()) {
        return selects_remote_helper(value);
    }
    match bare_key.as_str() {
        "core.worktree" => return !paths.resolves_inside(value),
        "submodule.update" => return value.trim_start().starts_with('!'),
        _ => {}
    }
    is_command_line(key, value)
}

/// Returns `true` if the value of a key is a command line.
pub(super) fn is_command_line(key: &str, value: &str) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let name = rest.rsplit('.').next().unwrap_or_default();
    let bare_key = format!("{section}.{name}");
    let is_program_key = PROGRAM_KEYS.contains(&bare_key.as_str())
        || section == "pager"
        || PROGRAM_SUFFIXES.iter().any(|ending| name.ends_with(ending));
    // An empty credential helper only clears the list of earlier helpers.
    let can_be_boolean =
        ["pager", "color"].contains(&section) || bare_key == "core.fsmonitor" || name.ends_with("exec");
    is_program_key
        && !(can_be_boolean && is_boolean(value))
        && !(bare_key == "credential.helper" && value.is_empty())
}

/// Returns `true` if a configuration contains a key that makes git run a program or read a file. A text search
/// suffices, because git's syntax has no escapes in keys.
pub(super) fn may_run_programs(text: &[u8]) -> bool {
    if super::plain::is_harmless(text) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let names = PROGRAM_KEYS.iter().filter_map(|key| key.rsplit('.').next());
    let mut words =
        names.chain(PROGRAM_SUFFIXES.iter().copied()).chain(["include", "alias", "pager", "update"]);
    words.any(|word| lower.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Returns `true` if a URL selects a remote helper, such as `ext::`, or looks like an option.
fn selects_remote_helper(address: &str) -> bool {
    address.split_once("::").is_some_and(|(helper, _)| !helper.contains(['/', '[', '@']))
        || address.starts_with('-')
}

fn is_plain_alias(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@{}^~/:%".contains(&byte);
    words.next().is_some_and(|word| HARMLESS_COMMANDS.contains(&word))
        && words.all(|word| {
            word.bytes().all(is_plain) && (!word.starts_with("--") || HARMLESS_OPTIONS.contains(&word))
        })
}

fn is_boolean(value: &str) -> bool {
    ["", "0", "1", "true", "false", "yes", "no", "on", "off"].contains(&value.to_ascii_lowercase().as_str())
}

impl ConfigPaths<'_> {
    /// Returns `true` if a path in the configuration resolves into a folder whose files are all checked.
    pub(in crate::autostart) fn resolves_inside(&self, path: &str) -> bool {
        resolve(self.folder, path).is_some_and(|path| (self.is_checked)(&path))
    }
}

/// Resolves a path relative to a folder without accessing the file system. Returns `None` if this is impossible.
pub(in crate::autostart) fn resolve(folder: &str, path: &str) -> Option<String> {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            // Git expands paths that start with `~` or `%`.
            _ if parts.is_empty() && part.starts_with(['~', '%']) => return None,
            _ => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}
