//! A command's standard streams, where they are files: the command gets pipes, and what goes through them is copied here.
//!
//! - INVARIANT: a file is never handed on, since whoever has it open can open it again through `/proc`, and then for writing
//!   too; nor is a folder, by which everything below it could be opened. Pipes, sockets, terminals and other character
//!   devices are handed on as they are.
//! - INVARIANT: at most one buffer of each stream is held.
//! - Streams that share a file share a pipe, so that what is written to it keeps its order.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags},
    fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat},
    io::fcntl_dupfd_cloexec,
    pipe::{PipeFlags, pipe_with},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout},
};

/// The number of bytes copied at once: what a pipe takes.
const MOST: usize = 64 * 1024;

/// The names of the streams, by number.
const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// The reasons why a command is not given its streams.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error("{0} is a folder, which the command could open further: give it a file or a pipe")]
    Folder(&'static str),
    #[error("{0} is a place and not open: give it a file or a pipe")]
    NotOpen(&'static str),
    #[error("the streams could not be prepared: {0}")]
    Prepare(#[from] io::Error),
}

/// The streams that are copied while the command runs.
#[derive(Debug, Default)]
pub(super) struct Streams {
    input: Option<InputCopy>,
    outputs: Vec<OutputCopy>,
    /// The streams that could not be written.
    lost: Vec<(&'static str, io::Error)>,
}

/// From a file to the command.
#[derive(Debug)]
struct InputCopy {
    file: File,
    pipe: File,
    read: Vec<u8>,
    written: usize,
}

/// From the command to a file.
#[derive(Debug)]
struct OutputCopy {
    name: &'static str,
    pipe: File,
    file: File,
}

/// The progress of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyProgress {
    /// There may be more at once.
    Further,
    /// Nothing can be copied now.
    NotNow,
    /// To the end.
    Home,
}

/// The treatment of one stream.
enum Passing {
    HandOn,
    Copy,
}

impl Streams {
    /// Puts pipes in the place of this process's standard streams that are files.
    pub(super) fn take() -> Result<Self, StreamError> {
        let [name_in, name_out, name_err] = NAMES;
        let kinds = [kind(stdin(), name_in)?, kind(stdout(), name_out)?, kind(stderr(), name_err)?];
        let mut streams = Self::default();
        let [copies_in, copies_out, copies_err] = kinds.map(|kind| matches!(kind, Passing::Copy));
        if copies_in {
            let (theirs, ours) = pipe()?;
            let file = file(stdin())?;
            dup2_stdin(theirs).map_err(io::Error::from)?;
            streams.input = Some(InputCopy { file, pipe: ours, read: Vec::new(), written: 0 });
        }
        let shared = copies_out && copies_err && is_same(stdout(), stderr())?;
        if copies_out {
            let (ours, theirs) = pipe_out()?;
            streams.outputs.push(OutputCopy { name: name_out, pipe: ours, file: file(stdout())? });
            dup2_stdout(&theirs).map_err(io::Error::from)?;
            if shared {
                dup2_stderr(&theirs).map_err(io::Error::from)?;
            }
        }
        if copies_err && !shared {
            let (ours, theirs) = pipe_out()?;
            streams.outputs.push(OutputCopy { name: name_err, pipe: ours, file: file(stderr())? });
            dup2_stderr(theirs).map_err(io::Error::from)?;
        }
        Ok(streams)
    }

    /// The descriptors to wait for, so that there is something to copy.
    pub(super) fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        let input = self.input.iter().map(|input| PollFd::new(&input.pipe, PollFlags::OUT));
        input.chain(self.outputs.iter().map(|output| PollFd::new(&output.pipe, PollFlags::IN)))
    }

    /// Copies what can be copied now; the error is that of reading the command's input.
    pub(super) fn copy(&mut self) -> io::Result<()> {
        if let Some(input) = &mut self.input
            && input.copy()? == CopyProgress::Home
        {
            self.input = None;
        }
        self.copy_out(|came| came != CopyProgress::Home);
        Ok(())
    }

    /// Copies the rest, after the command and all it started have ended; tells what of it is lost.
    pub(super) fn finish(mut self) -> Vec<(&'static str, io::Error)> {
        // Nobody writes to the other ends any more.
        while !self.outputs.is_empty() {
            self.copy_out(|came| came == CopyProgress::Further);
        }
        self.lost
    }

    /// One step for each output; those stay that are to go on.
    fn copy_out(&mut self, goes_on: impl Fn(CopyProgress) -> bool) {
        let lost = &mut self.lost;
        self.outputs.retain_mut(|output| match output.copy() {
            Ok(came) => goes_on(came),
            // One that cannot be written is read no more, so that the command is told by a broken pipe.
            Err(error) => {
                lost.push((output.name, error));
                false
            }
        });
    }
}

impl InputCopy {
    fn copy(&mut self) -> io::Result<CopyProgress> {
        if self.written == self.read.len() {
            self.read.resize(MOST, 0);
            self.written = 0;
            let count = self.file.read(&mut self.read)?;
            self.read.truncate(count);
            if count == 0 {
                return Ok(CopyProgress::Home);
            }
        }
        match self.pipe.write(self.read.get(self.written..).unwrap_or_default()) {
            Ok(count) => {
                self.written += count;
                Ok(CopyProgress::Further)
            }
            Err(error) if is_not_now(&error) => Ok(CopyProgress::NotNow),
            // The command takes no more.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(CopyProgress::Home),
            Err(error) => Err(error),
        }
    }
}

impl OutputCopy {
    fn copy(&mut self) -> io::Result<CopyProgress> {
        let mut said = vec![0; MOST];
        match self.pipe.read(&mut said) {
            Ok(0) => Ok(CopyProgress::Home),
            Ok(count) => {
                self.file.write_all(said.get(..count).unwrap_or_default()).map(|()| CopyProgress::Further)
            }
            Err(error) if is_not_now(&error) => Ok(CopyProgress::NotNow),
            Err(error) => Err(error),
        }
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn kind(stream: BorrowedFd<'_>, name: &'static str) -> Result<Passing, StreamError> {
    let about = fstat(stream).map_err(io::Error::from)?;
    if fcntl_getfl(stream).map_err(io::Error::from)?.contains(OFlags::PATH) {
        return Err(StreamError::NotOpen(name));
    }
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => Err(StreamError::Folder(name)),
        FileType::Symlink => Err(StreamError::NotOpen(name)),
        FileType::RegularFile | FileType::BlockDevice => Ok(Passing::Copy),
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::Unknown => {
            Ok(Passing::HandOn)
        }
    }
}

/// True when both write to the same place.
fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<bool> {
    let about = |stream| -> io::Result<_> {
        let about = fstat(stream)?;
        Ok((about.st_dev, about.st_ino, fcntl_getfl(stream)?))
    };
    Ok(about(one)? == about(other)?)
}

fn file(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(fcntl_dupfd_cloexec(stream, 3)?.into())
}

/// A pipe: the end that the command reads, and the one that we write to without waiting.
fn pipe() -> io::Result<(OwnedFd, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    without_waiting(&write)?;
    Ok((read, write.into()))
}

/// A pipe: the end that we read from without waiting, and the one that the command writes to.
fn pipe_out() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    without_waiting(&read)?;
    Ok((read.into(), write))
}

/// Our end alone: each end of a pipe has flags of its own.
fn without_waiting(end: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&end)?;
    Ok(fcntl_setfl(&end, flags | OFlags::NONBLOCK)?)
}
