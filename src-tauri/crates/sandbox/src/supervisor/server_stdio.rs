//! Takes over the server's standard streams.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags, open},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout},
};

/// Takes the server's standard streams from this process and replaces them with `/dev/null`.
pub(super) fn take_streams() -> io::Result<[OwnedFd; 3]> {
    let streams = [dup_above(stdin())?, dup_above(stdout())?, dup_above(stderr())?];
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(streams)
}

fn dup_above(stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(stream, 3)?)
}
