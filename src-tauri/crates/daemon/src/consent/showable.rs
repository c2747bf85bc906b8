//! A question that cannot be shown is denied at once, with the reason, before anybody waits for it.
//!
//! - What waits costs bounded memory: so many questions of a session, each so long.

use super::Question;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

/// The number of questions of one session that wait at a time. Nobody answers more of them before the last is over.
const MOST_OF_A_SESSION: usize = 100;

/// The longest question, in bytes of its text.
const LONGEST: usize = 512 * 1024;

/// The descriptors that a dialog takes (fonts, pictures, the display). With fewer it may be shown without its text.
const SPARE: usize = 32;

/// The questions that wait, by session.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<HashMap<String, usize>>);

impl Open {
    /// Takes one more of a session, unless it has too many or it cannot be shown. The error is for the agent.
    pub(super) fn enter(&self, question: &Question) -> Result<(), String> {
        has_descriptors()?;
        let length = serde_json::to_vec(question).map_or(usize::MAX, |text| text.len());
        if length > LONGEST {
            return Err(format!(
                "the question about this call has {length} bytes, which nobody can read; ask for less at a time"
            ));
        }
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = open.entry(question.session.clone()).or_default();
        if *of_session >= MOST_OF_A_SESSION {
            return Err(format!(
                "{MOST_OF_A_SESSION} questions of this session wait for the user already; wait for their answers"
            ));
        }
        *of_session += 1;
        Ok(())
    }

    /// Gives one back.
    pub(super) fn leave(&self, session: &str) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                open.remove(session);
            }
        }
    }
}

fn has_descriptors() -> Result<(), String> {
    let taken: io::Result<Vec<File>> = (0..SPARE).map(|_| File::open("/")).collect();
    let none_left = |e: &io::Error| {
        let code = e.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    };
    match taken {
        Err(e) if none_left(&e) => Err("IronCurtain has no file descriptors left to show a question with; \
            end sessions that are not needed"
            .to_owned()),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::*;

    #[test]
    fn a_session_has_so_many_questions_and_another_has_its_own() {
        let open = Open::default();
        let other = Question { session: "other".into(), ..question("q") };
        for _ in 0..MOST_OF_A_SESSION {
            open.enter(&question("q")).unwrap();
        }
        assert!(open.enter(&question("q")).unwrap_err().starts_with("100 questions of this session wait"));
        open.enter(&other).unwrap();
        open.leave("s");
        open.enter(&question("q")).unwrap();
        open.leave("other");
        assert_eq!(open.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_question_that_nobody_can_read_is_not_asked() {
        let of = |length| Question { server_command: "x".repeat(length), ..question("q") };
        assert!(Open::default().enter(&of(LONGEST)).unwrap_err().contains("which nobody can read"));
        Open::default().enter(&of(LONGEST / 2)).unwrap();
    }
}
