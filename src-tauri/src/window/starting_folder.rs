//! The starting folder, in which all agents can work without asking. It is a policy rule that precedes all other rules
//! that ask or allow, and can be removed on the Rules page.
//!
//! - INVARIANT: the folder comes from a system picker in this process. The home directory and its ancestors are
//!   refused.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::file_picker::Picked;
use super::grants::trusted;
use ironcurtain_admin::rules::{RulesError, current_rules, write_rules};
use ironcurtain_config::home::Home;
use ironcurtain_visible as visible;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the policy rule.
const RULE: &str = "starting-folder";

/// Reason the starting folder cannot be set.
#[derive(Debug, thiserror::Error)]
enum StartingFolderError {
    #[error("failed to resolve `{0}`: {1}")]
    Path(PathBuf, io::Error),
    #[error("`{0}` contains your whole home folder; pick a folder in it")]
    TooMuch(PathBuf),
    #[error("your rules are missing the `rules` list; fix them on the Rules page")]
    Shape,
    #[error(transparent)]
    Rules(#[from] RulesError),
}

pub(super) async fn starting_folder(state: &AppState, write: bool) -> Result<Option<String>, CommandError> {
    let home = trusted(state)?.home;
    let title = "Pick a folder that agents may work in";
    let folder = state.pickers.pick(title, Picked::Folder, &state.home).await;
    let Some(folder) = folder else { return Ok(None) };
    run_blocking(move || open_folder(&home, &folder, write)).await.map(Some)
}

fn open_folder(home: &Home, folder: &Path, write: bool) -> Result<String, StartingFolderError> {
    let resolved = |path: &Path| {
        path.canonicalize().map_err(|problem| StartingFolderError::Path(path.to_path_buf(), problem))
    };
    let (folder, person) = (resolved(folder)?, resolved(&home.user_home)?);
    if person.starts_with(&folder) {
        return Err(StartingFolderError::TooMuch(folder));
    }
    let before = current_rules(home)?.snapshot.policy_text().to_owned();
    let mut policy: Value = serde_json::from_str(&before).unwrap_or_default();
    let rules = policy.get_mut("rules").and_then(Value::as_array_mut).ok_or(StartingFolderError::Shape)?;
    rules.retain(|rule| rule.get("name").and_then(Value::as_str) != Some(RULE));
    let (verb, roles) = if write {
        ("reading and writing", json!(["read-path", "write-path"]))
    } else {
        ("reading", json!(["read-path"]))
    };
    // Deny rules at the start of the list stay before the new rule.
    let denies = |rule: &&Value| rule.get("then").and_then(Value::as_str) == Some("deny");
    let index = rules.iter().take_while(denies).count();
    rules.insert(
        index,
        json!({
            "name": RULE,
            "description": format!("Allows {verb} in your starting folder."),
            "if": { "server": ["filesystem"], "paths": { "roles": roles, "within": folder } },
            "then": "allow",
            "reason": "You picked it as a starting folder.",
        }),
    );
    let text = serde_json::to_string_pretty(&policy).unwrap_or_default() + "\n";
    write_rules(home, &text, &before)?;
    Ok(visible::path(&folder.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_a_picked_folder_with_one_rule_and_refuses_home() {
        let dir = tempfile::tempdir().unwrap();
        let person = dir.path().join("ada");
        let (notes, code) = (person.join("notes"), person.join("code"));
        for folder in [&notes, &code] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let home = Home::under(&dir.path().join("ours"), &person);
        home.prepare().unwrap();
        for too_much in [person.as_path(), dir.path(), Path::new("/")] {
            let refused = open_folder(&home, too_much, false);
            assert!(matches!(refused, Err(StartingFolderError::TooMuch(_))), "{refused:?}");
        }
        let rules = || {
            let trial = current_rules(&home).unwrap();
            let text: Value = serde_json::from_str(trial.snapshot.policy_text()).unwrap();
            text["rules"].as_array().unwrap().clone()
        };
        let shipped = rules().len();
        open_folder(&home, &notes, false).unwrap();
        open_folder(&home, &code, true).unwrap();
        let all = rules();
        assert_eq!(all.len(), shipped + 1, "one takes the place of the other");
        let within = json!({ "roles": ["read-path", "write-path"], "within": code.canonicalize().unwrap() });
        assert_eq!(all[0]["if"]["paths"], within);
        let denied = json!({ "rules": [
            { "name": "never", "description": "d", "if": {}, "then": "deny", "reason": "r" },
            { "name": "ask", "description": "d", "if": {}, "then": "escalate", "reason": "r" },
        ] });
        let before = current_rules(&home).unwrap().snapshot.policy_text().to_owned();
        write_rules(&home, &denied.to_string(), &before).unwrap();
        open_folder(&home, &notes, false).unwrap();
        let names: Vec<Value> = rules().iter().map(|rule| rule["name"].clone()).collect();
        assert_eq!(names, ["never", RULE, "ask"]);
    }
}
