//! A question that cannot be shown is denied at once, with the reason, before anybody waits for it.
//!
//! - What waits costs bounded memory: so many questions of a session, each so long.

use super::Question;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of questions of one session that wait at a time. Nobody answers more of them before the last is over.
const MOST_OF_A_SESSION: usize = 100;

/// The longest question, in bytes of its text.
const LONGEST: usize = 512 * 1024;

/// The longest arguments of a tool that nobody has annotated, in bytes. All of them stand before the answers.
const LONGEST_WHOLE: usize = 8 * 1024;

/// The descriptors that a dialog takes (fonts, pictures, the display). With fewer it may be shown without its text.
const SPARE: usize = 32;

/// Why a question cannot be shown, for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotShowable {
    /// Nobody reads that much.
    #[error("the question about this call has {length} bytes, which nobody can read; ask for less at a time")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Nobody knows which part of it matters, so none may be left out.
    #[error(
        "nobody has said what the tool `{tool}` does, and its arguments have {length} bytes, more than the {LONGEST_WHOLE} \
        that a question about such a tool shows; ask the user to annotate it: `ironcurtain servers annotate {server}`"
    )]
    TooLongToSayWhole {
        /// The tool.
        tool: String,
        /// Its server.
        server: String,
        /// Their length in bytes.
        length: usize,
    },
    /// Its session has too many that wait.
    #[error(
        "{MOST_OF_A_SESSION} questions of this session wait for the user already; wait for their answers"
    )]
    TooMany,
    /// A dialog would be shown without its text.
    #[error(
        "IronCurtain has no file descriptors left to show a question with; end sessions that are not needed"
    )]
    NoDescriptors,
}

/// The questions that wait, by session.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingQuestions(Arc<Mutex<HashMap<String, usize>>>);

/// One question that waits. Dropped, it waits no more.
#[derive(Debug)]
pub(super) struct WaitingQuestion {
    all: WaitingQuestions,
    session: String,
}

impl WaitingQuestions {
    /// Takes one more of a session.
    ///
    /// # Errors
    /// [`NotShowable`]: nothing is taken.
    pub(super) fn enter(&self, question: &Question) -> Result<WaitingQuestion, NotShowable> {
        has_descriptors()?;
        let length = serde_json::to_vec(question).map_or(usize::MAX, |text| text.len());
        if length > LONGEST {
            return Err(NotShowable::TooLong { length });
        }
        let length = question.with.iter().map(|(name, value)| name.len() + value.len()).sum();
        if question.says_it_whole() && length > LONGEST_WHOLE {
            let (tool, server) = (question.tool.clone().unwrap_or_default(), question.server.clone());
            return Err(NotShowable::TooLongToSayWhole { tool, server, length });
        }
        let mut waiting = self.lock();
        let of_session = waiting.entry(question.session.clone()).or_default();
        if *of_session >= MOST_OF_A_SESSION {
            return Err(NotShowable::TooMany);
        }
        *of_session += 1;
        Ok(WaitingQuestion { all: self.clone(), session: question.session.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        let mut waiting = self.all.lock();
        if let Some(count) = waiting.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.session);
            }
        }
    }
}

fn has_descriptors() -> Result<(), NotShowable> {
    let taken: io::Result<Vec<File>> = (0..SPARE).map(|_| File::open("/")).collect();
    let none_left = |e: &io::Error| {
        let code = e.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    };
    match taken {
        Err(e) if none_left(&e) => Err(NotShowable::NoDescriptors),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::super::{Consequence, Verb};
    use super::*;

    #[test]
    fn a_session_has_so_many_questions_and_another_has_its_own() {
        let waiting = WaitingQuestions::default();
        let other = Question { session: "other".into(), ..question("q") };
        let mut entered: Vec<WaitingQuestion> =
            (0..MOST_OF_A_SESSION).map(|_| waiting.enter(&question("q")).unwrap()).collect();
        assert!(
            waiting
                .enter(&question("q"))
                .unwrap_err()
                .to_string()
                .starts_with("100 questions of this session wait")
        );
        let of_other = waiting.enter(&other).unwrap();
        entered.pop();
        entered.push(waiting.enter(&question("q")).unwrap());
        drop(of_other);
        assert_eq!(waiting.lock().len(), 1);
        drop(entered);
        assert!(waiting.lock().is_empty());
    }

    #[test]
    fn arguments_of_which_nobody_knows_what_they_mean_are_shown_whole_or_not_asked_about() {
        let of = |verb, length| Question {
            consequences: vec![Consequence { verb, ..question("q").consequences[0].clone() }],
            with: vec![("a".into(), "x".repeat(length))],
            ..question("q")
        };
        let waiting = WaitingQuestions::default();
        let refused = waiting.enter(&of(Verb::Call, LONGEST_WHOLE)).unwrap_err().to_string();
        assert!(refused.contains("its arguments have 8193 bytes, more than the 8192"), "{refused}");
        waiting.enter(&of(Verb::Call, LONGEST_WHOLE - 1)).unwrap();
        waiting.enter(&of(Verb::Use, LONGEST_WHOLE)).unwrap();
    }

    #[test]
    fn a_question_that_nobody_can_read_is_not_asked() {
        let of = |length| Question { server_command: "x".repeat(length), ..question("q") };
        assert!(
            WaitingQuestions::default()
                .enter(&of(LONGEST))
                .unwrap_err()
                .to_string()
                .contains("which nobody can read")
        );
        WaitingQuestions::default().enter(&of(LONGEST / 2)).unwrap();
    }
}
