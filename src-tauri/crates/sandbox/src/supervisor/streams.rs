//! Gives the command pipes in place of standard streams that are files and copies the data.
//!
//! - INVARIANT: files and folders are never passed to the command. The command could reopen a file through `/proc`,
//!   even for writing, and open everything below a folder. Pipes, sockets and character devices such as terminals are
//!   passed on unchanged.
//! - INVARIANT: each stream buffers at most 64 KiB.
//! - Output streams that share a file share a pipe, which preserves the order of writes.

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

/// Size of a buffer in bytes, equal to the capacity of a pipe.
const MAX_BYTES: usize = 64 * 1024;

/// Names of the standard streams, by descriptor number.
const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// Failure to set up a command's standard streams.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    #[error(
        "{0} is a folder, which would give the command access to everything in it; connect it to a file or a pipe"
    )]
    Folder(&'static str),
    #[error("{0} is not open for reading or writing; connect it to a file or a pipe")]
    NotOpen(&'static str),
    #[error("failed to prepare the standard streams: {0}")]
    Prepare(#[from] io::Error),
}

/// Standard streams that this process copies while the command runs.
#[derive(Debug, Default)]
pub(super) struct Streams {
    input: Option<InputCopy>,
    outputs: Vec<OutputCopy>,
    /// Streams that lost data because writing to their file failed.
    lost: Vec<(&'static str, io::Error)>,
}

/// Copies a file to the command's standard input.
#[derive(Debug)]
struct InputCopy {
    file: File,
    pipe: File,
    read: Vec<u8>,
    written: usize,
}

/// Copies an output stream of the command to a file.
#[derive(Debug)]
struct OutputCopy {
    name: &'static str,
    pipe: File,
    file: File,
}

/// Result of one copying step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyProgress {
    /// More data may be available.
    More,
    /// No data or no buffer space is available.
    WouldBlock,
    /// EOF was reached, or the reader has closed the stream.
    Done,
}

/// Handling of a standard stream.
enum StreamHandling {
    Inherit,
    Copy,
}

impl Streams {
    /// Replaces each standard stream of this process that is a file with a pipe.
    pub(super) fn take() -> Result<Self, StreamError> {
        let [name_in, name_out, name_err] = NAMES;
        let kinds =
            [handling(stdin(), name_in)?, handling(stdout(), name_out)?, handling(stderr(), name_err)?];
        let mut streams = Self::default();
        let [copies_in, copies_out, copies_err] = kinds.map(|kind| matches!(kind, StreamHandling::Copy));
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

    /// Returns the descriptors that become ready when data can be copied.
    pub(super) fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        let input = self.input.iter().map(|input| PollFd::new(&input.pipe, PollFlags::OUT));
        input.chain(self.outputs.iter().map(|output| PollFd::new(&output.pipe, PollFlags::IN)))
    }

    /// Copies available data without blocking. Fails if reading the command's input fails.
    pub(super) fn copy(&mut self) -> io::Result<()> {
        if let Some(input) = &mut self.input
            && input.copy()? == CopyProgress::Done
        {
            self.input = None;
        }
        self.copy_out(|progress| progress != CopyProgress::Done);
        Ok(())
    }

    /// Copies the remaining data after the whole command has exited. Returns the streams that lost data.
    pub(super) fn finish(mut self) -> Vec<(&'static str, io::Error)> {
        // All writers have exited, so each pipe reaches EOF.
        while !self.outputs.is_empty() {
            self.copy_out(|progress| progress == CopyProgress::More);
        }
        self.lost
    }

    /// Copies once from each output and drops the outputs for which `is_kept` returns `false`.
    fn copy_out(&mut self, is_kept: impl Fn(CopyProgress) -> bool) {
        let lost = &mut self.lost;
        self.outputs.retain_mut(|output| match output.copy() {
            Ok(progress) => is_kept(progress),
            // Closing the pipe makes the command's writes fail, as they would if the command wrote to the file itself.
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
            self.read.resize(MAX_BYTES, 0);
            self.written = 0;
            let count = self.file.read(&mut self.read)?;
            self.read.truncate(count);
            if count == 0 {
                return Ok(CopyProgress::Done);
            }
        }
        match self.pipe.write(self.read.get(self.written..).unwrap_or_default()) {
            Ok(count) => {
                self.written += count;
                Ok(CopyProgress::More)
            }
            Err(error) if would_block(&error) => Ok(CopyProgress::WouldBlock),
            // The command has closed its input.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(CopyProgress::Done),
            Err(error) => Err(error),
        }
    }
}

impl OutputCopy {
    fn copy(&mut self) -> io::Result<CopyProgress> {
        let mut buffer = vec![0; MAX_BYTES];
        match self.pipe.read(&mut buffer) {
            Ok(0) => Ok(CopyProgress::Done),
            Ok(count) => {
                self.file.write_all(buffer.get(..count).unwrap_or_default()).map(|()| CopyProgress::More)
            }
            Err(error) if would_block(&error) => Ok(CopyProgress::WouldBlock),
            Err(error) => Err(error),
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn handling(stream: BorrowedFd<'_>, name: &'static str) -> Result<StreamHandling, StreamError> {
    let stat = fstat(stream).map_err(io::Error::from)?;
    if fcntl_getfl(stream).map_err(io::Error::from)?.contains(OFlags::PATH) {
        return Err(StreamError::NotOpen(name));
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Err(StreamError::Folder(name)),
        FileType::Symlink => Err(StreamError::NotOpen(name)),
        FileType::RegularFile | FileType::BlockDevice => Ok(StreamHandling::Copy),
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::Unknown => {
            Ok(StreamHandling::Inherit)
        }
    }
}

/// Returns `true` if both descriptors refer to the same file with the same open flags.
fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<bool> {
    let stat = |stream| -> io::Result<_> {
        let stat = fstat(stream)?;
        Ok((stat.st_dev, stat.st_ino, fcntl_getfl(stream)?))
    };
    Ok(stat(one)? == stat(other)?)
}

fn file(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(fcntl_dupfd_cloexec(stream, 3)?.into())
}

/// Creates an input pipe. Returns the command's read end and our non-blocking write end.
fn pipe() -> io::Result<(OwnedFd, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&write)?;
    Ok((read, write.into()))
}

/// Creates an output pipe. Returns our non-blocking read end and the command's write end.
fn pipe_out() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&read)?;
    Ok((read.into(), write))
}

/// Makes our end of a pipe non-blocking, without affecting the other end.
fn set_nonblocking(end: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&end)?;
    Ok(fcntl_setfl(&end, flags | OFlags::NONBLOCK)?)
}
