//! Commands of the first steps that try the real things: a question that changes nothing, and a look that is refused.
//!
//! - The practice question is shown by the real dialog and reaches nobody: no call waits for it, and nothing is on record.

use super::AppState;
use super::command_error::{CommandError, aside};
use super::grants::trusted;
use super::preferences::Preferences;
use crate::backend::Trusted;
use crate::consent::AnswerSink;
use ironcurtain_admin::inspect::{Inspection, sight};
use ironcurtain_consent::{Answer, Consequence, Lifetime, Offer, Piece, Preview, Question, Reach, Verb};
use ironcurtain_protocol::ClientView;
use ironcurtain_visible as visible;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;

/// The time that the practice question waits.
const DEADLINE: Duration = Duration::from_secs(60);

/// The time that the look may take.
const LOOKING: Duration = Duration::from_secs(20);

/// Folders of a person that no agent needs; the first that has something in it is looked at, else home itself.
const PRIVATE: [&str; 5] = [".ssh", ".gnupg", ".aws", ".config", ""];

/// The answer to the practice question.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Practised {
    Allowed,
    Denied,
    /// It was closed, or nobody answered.
    Unanswered,
}

/// The names of a private folder that a program without any permission saw.
#[derive(Debug, Serialize)]
pub(super) struct RefusedLook {
    folder: String,
    /// The number of names that are there.
    there: usize,
    /// The number that it saw.
    seen: usize,
    said: String,
}

pub(super) async fn practise(state: &AppState) -> Result<Practised, CommandError> {
    let (told, answer) = oneshot::channel();
    state.desktop.ask_with(question(&state.home), Box::new(Told(told)));
    Ok(answer.await.unwrap_or(Practised::Unanswered))
}

pub(super) async fn refused_look(state: &AppState) -> Result<RefusedLook, CommandError> {
    let Trusted { home, programs, allow_root, runtime, daemon, .. } = trusted(state)?;
    let person = home.person.clone();
    let (folder, there) = aside(move || private_folder(&person).ok_or("your home folder is empty")).await?;
    let secrets = daemon.secrets();
    let inspection = Inspection { home, programs, allow_root, patience: LOOKING, secrets };
    let looked = folder.clone();
    let looked = runtime.spawn(async move { sight(&inspection, &looked, None).await });
    let sight = looked.await.map_err(CommandError::refused)?.map_err(CommandError::refused)?;
    let folder = visible::line(&folder.display().to_string());
    Ok(RefusedLook { folder, there, seen: sight.seen.len(), said: sight.complaint })
}

/// The first steps were done, or left: they are not shown by themselves again.
pub(super) async fn welcomed(state: &AppState) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    aside(move || Preferences { welcomed: true, ..Preferences::load(&home) }.store(&home)).await
}

fn private_folder(home: &Path) -> Option<(PathBuf, usize)> {
    PRIVATE.iter().map(|name| home.join(name)).find_map(|folder| {
        let there = std::fs::read_dir(&folder).ok()?.count();
        (there > 0).then_some((folder, there))
    })
}

fn question(home: &Path) -> Question {
    let file = home.join("practice.txt").display().to_string();
    let exe = std::env::current_exe().ok().map(|exe| exe.display().to_string());
    let nothing = "This is practice: no agent asks, and nothing happens, whatever you answer.".to_owned();
    Question {
        id: "practice".into(),
        session: "practice".into(),
        client: ClientView {
            name: "Practice".into(),
            exe,
            chain: Vec::new(),
            cwd: None,
            says_it_is: None,
            label: None,
        },
        server: "practice".into(),
        server_command: String::new(),
        sandboxed: true,
        remote: false,
        tool: Some("write_file".into()),
        consequences: vec![Consequence {
            note: Some("nothing is written".into()),
            ..Consequence::new(Verb::Write, vec![Piece::Path(file)])
        }],
        with: Vec::new(),
        also: vec![nothing.clone()],
        rule: "practice".into(),
        reason: "you wanted to see a question".into(),
        arguments: Vec::new(),
        preview: Some(Preview::Content("Hello\n".into())),
        offers: vec![Offer {
            reach: Reach::Paths,
            label: "this practice".into(),
            sentence: nothing,
            lifetimes: vec![Lifetime::Once],
        }],
        denial: "practice".into(),
        fits_a_batch: false,
        deadline: DEADLINE,
        notice: None,
    }
}

struct Told(oneshot::Sender<Practised>);

impl AnswerSink for Told {
    fn answer(self: Box<Self>, answer: Answer) {
        // A window that was closed meanwhile hears nothing.
        let _ = self.0.send(match answer {
            Answer::Allow { .. } => Practised::Allowed,
            Answer::Deny { .. } => Practised::Denied,
            Answer::Unavailable { .. } => Practised::Unanswered,
        });
    }

    fn working(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_folder_with_something_in_it_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(private_folder(home.path()), None);
        std::fs::create_dir_all(home.path().join(".ssh")).unwrap();
        assert_eq!(private_folder(home.path()), Some((home.path().join(""), 1)));
        std::fs::write(home.path().join(".ssh/id"), "key").unwrap();
        assert_eq!(private_folder(home.path()), Some((home.path().join(".ssh"), 1)));
    }
}
