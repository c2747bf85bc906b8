//! Immediately denies calls whose questions cannot be shown, and gives the reason.
//!
//! - Limits the number of pending questions and their memory per session.

use super::{Preview, Question, binary};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of pending questions per session. A user cannot answer this many before they expire.
const MAX_PER_SESSION: usize = 100;

/// Maximum length of a call's text: 256 KiB.
const MAX_LEN: usize = 256 * 1024;

/// Maximum memory of one question, which repeats the text of its call in several fields: 2 MiB.
const MAX_BYTES: usize = 8 * MAX_LEN;

/// Maximum memory of all pending questions of a session: 32 MiB.
const MAX_SESSION_BYTES: usize = 32 * 1024 * 1024;

/// Number of file descriptors that the dialog needs for fonts, images and the display. With fewer, the dialog can be
/// blank.
const SPARE_DESCRIPTORS: usize = 32;

/// Error for a call with more text than a question may show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this call sends {} kB of text, too long to show; at most {} kB can be shown; send less at a time", .length / 1024, MAX_LEN / 1024
)]
pub struct TooLongToShow {
    /// Length of the call's text as shown, in bytes.
    length: usize,
}

impl TooLongToShow {
    /// Checks the text length of arguments before they are processed. Escape sequences added for display are not
    /// counted.
    ///
    /// # Errors
    /// Returns [`TooLongToShow`] if the text is too long.
    pub fn check(arguments: &Map<String, Value>) -> Result<(), Self> {
        Self::check_length(arguments.iter().map(|(name, value)| name.len() + shown_length(value)).sum())
    }

    fn check_length(length: usize) -> Result<(), Self> {
        if length > MAX_LEN { Err(Self { length }) } else { Ok(()) }
    }
}

/// Returns the length of a value's text as shown. Binary content counts as the length of its description.
fn shown_length(value: &Value) -> usize {
    match value {
        Value::String(text) => binary::described(text).map_or(text.len(), |description| description.len()),
        Value::Array(items) => items.iter().map(shown_length).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + shown_length(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Reason a question cannot be shown, worded for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotShowable {
    /// The text of the call is too long.
    #[error(transparent)]
    TooLongToShow(#[from] TooLongToShow),
    /// The question is too long, although the call's text is not.
    #[error("the question about this call is {length} bytes long, too long to show; ask for less at a time")]
    TooLong {
        /// Length of the question's text, in bytes.
        length: usize,
    },
    /// The change to the tool's definition is too long.
    #[error(
        "the server {server} changed this tool, and the change is {} kB long, too long to show; the tool stays suspended until the user decides with `ironcurtain servers diff {server}`", .length / 1024
    )]
    DefinitionTooLong {
        /// Name of the server.
        server: String,
        /// Length of the question's text, in bytes.
        length: usize,
    },
    /// The session already has the maximum number of pending questions.
    #[error("{MAX_PER_SESSION} questions of this session are pending already; wait for their answers")]
    TooMany,
    /// The session's pending questions already use the maximum memory.
    #[error("the pending questions of this session have too much text already; wait for their answers")]
    TooMuch,
    /// Not enough file descriptors are free for the dialog.
    #[error(
        "IronCurtain has no file descriptors left to show a question; close sessions that are not needed"
    )]
    NoDescriptors,
}

/// Pending questions, by session.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingQuestions(Arc<Mutex<HashMap<String, Waiting>>>);

/// Pending questions of one session.
#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    bytes: usize,
}

/// Guard for a registered pending question. Dropping it removes the registration.
#[derive(Debug)]
pub(super) struct WaitingQuestion {
    all: WaitingQuestions,
    session: String,
    bytes: usize,
}

impl WaitingQuestions {
    /// Registers a pending question for its session.
    ///
    /// # Errors
    /// Returns [`NotShowable`], without registering the question, if the question exceeds a limit or too few file
    /// descriptors are free.
    pub(super) fn register(&self, question: &Question) -> Result<WaitingQuestion, NotShowable> {
        has_descriptors()?;
        TooLongToShow::check_length(sent_length(question))?;
        let bytes = serde_json::to_vec(question).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_BYTES {
            return Err(match &question.preview {
                Some(Preview::Definition(_)) => {
                    NotShowable::DefinitionTooLong { server: question.server.clone(), length: bytes }
                }
                Some(Preview::Content(_) | Preview::Diff(_) | Preview::Prompt(_)) | None => {
                    NotShowable::TooLong { length: bytes }
                }
            });
        }
        let mut waiting = self.lock();
        let of_session = waiting.entry(question.session.clone()).or_default();
        if of_session.count >= MAX_PER_SESSION {
            return Err(NotShowable::TooMany);
        }
        if of_session.bytes + bytes > MAX_SESSION_BYTES {
            return Err(NotShowable::TooMuch);
        }
        of_session.count += 1;
        of_session.bytes += bytes;
        Ok(WaitingQuestion { all: self.clone(), session: question.session.clone(), bytes })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        let mut waiting = self.all.lock();
        if let Some(of_session) = waiting.get_mut(&self.session) {
            of_session.count -= 1;
            of_session.bytes -= self.bytes;
            if of_session.count == 0 {
                waiting.remove(&self.session);
            }
        }
    }
}

/// Returns the length of the text that the call would send, as shown.
fn sent_length(question: &Question) -> usize {
    question.arguments.iter().map(|(name, value)| name.len() + value.len()).sum()
}

fn has_descriptors() -> Result<(), NotShowable> {
    let taken: io::Result<Vec<File>> = (0..SPARE_DESCRIPTORS).map(|_| File::open("/")).collect();
    let is_exhausted = |e: &io::Error| {
        let code = e.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    };
    match taken {
        Err(e) if is_exhausted(&e) => Err(NotShowable::NoDescriptors),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;

    #[test]
    fn pending_questions_are_limited_per_session() {
        let waiting = WaitingQuestions::default();
        let other = Question { session: "other".into(), ..question("q") };
        let mut entered: Vec<WaitingQuestion> =
            (0..MAX_PER_SESSION).map(|_| waiting.register(&question("q")).unwrap()).collect();
        assert!(
            waiting
                .register(&question("q"))
                .unwrap_err()
                .to_string()
                .starts_with("100 questions of this session are pending")
        );
        let of_other = waiting.register(&other).unwrap();
        entered.pop();
        entered.push(waiting.register(&question("q")).unwrap());
        drop(of_other);
        assert_eq!(waiting.lock().len(), 1);
        drop(entered);
        assert!(waiting.lock().is_empty());
    }

    #[test]
    fn a_question_with_too_much_text_is_refused() {
        let of = |length| Question { arguments: vec![("a".into(), "x".repeat(length))], ..question("q") };
        let waiting = WaitingQuestions::default();
        let refused = waiting.register(&of(300 * 1024)).unwrap_err().to_string();
        let expected = "this call sends 300 kB of text, too long to show; at most 256 kB can be shown; send less at a time";
        assert_eq!(refused, expected);
        assert!(waiting.register(&of(MAX_LEN)).is_err(), "with its name");
        waiting.register(&of(MAX_LEN - 1)).unwrap();
        waiting.register(&of(200 * 1024)).unwrap();
    }

    #[test]
    fn a_definition_that_is_too_long_to_show_is_reported_as_such() {
        let of = |preview| Question { server: "notes".into(), preview: Some(preview), ..question("q") };
        let waiting = WaitingQuestions::default();
        let long = "x".repeat(MAX_BYTES);
        let refused = |preview| waiting.register(&of(preview)).unwrap_err().to_string();
        let definition = refused(Preview::Definition(long.clone()));
        assert!(
            definition.contains("2048 kB long, too long to show; the tool stays suspended")
                && definition.ends_with("`ironcurtain servers diff notes`"),
            "{definition}"
        );
        assert!(refused(Preview::Content(long)).starts_with("the question about this call is"));
        waiting.register(&of(Preview::Definition("x".repeat(MAX_LEN)))).unwrap();
    }

    #[test]
    fn too_long_arguments_are_refused_before_processing() {
        let check = |text: String| {
            let arguments = serde_json::json!({ "path": "/a", "nested": [{ "content": text }] });
            TooLongToShow::check(arguments.as_object().unwrap())
        };
        assert_eq!(check("x".repeat(MAX_LEN)), Err(TooLongToShow { length: MAX_LEN + 19 }));
        check("x".repeat(MAX_LEN - 19)).unwrap();
    }

    #[test]
    fn the_text_of_pending_questions_is_limited_per_session() {
        let long = |session: &str| Question {
            session: session.into(),
            arguments: vec![("a".into(), "x".repeat(MAX_LEN - 1))],
            with: vec![("a".into(), "x".repeat(MAX_LEN - 1))],
            ..question("q")
        };
        let waiting = WaitingQuestions::default();
        let mut entered = Vec::new();
        let refused = loop {
            match waiting.register(&long("s")) {
                Ok(question) => entered.push(question),
                Err(refused) => break refused,
            }
        };
        assert_eq!((refused, entered.len()), (NotShowable::TooMuch, 63));
        waiting.register(&long("other")).unwrap();
        entered.pop();
        waiting.register(&long("s")).unwrap();
    }

    #[test]
    fn text_that_is_not_sent_is_limited_too() {
        let of = |length| Question { server_command: "x".repeat(length), ..question("q") };
        let refused = WaitingQuestions::default().register(&of(MAX_BYTES)).unwrap_err().to_string();
        assert!(refused.contains("too long to show"), "{refused}");
        WaitingQuestions::default().register(&of(MAX_LEN)).unwrap();
    }
}
