//! Shows and hides the run's questions on the user's terminal.

use super::Relay;
use crate::sandboxed_run::question_terminal::QuestionTerminal;
use std::io;

impl Relay {
    /// Shows an open question once this process may use the terminal.
    pub(super) fn update_question(&mut self) -> io::Result<()> {
        if !self.state.is_asked || !self.state.is_started {
            return Ok(());
        }
        match self.user.as_ref().is_some_and(|user| user.is_raw() && user.is_ours()) {
            true if self.state.is_question_shown => Ok(()),
            true => self.begin_question(),
            false => {
                self.question_left_screen();
                Ok(())
            }
        }
    }

    /// Makes the question appear again before it can be answered.
    pub(super) fn question_left_screen(&mut self) {
        self.state.is_question_shown = false;
        self.state.was_question_hidden = true;
    }

    fn begin_question(&mut self) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        self.state.is_question_shown = true;
        // Input typed before the question appeared must not answer it.
        user.discard_input();
        let mut screen = self
            .program
            .as_ref()
            .map(|program| program.modes.begin_own_screen())
            .unwrap_or_default()
            .into_bytes();
        if self.state.was_question_hidden {
            screen.extend(self.questions.as_mut().map(QuestionTerminal::draw_again).unwrap_or_default());
        }
        self.write(&screen)
    }

    /// Reads the questions' text, and shows it if a question is on the screen.
    pub(super) fn read_question(&mut self) -> io::Result<()> {
        let Some(questions) = &mut self.questions else { return Ok(()) };
        let Some(text) = questions.read()? else { return Ok(()) };
        if text.is_empty() {
            self.questions = None;
        }
        if self.state.is_question_shown { self.write(&text) } else { Ok(()) }
    }

    /// Returns to the program's screen after all questions have ended.
    pub(super) fn end_question(&mut self) -> io::Result<()> {
        self.state.was_question_hidden = false;
        let mut rest = Vec::new();
        if let Some(questions) = &mut self.questions {
            while let Some(text) = questions.read()?.filter(|text| !text.is_empty()) {
                rest.extend(text);
            }
            questions.forget_text();
        }
        if !std::mem::take(&mut self.state.is_question_shown) {
            return Ok(());
        }
        if let Some(user) = &self.user {
            user.discard_input();
        }
        self.write(&rest)?;
        let Some(program) = &mut self.program else { return Ok(()) };
        let screen = program.modes.end_own_screen();
        if program.modes.is_alternate() {
            program.redraw()?;
        }
        self.write(screen.as_bytes())
    }
}
