//! Copies data between the user's and the run's terminal, and follows the shell's job control, until the run exits.
//!
//! - Single-threaded, so a stop signal takes effect only between two copy operations.
//! - If the user's terminal is shared with other programs, as in `ironcurtain run -- PROGRAM | less`, the program
//!   starts as a background job of its own terminal. When the program reads input, the kernel stops it, and the relay
//!   resumes it in the foreground.
//! - Until the program is in the foreground, this process neither changes the modes of the user's terminal nor reads
//!   its input.

mod job_control;
mod polling;
mod questions;

use super::CONNECTION_LOST;
use super::program_terminal::ProgramTerminal;
use super::question_terminal::QuestionTerminal;
use super::run_lines::RunLines;
use super::user_terminal::UserTerminal;
use crate::note_stream::NoteStream;
use ironcurtain_protocol::{RunNote, RunUse, UsedFile};
use ironcurtain_sandbox::Signals;
use ironcurtain_sandbox::run_link::{LinkEvent, RunLink};
use polling::Ready;
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::{self, Write};

/// Maximum number of bytes of output that are copied after the program has exited. More than a pseudoterminal holds, but a
/// limit for a program in the background that keeps writing.
const MAX_REST: usize = 256 * 1024;

/// Terminals and connections between the user and a running program.
pub struct Relay {
    pub link: Option<RunLink>,
    pub notes: NoteStream,
    pub signals: Signals,
    pub user: Option<UserTerminal>,
    pub program: Option<ProgramTerminal>,
    pub questions: Option<QuestionTerminal>,
    pub lines: RunLines,
    pub session: String,
    /// `true` if status lines go to the user's terminal rather than to a redirected standard error.
    pub lines_on_terminal: bool,
    pub state: RelayState,
}

/// Mutable state of a [`Relay`].
#[derive(Default)]
pub struct RelayState {
    /// `true` if the program is, or should be, in the foreground of its terminal.
    wants_foreground: bool,
    /// `true` if the program is in the foreground of its terminal.
    is_foreground: bool,
    is_started: bool,
    /// Signal that stopped the program, or `None` while it is running.
    stopped: Option<Signal>,
    /// `true` if this process was stopped, so that earlier poll results no longer apply.
    was_stopped: bool,
    /// `true` if the program has exited and its terminal may still contain output.
    is_draining: bool,
    /// Number of bytes of output copied after the program has exited.
    drained: usize,
    /// `true` if no process in the sandbox has the program's terminal open.
    is_program_closed: bool,
    /// Output that the user's terminal has not accepted yet.
    output: Vec<u8>,
    /// `true` if a question is open on the run's question terminal.
    is_asked: bool,
    is_question_shown: bool,
    /// `true` if the open question was not on the screen all the time.
    was_question_hidden: bool,
    result: Option<RunResult>,
}

impl RelayState {
    /// Creates the state of a new run. If `foreground` is `true`, the program starts in the terminal's foreground.
    pub fn new(foreground: bool) -> Self {
        Self { wants_foreground: foreground, is_foreground: foreground, ..Self::default() }
    }
}

/// Outcome of a finished run.
struct RunResult {
    status: i32,
    /// Resources that the run used, or `None` if they are unknown.
    used: Option<RunUse>,
    end_reason: Option<String>,
    learned: Vec<UsedFile>,
}

impl Relay {
    /// Copies data until the run exits. Returns the exit status and, if requested, the files that the run used.
    pub fn serve(mut self) -> anyhow::Result<(i32, Vec<UsedFile>)> {
        let served = self.copy();
        if let Some(user) = &mut self.user {
            // Ignores the error: the terminal was closed.
            let _ = user.write_all(&mut self.state.output);
            if let Some(program) = &self.program
                && served.as_ref().map_or(true, |result| result.status >= 128 || result.end_reason.is_some())
            {
                let _ = user.write_all(&mut program.modes.reset().into_bytes());
            }
            user.restore();
        }
        let result = served?;
        self.lines.ended(result.used, result.end_reason.as_deref());
        self.print_lines();
        if let Some(user) = &self.user {
            let _ = user.write_all(&mut self.state.output);
        }
        Ok((result.status, result.learned))
    }

    fn copy(&mut self) -> anyhow::Result<RunResult> {
        loop {
            while let Some(note) = self.notes.next() {
                self.handle_note(note)?;
            }
            self.update_terminal()?;
            if (self.state.is_draining || self.state.result.is_some()) && self.is_drained()? {
                if let Some(result) = self.state.result.take() {
                    return Ok(result);
                }
                self.state.is_draining = false;
                self.link.as_ref().map_or(Ok(()), |link| link.finish().or_else(ignore_closed))?;
            }
            let ready = self.wait()?;
            if ready.notes && !self.notes.read()? && self.state.result.is_none() {
                let end_reason = Some("IronCurtain has exited".to_owned());
                self.state.result = Some(RunResult {
                    status: CONNECTION_LOST.into(),
                    used: None,
                    end_reason,
                    learned: Vec::new(),
                });
                self.state.is_asked = false;
                self.end_question()?;
            }
            if ready.signals {
                self.follow_signals()?;
            }
            if ready.link {
                self.follow_link()?;
            }
            if !std::mem::take(&mut self.state.was_stopped) {
                self.copy_ready(&ready)?;
            }
        }
    }

    fn handle_note(&mut self, note: RunNote) -> io::Result<()> {
        match note {
            RunNote::Started { principal, folder, profile, limitation } => {
                self.state.is_started = true;
                let session = std::mem::take(&mut self.session);
                self.lines.started(session, &principal, folder.as_deref(), &profile);
                limitation.iter().for_each(|limitation| self.lines.limited(limitation));
                // Prints the first lines before the program's output.
                self.print_lines();
            }
            RunNote::Waiting { .. } if self.questions.is_some() => self.state.is_asked = true,
            RunNote::Waiting { path } => self.lines.waiting(&path),
            RunNote::Answered => {
                self.lines.answered();
                self.state.is_asked = false;
                self.end_question()?;
            }
            RunNote::Denied { path, why } => self.lines.denied(&path, why.as_deref()),
            RunNote::Exited { status, used, end_reason, learned } => {
                self.state.is_asked = false;
                self.end_question()?;
                self.state.result = Some(RunResult { status, used: Some(used), end_reason, learned });
            }
        }
        Ok(())
    }

    /// Updates the user's terminal modes, shows or hides a question, and resumes or stops the program as needed.
    fn update_terminal(&mut self) -> io::Result<()> {
        let wants_raw = self.wants_raw();
        if let Some(user) = &mut self.user {
            let is_ours = user.is_ours();
            if is_ours && wants_raw && self.state.is_started && !user.is_raw() {
                let done = user.make_raw();
                self.on_terminal(done)?;
                self.follow_size()?;
            } else if is_ours && !wants_raw {
                user.restore();
            }
        }
        self.update_question()?;
        self.resume()?;
        if !self.lines.is_empty() && self.may_print() {
            self.print_lines();
        }
        Ok(())
    }

    fn wants_raw(&self) -> bool {
        let is_foreground = self.state.wants_foreground && self.program.is_some();
        (is_foreground || self.state.is_asked) && self.state.result.is_none()
    }

    fn copy_ready(&mut self, ready: &Ready) -> io::Result<()> {
        if ready.user_out
            && let Some(user) = &self.user
        {
            user.write(&mut self.state.output)?;
        }
        if ready.user_in {
            self.read_user()?;
        }
        if ready.program_out
            && let Some(program) = &mut self.program
        {
            program.type_input()?;
        }
        if ready.program_in {
            self.read_program()?;
        }
        if ready.question {
            self.read_question()?;
        }
        Ok(())
    }

    fn read_user(&mut self) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let Some(typed) = user.read()? else { return Ok(()) };
        if typed.is_empty() {
            self.close_terminals();
            return Ok(());
        }
        if self.state.is_asked {
            return match &mut self.questions {
                Some(questions) if self.state.is_question_shown => questions.type_input(&typed),
                Some(_) | None => Ok(()),
            };
        }
        let Some(program) = &mut self.program else { return Ok(()) };
        program.input.extend(typed);
        program.type_input()
    }

    /// Copies the available output. Returns `false` if no output is available.
    fn read_program(&mut self) -> io::Result<bool> {
        let Some(program) = &mut self.program else { return Ok(false) };
        let Some(output) = program.read()? else { return Ok(false) };
        if output.is_empty() {
            self.state.is_program_closed = true;
            return Ok(false);
        }
        if self.has_exited() {
            self.state.drained += output.len();
        }
        self.write(&output)?;
        Ok(true)
    }

    fn write(&mut self, output: &[u8]) -> io::Result<()> {
        self.state.output.extend(output);
        match &self.user {
            Some(user) => user.write(&mut self.state.output),
            None => {
                self.state.output.clear();
                Ok(())
            }
        }
    }

    /// Returns `true` if the program has exited.
    fn has_exited(&self) -> bool {
        self.state.is_draining || self.state.result.is_some()
    }

    /// Sets the sizes of the program's and the question's terminal to that of the user's terminal.
    fn follow_size(&mut self) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let program = self.program.iter_mut().try_for_each(|program| program.follow_size(user));
        let done = program
            .and_then(|()| self.questions.iter().try_for_each(|questions| questions.follow_size(user)));
        self.on_terminal(done)
    }

    /// Handles the result of an operation on the user's terminal. If that terminal was closed, continues without it.
    fn on_terminal(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                self.close_terminals();
                Ok(())
            }
            done => done,
        }
    }

    /// Continues without terminals, because the user's terminal was closed. Closing the program's terminal sends SIGHUP to
    /// the program.
    fn close_terminals(&mut self) {
        self.program = None;
        self.questions = None;
        self.user = None;
        self.state.output.clear();
    }

    /// Returns `true` if the program has exited and its output was written.
    fn is_drained(&mut self) -> io::Result<bool> {
        if !self.state.is_started || self.state.is_asked {
            return Ok(self.state.result.is_some());
        }
        while self.state.output.is_empty() && self.state.drained < MAX_REST && self.read_program()? {}
        Ok(self.state.output.is_empty())
    }

    fn follow_link(&mut self) -> io::Result<()> {
        while let Some(event) = self.link.as_ref().map(RunLink::event).transpose()?.flatten() {
            match event {
                LinkEvent::Stopped(signal) => self.program_stopped(signal)?,
                LinkEvent::Exited(_) | LinkEvent::Closed => self.follow_end(event),
            }
        }
        Ok(())
    }

    /// Follows the events about the program's end and ignores all others.
    fn follow_end(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Stopped(_) => {}
            LinkEvent::Exited(_) => self.state.is_draining = true,
            LinkEvent::Closed => self.link = None,
        }
    }

    /// Returns `true` if printing a line would not corrupt the program's screen.
    fn may_print(&self) -> bool {
        let is_free = |program: &ProgramTerminal| !program.modes.is_alternate() && program.reads_lines();
        self.state.is_started
            && !self.state.is_asked
            && (!self.lines_on_terminal || self.program.as_ref().is_none_or(is_free))
    }

    fn print_lines(&mut self) {
        let is_inside_line = self.program.as_ref().is_some_and(|program| program.modes.is_inside_line());
        let end = if self.user.as_ref().is_some_and(UserTerminal::is_raw) { "\r\n" } else { "\n" };
        let mut start = if is_inside_line { end } else { "" };
        let lines: Vec<String> = self.lines.take().collect();
        for line in lines {
            // Ignores the error: the terminal was closed.
            let _ = match &self.user {
                Some(_) if self.lines_on_terminal => self.write(format!("{start}{line}{end}").as_bytes()),
                Some(_) | None => writeln!(io::stderr(), "{line}"),
            };
            start = "";
        }
    }
}

/// Treats errors from a closed connection as success, because the program has exited.
fn ignore_closed(error: io::Error) -> io::Result<()> {
    let closed = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset, io::ErrorKind::NotConnected];
    if closed.contains(&error.kind()) { Ok(()) } else { Err(error) }
}
