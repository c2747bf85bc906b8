//! Commands for the first steps. One asks a practice question that has no effect. The other tries to read a private
//! folder, which the sandbox prevents.
//!
//! - The practice question appears in the real dialog, but no call depends on the answer, and nothing is recorded.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use super::preferences::Preferences;
use crate::backend::Trusted;
use crate::consent::AnswerSink;
use ironcurtain_admin::inspect::{Inspection, list_folder};
use ironcurtain_consent::{Answer, Consequence, Lifetime, Offer, Preview, Question, Reach, TextPart, Verb};
use ironcurtain_protocol::ClientView;
use ironcurtain_visible as visible;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;

/// Time limit of the practice question.
const DEADLINE: Duration = Duration::from_secs(60);

/// Time limit for the attempt to read a private folder.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);

/// Private folders that no agent needs, relative to the home directory. The attempt uses the first folder that is not
/// empty. The last one is the home directory itself.
const PRIVATE: [&str; 5] = [".ssh", ".gnupg", ".aws", ".config", ""];

/// Answer to the practice question.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PracticeAnswer {
    Allowed,
    Denied,
    /// The dialog was closed, or the time limit was reached.
    Unanswered,
}

/// Result of the attempt to read a private folder: the number of names in it, and the number that a program without
/// grants can see.
#[derive(Debug, Serialize)]
pub(super) struct PrivateFolderAttempt {
    folder: String,
    /// Number of names in the folder.
    there: usize,
    /// Number of names that the sandboxed program listed.
    seen: usize,
    said: String,
}

pub(super) async fn ask_practice_question(state: &AppState) -> Result<PracticeAnswer, CommandError> {
    let (told, answer) = oneshot::channel();
    state.desktop.ask_with(question(&state.home), Box::new(PracticeSink(told)));
    Ok(answer.await.unwrap_or(PracticeAnswer::Unanswered))
}

pub(super) async fn try_private_folder(state: &AppState) -> Result<PrivateFolderAttempt, CommandError> {
    let Trusted { home, programs, allow_root, runtime, daemon, .. } = trusted(state)?;
    let person = home.user_home.clone();
    let (folder, there) =
        run_blocking(move || private_folder(&person).ok_or("your home folder is empty")).await?;
    let secrets = daemon.secrets();
    let inspection = Inspection { home, programs, allow_root, timeout: ATTEMPT_LIMIT, secrets };
    let looked = folder.clone();
    let looked = runtime.spawn(async move { list_folder(&inspection, &looked, None).await });
    let listing = looked.await.map_err(CommandError::refused)?.map_err(CommandError::refused)?;
    let folder = visible::line(&folder.display().to_string());
    Ok(PrivateFolderAttempt { folder, there, seen: listing.names.len(), said: listing.stderr })
}

/// Records that the user has finished or skipped the first steps, so that they do not open again.
pub(super) async fn finish_first_steps(state: &AppState) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || Preferences { welcomed: true, ..Preferences::load(&home) }.store(&home)).await
}

fn private_folder(home: &Path) -> Option<(PathBuf, usize)> {
    PRIVATE.iter().map(|name| home.join(name)).find_map(|folder| {
        let count = std::fs::read_dir(&folder).ok()?.count();
        (count > 0).then_some((folder, count))
    })
}

fn question(home: &Path) -> Question {
    let file = home.join("practice.txt").display().to_string();
    let exe = std::env::current_exe().ok().map(|exe| exe.display().to_string());
    let nothing = "This is practice: no agent is asking, and your answer has no effect.".to_owned();
    Question {
        id: "practice".into(),
        session: "practice".into(),
        client: ClientView {
            name: "Practice".into(),
            exe,
            chain: Vec::new(),
            cwd: None,
            claimed_name: None,
            label: None,
        },
        server: "practice".into(),
        server_command: String::new(),
        sandboxed: true,
        remote: false,
        tool: Some("write_file".into()),
        consequences: vec![Consequence {
            note: Some("nothing is written".into()),
            ..Consequence::new(Verb::Write, vec![TextPart::Path(file)])
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
        host: None,
    }
}

struct PracticeSink(oneshot::Sender<PracticeAnswer>);

impl AnswerSink for PracticeSink {
    fn answer(self: Box<Self>, answer: Answer) {
        // Ignores the error: the window was closed.
        let _ = self.0.send(match answer {
            Answer::Allow { .. } => PracticeAnswer::Allowed,
            Answer::Deny { .. } => PracticeAnswer::Denied,
            Answer::Unavailable { .. } => PracticeAnswer::Unanswered,
        });
    }

    fn report_activity(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_a_nonempty_private_folder() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(private_folder(home.path()), None);
        std::fs::create_dir_all(home.path().join(".ssh")).unwrap();
        assert_eq!(private_folder(home.path()), Some((home.path().join(""), 1)));
        std::fs::write(home.path().join(".ssh/id"), "key").unwrap();
        assert_eq!(private_folder(home.path()), Some((home.path().join(".ssh"), 1)));
    }
}
