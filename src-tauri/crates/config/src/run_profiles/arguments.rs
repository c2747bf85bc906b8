//! Adds a profile's arguments to a run's command.

use super::profile::expanded;
use super::{AddedArguments, SettingCondition};
use ironcurtain_paths::{CanonicalPath, bounded_read};
use serde_json::Value;
use std::path::Path;

/// Returns the command with the profile's arguments inserted after the program name.
pub(super) fn with_added(
    argv: &[String],
    added: &[AddedArguments],
    home: &CanonicalPath,
    cwd: &Path,
) -> Vec<String> {
    let Some((program, given)) = argv.split_first() else { return Vec::new() };
    let is_wanted = |added: &&AddedArguments| {
        !given.iter().any(|argument| added.unless.contains(argument))
            && added.when.as_ref().is_none_or(|condition| is_on(condition, home, cwd))
    };
    let added = added.iter().filter(is_wanted).flat_map(|added| &added.add);
    std::iter::once(program).chain(added).chain(given).cloned().collect()
}

/// Returns `true` if one of the files sets the key to `true`. Skips unreadable files.
fn is_on(condition: &SettingCondition, home: &CanonicalPath, cwd: &Path) -> bool {
    let pointer = format!("/{}", condition.key.replace('.', "/"));
    condition.files.iter().any(|file| {
        let text = bounded_read::text(&cwd.join(expanded(file, home))).ok().flatten();
        let settings = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        settings.is_some_and(|settings| settings.pointer(&pointer) == Some(&Value::Bool(true)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
                add: words("--sandbox off"),
                when: None,
                unless: words("-s --sandbox"),
                why: "w".into(),
            },
            AddedArguments { add: words("--fix"), when: Some(condition), unless: vec![], why: "w".into() },
        ];
        let with = |argv: &str| with_added(&words(argv), &added, &home, &project).join(" ");
        assert_eq!(with("agent go"), "agent --sandbox off go");
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
        assert_eq!(with("agent"), "agent --sandbox off --fix");
    }
}
