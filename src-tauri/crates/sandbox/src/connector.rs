//! Checks the destination of a sandbox's `connect` calls and connects the sockets on its behalf. Used by sandboxes
//! that may have their own unix sockets or use services on this computer.
//!
//! - Seccomp cannot read the address passed to `connect`. The kernel therefore reports each call, and a helper process
//!   connects the same socket to its own copy of the address. The sandbox cannot exchange the socket or the address
//!   between the check and the connection.
//! - A unix socket belongs to the sandbox if it is in a folder that only the sandbox can write to. The socket's mount
//!   decides this after symlinks are resolved, because no rename or hard link crosses into such a mount.
//! - Abstract names and internet addresses are resolved in the socket's own network namespace, as usual. Permission is
//!   required only for loopback ports on which nothing listens ([`Services`]).
//! - INVARIANT: a connection to an address that cannot be determined is refused. Without the helper process, every
//!   `connect` call of the sandbox fails.

mod internet;

use std::{
    fs::File,
    io::Read,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use ironcurtain_view::is_terminating;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat},
    io::Errno,
    net::{
        AddressFamily, SocketType,
        sockopt::{socket_domain, socket_type},
    },
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use crate::{
    nofollow::mount_id,
    services::Services,
    sys::{
        notify::{ReportedCall, connect},
        process::{Forked, fork},
    },
};

/// Maximum number of calls that are handled at the same time. Further calls wait in the kernel.
const MAX_CALLS: usize = 256;

/// Maximum size of a socket address in bytes (`sockaddr_storage`).
const MAX_LEN: usize = 128;
/// Size in bytes of the address family, which is the first field of a socket address.
const FAMILY_LEN: usize = size_of::<libc::sa_family_t>();
/// `AF_UNIX` as an address family.
const UNIX: libc::sa_family_t = 1;
/// `PIDFD_THREAD`: makes `pidfd_open` accept a thread, since Linux 6.9.
const PIDFD_THREAD: u32 = libc::O_EXCL.cast_unsigned();

/// Process that connects a sandbox's sockets. Dropping this value terminates the process.
#[derive(Debug)]
pub(crate) struct Connector {
    _process: Forked,
}

impl Connector {
    /// Forks a process that handles `calls`. The caller must be single-threaded.
    pub(crate) fn start(calls: OwnedFd, connections: Connections) -> std::io::Result<Self> {
        let connections = Arc::new(connections);
        let mut kept = vec![calls.as_fd()];
        kept.extend(connections.services.iter().flat_map(Services::descriptors));
        let process = fork(&kept, || serve(&calls, &connections))?;
        Ok(Self { _process: process })
    }
}

/// Destinations outside a sandbox's network namespace to which the sandbox is allowed to connect.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Mount ids of the folders that only the sandbox can write to. Sockets in these folders belong to the sandbox.
    pub(crate) own: Vec<u64>,
    /// Services on this computer, or `None` if connections to loopback ports need no permission.
    pub(crate) services: Option<Services>,
}

/// Handles reported calls until the sandbox exits.
fn serve(calls: &OwnedFd, connections: &Arc<Connections>) {
    if connections.services.is_some() {
        let connections = connections.clone();
        let serve = move || connections.services.iter().for_each(Services::serve);
        // Ignores the error: without this thread, published ports are unreachable.
        let _ = thread::Builder::new().stack_size(64 * 1024).spawn(serve);
    }
    let limiter = CallLimiter::new(MAX_CALLS);
    loop {
        let permit = limiter.acquire();
        match ReportedCall::next(calls) {
            Ok(call) => {
                let (connections, handle) = (connections.clone(), calls.try_clone());
                let Ok(handle) = handle else {
                    call.answer(calls, Err(libc::EMFILE));
                    continue;
                };
                // A sandbox can make a connection block indefinitely, so each call gets its own thread.
                let work = move || {
                    let is_waiting = || call.is_waiting(&handle) && !is_terminating(call.thread);
                    let result =
                        ConnectCall::read(&call, &handle).and_then(|it| it.connect(&connections, is_waiting));
                    call.answer(&handle, result);
                    drop(permit);
                };
                if thread::Builder::new().stack_size(64 * 1024).spawn(work).is_err() {
                    call.answer(calls, Err(libc::EAGAIN));
                }
            }
            // The calling thread was killed before the kernel delivered its call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                if is_closed(calls) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Semaphore that limits the number of concurrent calls.
#[derive(Clone, Debug)]
struct CallLimiter(Arc<(Mutex<usize>, Condvar)>);

/// Permit from [`CallLimiter`]. Dropping it releases the permit.
#[derive(Debug)]
struct CallPermit(CallLimiter);

impl CallLimiter {
    fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count), Condvar::new())))
    }

    /// Waits for a free permit and acquires it.
    fn acquire(&self) -> CallPermit {
        let (free, freed) = &*self.0;
        let free = free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        CallPermit(self.clone())
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let (free, freed) = &*self.0.0;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        freed.notify_one();
    }
}

/// Returns `true` if every process that could make a reported call has exited.
fn is_closed(calls: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(calls, PollFlags::IN)];
    let ready = poll(&mut polled, Some(&Timespec::default()));
    ready.is_err() || polled.iter().any(|polled| polled.revents().contains(PollFlags::HUP))
}

/// Reported `connect` call: the socket, and the address at the time of the call.
struct ConnectCall {
    /// `/proc` directory of the calling thread.
    thread: OwnedFd,
    socket: OwnedFd,
    address: Vec<u8>,
}

impl ConnectCall {
    fn read(call: &ReportedCall, calls: &OwnedFd) -> Result<Self, i32> {
        let [socket, at, length, ..] = call.arguments;
        let proc_path = format!("/proc/{}", call.thread);
        let thread =
            openat(CWD, proc_path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(errno_code)?;
        // Checks that the thread id has not been reused.
        if !call.is_waiting(calls) {
            return Err(libc::EINTR);
        }
        // The kernel uses only the lower 32 bits of these registers.
        let [socket, length] =
            [socket, length].map(|word| u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default());
        let length = usize::try_from(length).map_err(|_| libc::EINVAL)?;
        if length > MAX_LEN {
            return Err(libc::EINVAL);
        }
        let process = open_pidfd(call.thread, &thread)?;
        let socket =
            pidfd_getfd(process, socket.cast_signed(), PidfdGetfdFlags::empty()).map_err(errno_code)?;
        let mut address = vec![0; length];
        let memory =
            openat(&thread, "mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(errno_code)?;
        File::from(memory).read_exact_at(&mut address, at).map_err(|_| libc::EFAULT)?;
        if !call.is_waiting(calls) {
            return Err(libc::EINTR);
        }
        Ok(Self { thread, socket, address })
    }

    fn connect(&self, connections: &Connections, is_waiting: impl Fn() -> bool) -> Result<(), i32> {
        match socket_domain(&self.socket) {
            Ok(AddressFamily::UNIX) => self.connect_unix(&connections.own),
            Ok(_) => {
                let is_stream = socket_type(&self.socket).map_err(errno_code)? == SocketType::STREAM;
                if !is_stream {
                    return connect(&self.socket, &self.address);
                }
                if let Some(services) = &connections.services {
                    services.request_permission(&self.address, &self.thread, &is_waiting)?;
                }
                internet::connect(&self.socket, &self.address, is_waiting)
            }
            Err(error) => Err(errno_code(error)),
        }
    }

    fn connect_unix(&self, own: &[u64]) -> Result<(), i32> {
        let (family, name) = self.address.split_at_checked(FAMILY_LEN).ok_or(libc::EINVAL)?;
        if family != UNIX.to_ne_bytes() {
            return Err(libc::EINVAL);
        }
        if name.first().is_none_or(|first| *first == 0) {
            // Unnamed and abstract addresses are resolved in the sandbox's own network namespace.
            return connect(&self.socket, &self.address);
        }
        let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let target = self.open(path)?;
        let stat = fstat(&target).map_err(errno_code)?;
        if !FileType::from_raw_mode(stat.st_mode).is_socket() {
            return Err(libc::ECONNREFUSED);
        }
        if !own.contains(&mount_id(&target).map_err(errno_code)?) {
            return Err(libc::EACCES);
        }
        // The kernel resolves this path in this process, where it refers to the opened file.
        let proc_path = format!("/proc/self/fd/{}\0", target.as_raw_fd());
        connect(&self.socket, &[family, proc_path.as_bytes()].concat())
    }

    /// Opens a path relative to the sandbox's root and working directory.
    fn open(&self, path: &[u8]) -> Result<OwnedFd, i32> {
        let root = openat(&self.thread, "root", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let root = root.map_err(errno_code)?;
        let path = if path.starts_with(b"/") {
            path.to_vec()
        } else {
            let folder = readlinkat(&self.thread, "cwd", Vec::new()).map_err(errno_code)?;
            [folder.as_bytes(), path].join(&b'/')
        };
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(root, std::ffi::OsStr::from_bytes(&path), flags, Mode::empty(), resolve).map_err(errno_code)
    }
}

/// Opens a pidfd of the thread, or of its process if the kernel has no pidfds for threads.
fn open_pidfd(thread: u32, directory: &OwnedFd) -> Result<OwnedFd, i32> {
    let pid = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(libc::ESRCH);
    match pidfd_open(pid(thread)?, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
        Err(Errno::INVAL) => {}
        opened => return opened.map_err(errno_code),
    }
    let status = openat(directory, "status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut text = String::new();
    File::from(status.map_err(errno_code)?).read_to_string(&mut text).map_err(|_| libc::ESRCH)?;
    let leader = text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    pidfd_open(pid(leader.ok_or(libc::ESRCH)?)?, PidfdFlags::empty()).map_err(errno_code)
}

fn errno_code(error: Errno) -> i32 {
    error.raw_os_error()
}
