//! Watcher thread for pipes and sockets, with one stream per supervisor.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    SpecialFileEvent,
    watcher::{BOUNDS, LinkNumber, SpecialWatcher},
};
use crate::sys::process::{Forked, fork};

/// Maximum length of a request in bytes. A longer request closes the link.
const MAX_LEN: usize = 1 << 20;

/// This process's watcher thread, or `None` before it is first needed.
static THREAD: Mutex<Option<ThreadHandle>> = Mutex::new(None);

struct ThreadHandle {
    links: Sender<UnixStream>,
    wake: UnixStream,
}

/// Creates a link to this process's watcher thread. Returns the supervisor's end.
pub(crate) fn serve() -> io::Result<UnixStream> {
    let (theirs, ours) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut running = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = match running.take() {
        Some(handle) => handle,
        None => start()?,
    };
    let ThreadHandle { links, wake } = running.insert(handle);
    let sent = links.send(ours).map_err(|_| io::Error::other("the watcher for pipes and sockets has exited"));
    // A full wake-up stream is fine, because the thread is then already awake.
    sent.map(|()| _ = (&*wake).write(&[0])).inspect_err(|_| *running = None)?;
    Ok(theirs)
}

fn start() -> io::Result<ThreadHandle> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let (links, inbox) = channel();
    let service =
        Service { watcher: SpecialWatcher::new(BOUNDS)?, inbox, woken, links: BTreeMap::new(), next: 0 };
    thread::Builder::new()
        .name("special files".into())
        .stack_size(512 * 1024)
        .spawn(move || service.run())?;
    Ok(ThreadHandle { links, wake })
}

/// Creates a link to a watcher in a forked child, which is killed when the [`Forked`] value is dropped. The caller
/// must be single-threaded.
pub(crate) fn serve_in_child() -> io::Result<(UnixStream, Forked)> {
    let (theirs, ours) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = fork(&[ours.as_fd()], || {
        let served = || -> io::Result<()> {
            let (links, inbox) = channel();
            let (woken, _wake) = UnixStream::pair()?;
            woken.set_nonblocking(true)?;
            links.send(ours.try_clone()?).map_err(|_| io::ErrorKind::BrokenPipe)?;
            // With no sender left, the service stops when its only link closes.
            drop(links);
            let watcher = SpecialWatcher::new(BOUNDS)?;
            Service { watcher, inbox, woken, links: BTreeMap::new(), next: 0 }.run();
            Ok(())
        };
        // Ignores the error: closing the link reports it to the parent.
        let _ = served();
    })?;
    Ok((theirs, child))
}

struct Service {
    watcher: SpecialWatcher,
    inbox: Receiver<UnixStream>,
    woken: UnixStream,
    links: BTreeMap<LinkNumber, Link>,
    next: LinkNumber,
}

/// Link to one supervisor, and the received bytes of an incomplete line.
struct Link {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Service {
    fn run(mut self) {
        loop {
            match self.inbox.try_recv() {
                Ok(stream) => {
                    self.next += 1;
                    self.links.insert(self.next, Link { stream, read: Vec::new() });
                    continue;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) if self.links.is_empty() => return,
                Err(TryRecvError::Disconnected) => {}
            }
            let Ok(readable) = self.wait() else { return };
            for link in readable {
                self.read(link);
            }
            for (link, event) in self.watcher.work() {
                self.send(link, &event);
            }
        }
    }

    /// Blocks until there is work. Returns the links with incoming messages.
    fn wait(&self) -> rustix::io::Result<Vec<LinkNumber>> {
        let own = [self.watcher.folders().as_fd(), self.woken.as_fd()];
        let links = self.links.values().map(|link| link.stream.as_fd());
        let mut polled: Vec<PollFd<'_>> =
            own.into_iter().chain(links).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let now = self.watcher.is_busy().then(Timespec::default);
        match poll(&mut polled, now.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // Discards wake-up bytes.
        let _ = (&self.woken).read(&mut [0; 64]);
        let with_input = self.links.keys().zip(polled.iter().skip(2));
        Ok(with_input.filter(|(_, polled)| !polled.revents().is_empty()).map(|(link, _)| *link).collect())
    }

    fn read(&mut self, number: LinkNumber) {
        let Some(link) = self.links.get_mut(&number) else { return };
        match link.lines() {
            Ok(lines) => {
                for line in lines {
                    match serde_json::from_slice(&line) {
                        Ok(request) => self.watcher.request(number, request),
                        Err(_) => return self.close_link(number),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.close_link(number),
        }
    }

    /// Sends a message to a supervisor. If the supervisor has exited or does not read, the link is closed, which
    /// terminates the sandbox.
    fn send(&mut self, number: LinkNumber, event: &SpecialFileEvent) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let line = serde_json::to_vec(event).map(|mut line| {
            line.push(b'\n');
            line
        });
        let sent = line.map_err(io::Error::from).and_then(|line| link.stream.write_all(&line));
        if sent.is_err() {
            self.close_link(number);
        }
    }

    fn close_link(&mut self, number: LinkNumber) {
        self.links.remove(&number);
        self.watcher.remove_link(number);
    }
}

impl Link {
    /// Reads once and returns the completed lines.
    fn lines(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut chunk = [0; 4096];
        let count = self.stream.read(&mut chunk)?;
        if count == 0 || self.read.len() > MAX_LEN {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read.extend(chunk.iter().take(count));
        let Some(end) = self.read.iter().rposition(|byte| *byte == b'\n') else { return Ok(vec![]) };
        let rest = self.read.split_off(end + 1);
        let whole = std::mem::replace(&mut self.read, rest);
        Ok(whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
    }
}
