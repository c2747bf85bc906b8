//! Pipe through which bubblewrap reports that its base file system (the frame) is complete.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
};

use crate::enter::GO;

/// Creates a pipe that a single byte fills so that its write end becomes writable when bubblewrap reads that byte.
/// Returns the write end first.
pub(super) fn pipe() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setpipe_size(&write, 1)?;
    let mut write = File::from(write);
    write.write_all(&[GO])?;
    Ok((write, read))
}

/// Returns `true` if bubblewrap has read the byte.
pub(super) fn is_complete(frame: &File) -> io::Result<bool> {
    let mut polled = [PollFd::new(frame, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default()))?;
    let [polled] = polled;
    Ok(polled.revents().contains(PollFlags::OUT))
}
