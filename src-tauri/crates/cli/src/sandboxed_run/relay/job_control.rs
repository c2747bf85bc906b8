//! Follows the shell's job control: stops and resumes this process and the program together, and forwards signals.

use super::{Relay, ignore_closed};
use crate::sandboxed_run::user_terminal::UserTerminal;
use ironcurtain_sandbox::run_link::RunLink;
use ironcurtain_sandbox::with_unblocked;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use std::io;

impl Relay {
    /// Resumes a stopped program once it may use the terminal.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let Some(signal) = self.state.stopped else { return Ok(()) };
        let is_ours = self.user.as_ref().is_none_or(UserTerminal::is_ours);
        let uses_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if !is_ours && uses_terminal {
            return Ok(());
        }
        self.state.stopped = None;
        if let Some(link) = &self.link {
            link.resume(is_ours && self.state.wants_foreground).or_else(ignore_closed)?;
        }
        Ok(())
    }

    pub(super) fn program_stopped(&mut self, signal: Signal) -> io::Result<()> {
        let is_ours = self.user.as_ref().is_some_and(UserTerminal::is_ours);
        let uses_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if uses_terminal && is_ours && !self.state.wants_foreground {
            self.state.wants_foreground = true;
            self.state.stopped = Some(signal);
            return Ok(());
        }
        let own = if uses_terminal && !is_ours { signal } else { Signal::TSTP };
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
        if let Some(user) = &mut self.user {
            user.write(&mut self.state.output)?;
            user.restore();
        }
        // The kernel does not stop processes in an orphaned process group.
        with_unblocked(own, || Ok(send(own)?))?;
        // The stop has been handled, so further reports of it are discarded.
        while let Some(event) = self.link.as_ref().map(RunLink::event).transpose()?.flatten() {
            self.follow_end(event);
        }
        self.state.stopped = Some(stopped);
        if let Some((program, user)) = self.program.as_mut().zip(self.user.as_ref()) {
            program.follow_size(user)?;
        }
        Ok(())
    }

    pub(super) fn follow_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            match signal {
                Signal::WINCH => {
                    if let Some(user) = &self.user {
                        self.program.iter_mut().try_for_each(|program| program.follow_size(user))?;
                        self.questions.iter().try_for_each(|questions| questions.follow_size(user))?;
                    }
                }
                // Another program may have used the terminal in the meantime.
                Signal::CONT => {
                    if let Some(user) = self.user.as_mut().filter(|user| user.is_raw() && user.is_ours()) {
                        user.make_raw()?;
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
