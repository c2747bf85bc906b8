//! Content checks for files whose name alone does not show that a program runs them.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::name_table::{ContentCheck, KnownName, RunVerdict};

/// Current and previous version of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileVersions<'a> {
    pub(super) path: &'a str,
    /// Current content; `None` if the file is not a regular file, or is too long.
    pub(super) now: Option<&'a [u8]>,
    pub(super) before: Option<&'a [u8]>,
    pub(super) home: Option<&'a str>,
}

/// Keys in agents' settings that start programs or select the programs to start, in lower case: Claude Code's `hooks`,
/// `statusLine`, `apiKeyHelper`, `awsAuthRefresh`, `awsCredentialExport`, `otelHeadersHelper`, `env` and
/// `enabledPlugins`; `mcpServers` of most agents, `servers` of VS Code, `mcp` and `plugin` of opencode;
/// `tools.discoveryCommand` and `tools.callCommand` of Gemini.
const EXACT_KEYS: &[&str] = &["env", "servers"];
const KEY_PARTS: &[&str] = &[
    "mcp",
    "hook",
    "plugin",
    "marketplace",
    "helper",
    "command",
    "refresh",
    "export",
    "statusline",
    "notify",
];

/// Judges a new or changed file by its content. Git configurations and redirects are judged elsewhere.
pub(super) fn judge(known: &KnownName, versions: FileVersions<'_>) -> RunVerdict {
    let by_name = known.group.verdict;
    let automatic_if = |runs: bool| if runs { by_name } else { RunVerdict::Reported };
    match known.group.check {
        ContentCheck::Always | ContentCheck::GitConfig | ContentCheck::Redirect => by_name,
        ContentCheck::Hook if versions.path.ends_with(".sample") => RunVerdict::Harmless,
        ContentCheck::Hook => by_name,
        ContentCheck::Direnv => automatic_if(
            versions.now.is_none_or(|text| is_allowed_by_direnv(versions.path, text, versions.home)),
        ),
        ContentCheck::Agent => automatic_if(versions.now.is_none_or(starts_programs)),
        ContentCheck::AgentToml => automatic_if(versions.now.is_none_or(mentions_key)),
        ContentCheck::Sections => automatic_if(!versions.now.is_some_and(has_plain_sections)),
        ContentCheck::Scripts if versions.now.is_some_and(|now| has_same_scripts(versions.before, now)) => {
            RunVerdict::Harmless
        }
        ContentCheck::Scripts => RunVerdict::Reported,
    }
}

/// Returns `true` if direnv has allowed a file. Direnv records each allowed file under a digest of its path and
/// content.
fn is_allowed_by_direnv(path: &str, text: &[u8], home: Option<&str>) -> bool {
    // Direnv's list of allowed files is in the home directory. If the home is unknown, the file counts as allowed.
    let Some(home) = home.map(Path::new) else { return true };
    let digest = Sha256::new().chain_update(path).chain_update("\n").chain_update(text).finalize();
    let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let data = std::env::var_os("XDG_DATA_HOME").map(|data| Path::new(&data).join("direnv/allow"));
    let allowed = [home.join(".local/share/direnv/allow"), home.join(".config/direnv/allow")];
    // Direnv's own configuration can allow whole folders. This check does not parse it.
    let settings = std::fs::read(home.join(".config/direnv/direnv.toml")).unwrap_or_default();
    allowed.into_iter().chain(data).any(|folder| folder.join(&name).exists())
        || String::from_utf8_lossy(&settings).contains("whitelist")
}

fn starts_programs(text: &[u8]) -> bool {
    if text.trim_ascii().is_empty() {
        return false;
    }
    // Text that is not valid JSON contains comments or is incomplete.
    serde_json::from_slice(text).map_or_else(|_| mentions_key(text), |value: Value| has_program_key(&value))
}

fn has_program_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| is_program_key(key) && !is_empty(value) || has_program_key(value)),
        Value::Array(values) => values.iter().any(has_program_key),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_program_key(key: &str) -> bool {
    let key = key.to_lowercase();
    EXACT_KEYS.contains(&key.as_str()) || KEY_PARTS.iter().any(|part| key.contains(part))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) => false,
    }
}

/// Harmless configuration sections that `hg clone` and `jj git clone` write: `paths` of Mercurial, and
/// `revset-aliases` and `user` of Jujutsu.
const PLAIN_SECTIONS: &[&str] = &["paths", "revset-aliases", "user"];

/// Returns `true` if every line of a configuration belongs to a harmless section.
fn has_plain_sections(text: &[u8]) -> bool {
    let mut is_inside = false;
    String::from_utf8_lossy(text).lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(header) = line.strip_prefix('[') {
            let section = header.split([']', '.']).next().unwrap_or_default();
            is_inside = PLAIN_SECTIONS.contains(&section.trim());
            return is_inside;
        }
        // In Mercurial, `%include` reads another file.
        is_inside && !line.starts_with('%')
    })
}

/// Returns `true` if a string contains any of the keys, or an escape sequence that could hide one.
fn mentions_key(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let whole = EXACT_KEYS.iter().any(|key| text.contains(&format!("\"{key}\"")));
    whole || text.contains("\\u") || KEY_PARTS.iter().any(|part| text.contains(part))
}

fn has_same_scripts(before: Option<&[u8]>, now: &[u8]) -> bool {
    let scripts = |text: &[u8]| -> Option<Value> {
        let mut value: Value = serde_json::from_slice(text).ok()?;
        Some(
            value
                .get_mut("scripts")
                .map(Value::take)
                .filter(|scripts| !is_empty(scripts))
                .unwrap_or_default(),
        )
    };
    let before = before.map_or(Some(Value::Null), scripts);
    before.is_some() && before == scripts(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autostart::name_table::NameTable;

    fn verdict(path: &str, before: Option<&str>, now: &str, home: Option<&str>) -> RunVerdict {
        let (known, _) = NameTable::default().find(path, |_| false).unwrap();
        let versions =
            FileVersions { path, now: Some(now.as_bytes()), before: before.map(str::as_bytes), home };
        judge(&known, versions)
    }

    #[test]
    fn agent_settings_that_start_programs_run_unasked() {
        let claude = |text| verdict("/p/.claude/settings.json", None, text, None);
        for text in [
            r#"{"hooks":{"PreToolUse":[{}]}}"#,
            r#"{"statusLine":{"type":"command"}}"#,
            r#"{"apiKeyHelper":"x"}"#,
            r#"{"env":{"A":"b"}}"#,
            r#"{"enableAllProjectMcpServers":true}"#,
            r#"{"\u0068ooks":{"a":1}}"#,
            r#"{"hooks":{"a":"#,
            "// x\n{\"\\u0068ooks\":{}}",
        ] {
            assert_eq!(claude(text), RunVerdict::Automatic, "{text}");
        }
        for text in
            ["", "{}", r#"{"model":"x","permissions":{"allow":["Read"]}}"#, r#"{"hooks":{}}"#, "{\"mod"]
        {
            assert_eq!(claude(text), RunVerdict::Reported, "{text}");
        }
        let other = |path, text| verdict(path, None, text, None);
        assert_eq!(other("/p/.mcp.json", r#"{"mcpServers":{"a":{}}}"#), RunVerdict::Automatic);
        assert_eq!(other("/p/.vscode/mcp.json", r#"{"servers":{"a":{}}}"#), RunVerdict::Automatic);
        assert_eq!(other("/p/.codex/config.toml", "[mcp_servers.a]\n"), RunVerdict::Automatic);
        assert_eq!(other("/p/.codex/config.toml", "model = \"x\"\n"), RunVerdict::Reported);
    }

    #[test]
    fn other_vcs_configuration_runs_unasked_unless_only_harmless_sections() {
        let hg = |text| verdict("/p/.hg/hgrc", None, text, None);
        let jj = |text| verdict("/p/.jj/repo/config.toml", None, text, None);
        assert_eq!(hg("# x\n[paths]\ndefault = https://example.org/a\n"), RunVerdict::Reported);
        assert_eq!(jj("[revset-aliases]\n\"trunk()\" = \"main@origin\"\n"), RunVerdict::Reported);
        for text in [
            "[paths]\na = b\n[hooks]\npre-status = evil\n",
            "[paths]\n%include ../evil\n",
            "%include ../evil\n",
            "[alias]\nst = !evil\n",
        ] {
            assert_eq!(hg(text), RunVerdict::Automatic, "{text}");
        }
        for text in
            ["ui.editor = \"evil\"\n", "[user]\nname = \"a\"\n [ui]\neditor = \"evil\"\n", "[[user.x]]\n"]
        {
            assert_eq!(jj(text), RunVerdict::Automatic, "{text}");
        }
    }

    #[test]
    fn envrc_runs_unasked_if_direnv_allowed_its_content() {
        let home = tempfile::tempdir().unwrap();
        let allow = home.path().join(".local/share/direnv/allow");
        std::fs::create_dir_all(&allow).unwrap();
        // `printf '/p/.envrc\nexport A=1\n' | sha256sum`
        let digest = Sha256::digest("/p/.envrc\nexport A=1\n");
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(allow.join(name), "/p/.envrc\n").unwrap();
        let envrc = |text| verdict("/p/.envrc", None, text, home.path().to_str());
        assert_eq!(envrc("export A=1\n"), RunVerdict::Automatic);
        assert_eq!(envrc("export A=2\n"), RunVerdict::Reported);
        assert_eq!(verdict("/p/.envrc", None, "", None), RunVerdict::Automatic);
    }

    #[test]
    fn package_is_listed_when_its_scripts_change() {
        let package = |before, now| verdict("/p/package.json", before, now, None);
        let (plain, scripts) = (r#"{"name":"a"}"#, r#"{"name":"a","scripts":{"test":"x"}}"#);
        assert_eq!(package(None, plain), RunVerdict::Harmless);
        assert_eq!(package(None, scripts), RunVerdict::Reported);
        assert_eq!(package(Some(plain), scripts), RunVerdict::Reported);
        assert_eq!(package(Some(scripts), r#"{"name":"b","scripts":{"test":"x"}}"#), RunVerdict::Harmless);
    }
}
