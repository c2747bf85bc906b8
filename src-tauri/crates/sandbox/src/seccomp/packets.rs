//! Filter for the process that serves a TUN device. It permits only what copying between open descriptors and
//! connections to the proxy needs. Any other call kills the process.

use libc::c_long;
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCmpOp, SeccompFilter, SeccompRule, apply_filter};

use super::{SyscallRules, condition, own_architecture};

/// Calls of the packet loop, and of the runtime and the allocator.
const PERMITTED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_lseek,
    libc::SYS_close,
    // The runtime duplicates descriptors.
    libc::SYS_fcntl,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_epoll_ctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_futex,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_statx,
    libc::SYS_fstat,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Applies the filter to this process, which must be single-threaded.
pub(crate) fn allow_only_packets() -> Result<(), Error> {
    let mut rules: SyscallRules = PERMITTED.iter().map(|call| (*call, vec![])).collect();
    // Unix sockets would lead to other programs of the user, and IPv6 is not used.
    let internet = SeccompRule::new(vec![condition(0, SeccompCmpOp::Eq, libc::AF_INET)?])?;
    rules.insert(libc::SYS_socket, vec![internet]);
    let (other, permitted) = (SeccompAction::KillProcess, SeccompAction::Allow);
    let filter = SeccompFilter::new(rules, other, permitted, own_architecture()?)?;
    apply_filter(&BpfProgram::try_from(filter)?)
}
