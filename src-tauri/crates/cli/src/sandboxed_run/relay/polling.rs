//! Waits until a terminal or a connection is ready.

use super::Relay;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;

/// Interval for checking whether the program can be resumed and whether lines can be printed.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Descriptors that are ready according to `poll`.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) notes: bool,
    pub(super) link: bool,
    pub(super) user_in: bool,
    pub(super) user_out: bool,
    pub(super) program_in: bool,
    pub(super) program_out: bool,
    pub(super) question: bool,
}

/// Descriptor to poll, and the [`Ready`] field for its result.
type Polled<'a> = (PollFd<'a>, fn(&mut Ready) -> &mut bool);

impl Relay {
    /// Waits for the descriptors that can make progress in the current state.
    pub(super) fn wait(&self) -> io::Result<Ready> {
        let state = &self.state;
        let user = self.user.as_ref();
        let reads_user = user.is_some_and(|user| user.is_raw() && user.is_ours());
        let types = self.program.as_ref().is_some_and(|program| !program.input.is_empty()) && !state.is_asked;
        let mut polled: Vec<Polled<'_>> =
            vec![(PollFd::new(&self.signals, PollFlags::IN), |ready| &mut ready.signals)];
        if state.result.is_none() {
            polled.push((PollFd::new(&self.notes, PollFlags::IN), |ready| &mut ready.notes));
        }
        if let Some(link) = &self.link {
            polled.push((PollFd::new(link, PollFlags::IN), |ready| &mut ready.link));
        }
        if let Some(user) = user {
            if reads_user && (!types || state.is_asked) {
                polled.push((PollFd::new(user, PollFlags::IN), |ready| &mut ready.user_in));
            }
            if !state.output.is_empty() {
                polled.push((PollFd::new(user, PollFlags::OUT), |ready| &mut ready.user_out));
            }
        }
        if let Some(program) = &self.program {
            if state.output.is_empty() && state.is_started && !state.is_asked && !state.is_program_closed {
                polled.push((PollFd::new(program, PollFlags::IN), |ready| &mut ready.program_in));
            }
            if types {
                polled.push((PollFd::new(program, PollFlags::OUT), |ready| &mut ready.program_out));
            }
        }
        let reads_question = state.is_started && state.is_asked && state.output.is_empty();
        if let Some(questions) = self.questions.as_ref().filter(|_| reads_question) {
            polled.push((PollFd::new(questions, PollFlags::IN), |ready| &mut ready.question));
        }
        let waits = !self.lines.is_empty()
            || state.stopped.is_some()
            || user.is_some() && self.wants_raw() && !reads_user;
        let (mut descriptors, names): (Vec<_>, Vec<_>) = polled.into_iter().unzip();
        let mut ready = Ready::default();
        match poll(&mut descriptors, waits.then_some(&TICK)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(ready),
            Err(error) => return Err(error.into()),
        }
        for (descriptor, name) in descriptors.iter().zip(names) {
            *name(&mut ready) = !descriptor.revents().is_empty();
        }
        Ok(ready)
    }
}
