//! Follows the shell's job control: stops and resumes this process and the program together, and forwards signals.

use super::{Relay, ignore_closed};
use crate::sandboxed_run::user_terminal::UserTerminal;
use ironcurtain_sandbox::run_link::RunLink;
use ironcurtain_sandbox::with_unblocked;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use std::io;

/// Maximum number of reads of the program's output before a stop. Only a program that keeps writing reaches it.
const MAX_READS: usize = 64;

impl Relay {
    /// Resumes a stopped program once it may use the terminal, and moves the program to the foreground of its terminal
    /// when this process group is in the foreground.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let is_ours = user.is_ours();
        let may_resume = match self.state.stopped {
            Some(Signal::TTIN | Signal::TTOU) => is_ours,
            Some(_) => true,
            None => is_ours && self.state.wants_foreground && !self.state.is_foreground,
        };
        if may_resume { self.resume_now() } else { Ok(()) }
    }

    /// Resumes the program, in the foreground of its terminal if it should be there and this process group is.
    fn resume_now(&mut self) -> io::Result<()> {
        let is_ours = self.user.as_ref().is_some_and(UserTerminal::is_ours);
        self.state.stopped = None;
        self.state.is_foreground = is_ours && self.state.wants_foreground;
        self.link.as_ref().map_or(Ok(()), |link| link.resume(self.state.is_foreground).or_else(ignore_closed))
    }

    pub(super) fn program_stopped(&mut self, signal: Signal) -> io::Result<()> {
        let Some(user) = &self.user else {
            // Without a terminal, nothing shows the user that this process was stopped.
            self.state.stopped = Some(signal);
            return Ok(());
        };
        let is_ours = user.is_ours();
        let uses_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if uses_terminal && is_ours {
            self.state.wants_foreground = true;
            self.state.stopped = Some(signal);
            return Ok(());
        }
        let own = if uses_terminal { signal } else { Signal::TSTP };
        self.stop(own, signal, kill_current_process_group)
    }

    /// Stops this process with the signal that stopped the program, to return control to the shell. Returns when the
    /// shell resumes this process.
    fn stop(
        &mut self,
        own: Signal,
        stopped: Signal,
        send: impl FnOnce(Signal) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        self.copy_rest()?;
        if self.state.is_question_shown {
            self.question_left_screen();
            let screen = self.program.as_ref().map(|program| program.modes.end_own_screen());
            self.write(screen.unwrap_or_default().as_bytes())?;
        }
        if let Some(user) = &mut self.user {
            user.write(&mut self.state.output)?;
            user.restore();
        }
        // The kernel does not stop processes in an orphaned process group.
        with_unblocked(own, || Ok(send(own)?))?;
        self.state.was_stopped = true;
        // The stop has been handled, so further reports of it are discarded.
        while let Some(event) = self.link.as_ref().map(RunLink::event).transpose()?.flatten() {
            self.follow_end(event);
        }
        self.state.stopped = Some(stopped);
        self.follow_size()
    }

    /// Copies the output that the program wrote before it was stopped, so that it appears before the shell's prompt.
    fn copy_rest(&mut self) -> io::Result<()> {
        let mut reads = 0;
        while !self.state.is_asked
            && self.state.output.is_empty()
            && reads < MAX_READS
            && self.read_program()?
        {
            reads += 1;
        }
        Ok(())
    }

    pub(super) fn follow_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            match signal {
                Signal::WINCH => self.follow_size()?,
                Signal::CONT => {
                    if self.state.is_question_shown {
                        self.question_left_screen();
                    }
                    // Another program may have used the terminal in the meantime.
                    let raw = self.user.as_mut().filter(|user| user.is_raw() && user.is_ours());
                    let done = raw.map_or(Ok(()), UserTerminal::make_raw);
                    self.on_terminal(done)?;
                    self.follow_size()?;
                    // In the background, a program that reads from its terminal is stopped again.
                    if self.state.stopped.is_some() {
                        self.resume_now()?;
                    }
                }
                Signal::TSTP => {
                    self.pass_on(signal)?;
                    self.stop(signal, signal, |signal| kill_process(getpid(), signal))?;
                }
                signal => self.pass_on(signal)?,
            }
        }
        Ok(())
    }

    fn pass_on(&self, signal: Signal) -> io::Result<()> {
        self.link.as_ref().map_or(Ok(()), |link| link.signal(signal).or_else(ignore_closed))
    }
}
