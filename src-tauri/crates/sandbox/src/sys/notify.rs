//! System calls that the kernel reports to a supervisor instead of executing them (`seccomp_unotify(2)`).

use std::{
    io,
    mem::zeroed,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

/// Reported system call. The calling thread waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedCall {
    id: u64,
    /// Id of the calling thread.
    pub(crate) thread: u32,
    pub(crate) arguments: [u64; 6],
}

/// Installs a filter on this process and its descendants. The kernel reports the calls selected by `program` on the
/// returned descriptor. `no_new_privs` must be set.
pub(crate) fn report_calls(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let only_killed = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match install(program, only_killed) {
        // Linux before 5.19 lacks the flag. On such a kernel, a signal makes the kernel report the call again.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(program, 0),
        installed => installed,
    }
}

fn install(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<OwnedFd> {
    let length = program.len().try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program and its instructions outlive the call, which only reads them.
    let number = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flags,
            &raw const program,
        )
    };
    let number = i32::try_from(number).map_err(|_| io::ErrorKind::InvalidData)?;
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for us, close-on-exec, and no other code knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

impl ReportedCall {
    /// Waits for the next reported call.
    pub(crate) fn next(calls: impl AsFd) -> io::Result<Self> {
        // SAFETY: all-zero is a valid value, and the kernel requires it.
        let mut call: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the descriptor is open for the length of the call, and the kernel fills a structure of this size.
        let status =
            unsafe { libc::ioctl(calls.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { id: call.id, thread: call.pid, arguments: call.data.args })
    }

    /// Returns `true` if the thread is still waiting for an answer, which also proves that its id has not been reused.
    pub(crate) fn is_waiting(&self, calls: impl AsFd) -> bool {
        // SAFETY: the descriptor is open for the length of the call, which reads one number.
        let valid = unsafe {
            libc::ioctl(calls.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const self.id)
        };
        valid == 0
    }

    /// Makes the call return zero or fail with an errno.
    pub(crate) fn answer(&self, calls: impl AsFd, outcome: Result<(), i32>) {
        let error = outcome.err().map_or(0, |error| -error);
        let mut answer = libc::seccomp_notif_resp { id: self.id, val: 0, error, flags: 0 };
        // SAFETY: the descriptor is open for the length of the call, which reads a structure of this size. The call
        // fails if the thread is no longer waiting.
        unsafe {
            libc::ioctl(calls.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer);
        }
    }
}

/// Connects a socket to a kernel-format address. Returns an errno on failure.
pub(crate) fn connect(socket: impl AsFd, address: &[u8]) -> Result<(), i32> {
    let length = address.len().try_into().map_err(|_| libc::EINVAL)?;
    // SAFETY: the address has that length and outlives the call. The kernel copies it.
    let connected = unsafe { libc::connect(socket.as_fd().as_raw_fd(), address.as_ptr().cast(), length) };
    if connected == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) }
}
