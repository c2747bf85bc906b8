//! Supervisor's end of the link to the watcher for pipes and sockets.

use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{SpecialFileEvent, SpecialRequest, folders::is_socket};
use crate::{spec::UnixSockets, sys::process::Forked};

/// Timeout for watching one folder. It is long, because the watcher also serves other sandboxes.
const TIMEOUT: Duration = Duration::from_secs(9);

/// Supervisor's end of the link.
#[derive(Debug)]
pub(crate) struct SpecialFileLink {
    stream: UnixStream,
    read: Vec<u8>,
    /// `false` if the sandbox is allowed to use every socket that it can see.
    masks_sockets: bool,
    /// Paths received since the last call to [`appeared`](Self::appeared).
    appeared: Vec<String>,
    /// Folders that are searched in the background. They stay visible even if they cannot be watched.
    background: BTreeSet<String>,
    /// Watcher that this process forked, if any. Dropping it terminates the watcher.
    _own: Option<Forked>,
}

/// Reason a folder is not watched.
#[derive(Debug)]
pub(crate) enum WatchFolderError {
    /// The watcher refused to watch the folder, with a message for the user.
    Refused(String),
    /// The link failed.
    Broken(io::Error),
}

impl SpecialFileLink {
    pub(crate) fn new(
        stream: UnixStream,
        own: Option<Forked>,
        unix_sockets: UnixSockets,
    ) -> io::Result<Self> {
        let masks_sockets = unix_sockets != UnixSockets::All;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self {
            stream,
            read: Vec::new(),
            masks_sockets,
            appeared: Vec::new(),
            background: BTreeSet::new(),
            _own: own,
        })
    }

    /// Watches a folder except for the `hidden` paths and returns the paths in it that must be masked.
    pub(crate) fn watch(
        &mut self,
        folder: &str,
        hidden: Vec<String>,
    ) -> Result<Vec<String>, WatchFolderError> {
        self.send(&SpecialRequest::Watch { root: folder.to_owned(), hidden })
            .map_err(WatchFolderError::Broken)?;
        loop {
            match self.next().map_err(WatchFolderError::Broken)? {
                SpecialFileEvent::Watched { root, found } if root == folder => return Ok(self.to_mask(found)),
                SpecialFileEvent::Refused { root, reason } if root == folder => {
                    return Err(WatchFolderError::Refused(reason));
                }
                event @ (SpecialFileEvent::Watched { .. }
                | SpecialFileEvent::Refused { .. }
                | SpecialFileEvent::Appeared { .. }) => {
                    self.handle(event).map_err(WatchFolderError::Broken)?
                }
            }
        }
    }

    /// Watches a folder in the background. Its special files are reported later, or never if the folder is too large.
    pub(crate) fn watch_in_background(&mut self, folder: &str, hidden: Vec<String>) -> io::Result<()> {
        self.background.insert(folder.to_owned());
        self.send(&SpecialRequest::Watch { root: folder.to_owned(), hidden })
    }

    fn handle(&mut self, event: SpecialFileEvent) -> io::Result<()> {
        match event {
            SpecialFileEvent::Appeared { path } => self.appeared.push(path),
            SpecialFileEvent::Watched { root, found } if self.background.contains(&root) => {
                self.appeared.extend(found)
            }
            SpecialFileEvent::Refused { root, reason } if !self.background.contains(&root) => {
                return Err(io::Error::other(reason));
            }
            SpecialFileEvent::Refused { root, .. } => self.unwatch(&root)?,
            SpecialFileEvent::Watched { .. } => {}
        }
        Ok(())
    }

    /// Stops watching a folder that is no longer mounted.
    pub(crate) fn unwatch(&mut self, folder: &str) -> io::Result<()> {
        self.send(&SpecialRequest::Unwatch { root: folder.to_owned() })
    }

    /// Returns the paths reported since the last call, without blocking.
    ///
    /// # Errors
    /// Fails if a mounted folder is no longer being watched. The caller must then terminate the sandbox.
    pub(crate) fn appeared(&mut self) -> io::Result<Vec<String>> {
        while self.has_line() || is_readable(&self.stream)? {
            let event = self.next()?;
            self.handle(event)?;
        }
        let appeared = std::mem::take(&mut self.appeared);
        Ok(self.to_mask(appeared))
    }

    fn to_mask(&self, mut found: Vec<String>) -> Vec<String> {
        found.retain(|path| self.masks_sockets || !is_socket(path));
        found
    }

    /// Returns a descriptor that becomes ready when a message arrives.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.stream, PollFlags::IN)
    }

    fn has_line(&self) -> bool {
        self.read.contains(&b'\n')
    }

    fn send(&mut self, request: &SpecialRequest) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    fn next(&mut self) -> io::Result<SpecialFileEvent> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Ok(serde_json::from_slice(&line)?);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::Error::other("the watcher for pipes and sockets has exited")),
                count => self.read.extend(chunk.iter().take(count)),
            }
        }
    }
}

fn is_readable(stream: &UnixStream) -> io::Result<bool> {
    let mut polled = [PollFd::new(stream, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&Timespec::default()))? > 0)
}
