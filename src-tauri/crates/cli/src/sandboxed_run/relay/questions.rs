//! Shows and hides the run's questions on the user's terminal.

use super::Relay;
use crate::sandboxed_run::question_terminal::QuestionTerminal;
use std::io;

impl Relay {
    /// Shows an open question if this process may use the terminal, and hides it otherwise.
    pub(super) fn update_question(&mut self) -> io::Result<()> {
        if !self.state.is_asked || !self.state.is_started {
            return Ok(());
        }
        if !self.user.as_ref().is_some_and(|user| user.is_raw() && user.is_ours()) {
            return self.hide_question();
        }
        if !self.state.is_question_shown {
            self.begin_question()?;
        }
        let Some((user, questions)) = self.user.as_ref().zip(self.questions.as_mut()) else { return Ok(()) };
        let done = questions.show(user);
        self.on_terminal(done)
    }

    fn begin_question(&mut self) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        self.state.is_question_shown = true;
        // Input typed before the question appeared must not answer it.
        user.discard_input();
        let screen =
            self.program.as_ref().map(|program| program.modes.begin_own_screen()).unwrap_or_default();
        self.write(screen.as_bytes())
    }

    /// Prevents input from answering a question that is not on the screen.
    pub(super) fn hide_question(&mut self) -> io::Result<()> {
        let Some((user, questions)) = self.user.as_ref().zip(self.questions.as_mut()) else { return Ok(()) };
        // Text of the drawing that was on the screen does not belong on the next one.
        while questions.read()?.is_some_and(|text| !text.is_empty()) {}
        let done = questions.hide(user);
        self.on_terminal(done)
    }

    pub(super) fn end_question(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.state.is_question_shown) {
            return Ok(());
        }
        if let Some(user) = &self.user {
            user.discard_input();
        }
        while let Some(text) = self.questions.as_mut().map(QuestionTerminal::read).transpose()?.flatten() {
            if text.is_empty() {
                break;
            }
            self.write(&text)?;
        }
        let Some(program) = &mut self.program else { return Ok(()) };
        let screen = program.modes.end_own_screen();
        if program.modes.is_alternate() {
            program.redraw()?;
        }
        self.write(screen.as_bytes())
    }
}
