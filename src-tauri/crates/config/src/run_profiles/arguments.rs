//! Adds a profile's arguments to a run's command.
//!
//! - `{shim}` in an argument stands for the path of `ironcurtain-shim` as a JSON string so that an agent can start it
//!   as an MCP server. TOML accepts the same string syntax.

use super::plan_context::PlanContext;
use super::profile::expanded;
use super::{AddedArguments, SettingCondition};
use ironcurtain_paths::{CanonicalPath, bounded_read};
use serde_json::Value;
use std::path::Path;

/// Returns the command with the profile's arguments inserted after the program name.
pub(super) fn with_added(added: &[AddedArguments], context: PlanContext<'_>) -> Vec<String> {
    let PlanContext { argv, home, cwd, shim, .. } = context;
    let Some((program, given)) = argv.split_first() else { return Vec::new() };
    let is_wanted = |added: &&AddedArguments| {
        !given.iter().any(|argument| added.unless.iter().any(|other| is_option(argument, other)))
            && added.when.as_ref().is_none_or(|condition| is_on(condition, home, cwd))
    };
    let added = added.iter().filter(is_wanted).flat_map(|added| &added.add);
    let shim = Value::from(shim.to_string_lossy()).to_string();
    let added = added.map(|argument| argument.replace("{shim}", &shim));
    std::iter::once(program.clone()).chain(added).chain(given.iter().cloned()).collect()
}

/// Returns `true` if an argument is this option, alone or with a value after `=`.
fn is_option(argument: &str, option: &str) -> bool {
    argument.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Returns `true` if one of the files sets the key to `true`. Skips unreadable files.
fn is_on(condition: &SettingCondition, home: &CanonicalPath, cwd: &Path) -> bool {
    let pointer = format!("/{}", condition.key.replace('.', "/"));
    condition.files.iter().any(|file| {
        let text = bounded_read::read_text(&cwd.join(expanded(file, home))).ok().flatten();
        let settings = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        settings.is_some_and(|settings| settings.pointer(&pointer) == Some(&Value::Bool(true)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;
    use crate::protection::protection;

    #[test]
    fn arguments_are_added_once_and_only_where_they_are_needed() {
        let dir = tempfile::tempdir().unwrap();
        let home = CanonicalPath::assume_canonical(dir.path().to_str().unwrap()).unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir_all(project.join(".agent")).unwrap();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let condition = SettingCondition {
            key: "sandbox.enabled".into(),
            files: vec!["~/settings.json".into(), ".agent/settings.json".into()],
        };
        let added = [
            AddedArguments {
                add: words("--sandbox off:{shim}"),
                when: None,
                unless: words("-s --sandbox"),
                why: "w".into(),
            },
            AddedArguments { add: words("--fix"), when: Some(condition), unless: vec![], why: "w".into() },
        ];
        let ours = Home::under(&dir.path().join("ours"), dir.path());
        ours.prepare().unwrap();
        let protected = protection(&ours, &home).unwrap();
        let with = |argv: &str| {
            let (argv, shim) = (words(argv), Path::new("/opt/shim"));
            let (ours, home, protected, cwd) = (&ours, &home, &protected, project.as_path());
            with_added(&added, PlanContext { ours, home, protected, cwd, path: "", argv: &argv, shim })
                .join(" ")
        };
        assert_eq!(with("agent go"), r#"agent --sandbox off:"/opt/shim" go"#);
        assert_eq!(with("agent --sandbox=on"), "agent --sandbox=on");
        assert_eq!(with("agent --sandboxes"), r#"agent --sandbox off:"/opt/shim" --sandboxes"#);
        assert_eq!(with("agent go -s on"), "agent go -s on");
        for (text, expected) in [
            (r#"{ "sandbox": { "enabled": true } }"#, "agent --fix -s on"),
            (r#"{ "sandbox": { "enabled": false } }"#, "agent -s on"),
            (r#"{ "sandbox": true }"#, "agent -s on"),
            ("not JSON", "agent -s on"),
        ] {
            std::fs::write(project.join(".agent/settings.json"), text).unwrap();
            assert_eq!(with("agent -s on"), expected, "{text}");
        }
        std::fs::write(dir.path().join("settings.json"), r#"{ "sandbox": { "enabled": true } }"#).unwrap();
        assert_eq!(with("agent"), r#"agent --sandbox off:"/opt/shim" --fix"#);
    }
}
