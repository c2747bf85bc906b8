//! Seccomp filters that bubblewrap applies to every process in a sandbox.
//!
//! - Calls are allowed by default, because a server can be any program. Refused calls fail with `EPERM`, which
//!   programs know how to handle.
//! - `clone3` fails with `ENOSYS`, because its flags are behind a pointer. Libraries fall back to `clone`, whose flags
//!   are checked.
//! - `openat2` fails with `ENOSYS` for the same reason. Libraries fall back to `openat`.
//! - A call with a foreign architecture kills the process. An x32 call fails with `ENOSYS`.
//! - `inotify` and `fanotify` are refused, because a watch outlives its mount and keeps reporting names.
//! - Pairs of datagram sockets are refused, because each end can also send to other addresses. The ends of a stream or
//!   seqpacket pair stay connected to each other.
//! - Calls that move a file's pages into a pipe or socket fail with `EINVAL`, and libraries fall back to copying. A
//!   moved page would show later writes to the file without keeping the mount busy.

mod packets;

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::spec::UnixSockets;

pub(crate) use packets::allow_only_packets;

type SyscallRules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Returns the filters as BPF programs, in the order in which they must be applied.
pub(crate) fn programs(unix_sockets: UnixSockets) -> Result<[Vec<u8>; PROGRAMS], seccompiler::Error> {
    let all = |calls: &[c_long]| calls.iter().map(|call| (*call, vec![])).collect::<SyscallRules>();
    Ok([
        assemble(refused(unix_sockets)?, libc::EPERM)?,
        assemble(all(&[libc::SYS_clone3, libc::SYS_openat2]), libc::ENOSYS)?,
        assemble(all(PAGE_MOVING_CALLS), libc::EINVAL)?,
    ])
}

/// Number of filters.
pub(crate) const PROGRAMS: usize = 3;

/// Calls that pass on a file's pages instead of a copy of its content.
const PAGE_MOVING_CALLS: &[c_long] =
    &[libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_sendfile];

/// Filter that makes the kernel report each `connect` call, for sandboxes whose sockets the supervisor connects.
/// Earlier filters have already handled foreign architectures and x32.
pub(crate) const REPORTS_CONNECT: [libc::sock_filter; 4] = [
    libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
    libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: libc::SYS_connect as u32 },
    libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF },
    libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
];

/// Calls that are refused regardless of their arguments.
const REFUSED: &[c_long] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Kernel work on behalf of the process that bypasses this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Keyrings are not namespaced.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // File access that bypasses paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_inotify_add_watch,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_chroot,
    libc::SYS_setns,
    // Administration of the machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
];

/// Calls with a file mode, and the index of the mode argument. `openat2` is refused, because it takes the mode through
/// a pointer.
const MODE_CALLS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_openat, 3),
    (libc::SYS_mknodat, 2),
];

/// Bits of the socket type without flags: `SOCK_TYPE_MASK` in the kernel's `include/linux/net.h`.
const SOCKET_KIND: u64 = 0xf;

/// Types of unix sockets that can send to any address. The kernel treats raw unix sockets as datagram sockets.
const DATAGRAMS: &[i32] = &[libc::SOCK_DGRAM, libc::SOCK_RAW];

/// Permitted arguments of `personality`: `PER_LINUX` and `PER_LINUX32`, both with and without `UNAME26`, and the
/// query.
const PERSONALITIES: &[u32] = &[0, 8, 0x2_0000, 0x2_0008, u32::MAX];

/// Missing from the `libc` crate. The number is the same on every architecture.
const FCHMODAT2: c_long = 452;

/// Missing from the `libc` crate. The number is the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;

/// Flags of `clone` and `unshare` that create a namespace.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

fn refused(unix_sockets: UnixSockets) -> Result<SyscallRules, seccompiler::Error> {
    let mut rules: SyscallRules = REFUSED.iter().map(|&call| (call, vec![])).collect();

    rules.extend(refused_sockets(unix_sockets)?);

    let makes_namespace = || -> Result<Vec<SeccompRule>, seccompiler::Error> {
        let each = NAMESPACES.iter().map(|&flag| {
            Ok(SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(to_u64(flag)), flag)?])?)
        });
        each.collect()
    };
    rules.insert(libc::SYS_clone, makes_namespace()?);
    rules.insert(libc::SYS_unshare, makes_namespace()?);

    // Setuid and setgid programs, which could be left behind in a writable directory.
    for (call, mode) in MODE_CALLS {
        let gives_rights = [libc::S_ISUID, libc::S_ISGID].map(|bit| {
            let bit = i32::try_from(bit).unwrap_or(i32::MAX);
            SeccompRule::new(vec![condition(*mode, SeccompCmpOp::MaskedEq(to_u64(bit)), bit)?])
        });
        rules.insert(*call, gives_rights.into_iter().collect::<Result<_, _>>()?);
    }

    // Personalities of other architectures or with predictable addresses.
    let is_not =
        |persona: u32| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, persona.into());
    let harmless = PERSONALITIES.iter().map(|&persona| is_not(persona)).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(harmless)?]);

    // Injecting input into the user's terminal.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| {
        let request = i32::try_from(request).unwrap_or(i32::MAX);
        SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?])
    });
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);

    // Zero-copy sends of mapped file pages, which show later writes.
    let zero_copy = [
        condition(1, SeccompCmpOp::Eq, libc::SOL_SOCKET)?,
        condition(2, SeccompCmpOp::Eq, libc::SO_ZEROCOPY)?,
    ];
    rules.insert(libc::SYS_setsockopt, vec![SeccompRule::new(zero_copy.to_vec())?]);

    // Leases, which delay other processes' opens, and directory notifications.
    let holding = [libc::F_SETLEASE, libc::F_NOTIFY]
        .map(|request| SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_fcntl, holding.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Refuses all sockets except internet sockets and the permitted unix sockets.
fn refused_sockets(unix_sockets: UnixSockets) -> Result<SyscallRules, seccompiler::Error> {
    let family = |op, family| condition(0, op, family);
    let kind = |kind| condition(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind);
    let mut others =
        vec![family(SeccompCmpOp::Ne, libc::AF_INET)?, family(SeccompCmpOp::Ne, libc::AF_INET6)?];
    if unix_sockets != UnixSockets::None {
        others.push(family(SeccompCmpOp::Ne, libc::AF_UNIX)?);
    }
    let mut sockets = vec![SeccompRule::new(others)?];
    let mut pairs = vec![SeccompRule::new(vec![family(SeccompCmpOp::Ne, libc::AF_UNIX)?])?];
    if unix_sockets != UnixSockets::All {
        for datagram in DATAGRAMS {
            sockets.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, libc::AF_UNIX)?, kind(*datagram)?])?);
            pairs.push(SeccompRule::new(vec![kind(*datagram)?])?);
        }
    }
    Ok([(libc::SYS_socket, sockets), (libc::SYS_socketpair, pairs)].into())
}

fn condition(argument: u8, op: SeccompCmpOp, value: i32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, to_u64(value))
}

fn to_u64(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

fn assemble(rules: SyscallRules, errno: i32) -> Result<Vec<u8>, seccompiler::Error> {
    let program = without_x32(binary_search_filter(rules, SeccompAction::Errno(errno.cast_unsigned()))?);
    Ok(program
        .iter()
        .flat_map(|step| {
            let [c0, c1] = step.code.to_ne_bytes();
            let [k0, k1, k2, k3] = step.k.to_ne_bytes();
            [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
        })
        .collect())
}

/// Builds a filter that finds a call's rules by binary search. A linear search would slow down every call. It would
/// also slow down the installation, because the kernel evaluates a new filter for every system call number.
fn binary_search_filter(
    mut rules: SyscallRules,
    action: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    const FEW: usize = 8;
    let Some(middle) = rules.keys().nth(rules.len() / 2).copied().filter(|_| rules.len() > FEW) else {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, own_architecture()?)?;
        return Ok(BpfProgram::try_from(filter)?);
    };
    let higher = binary_search_filter(rules.split_off(&middle), action.clone())?;
    let lower = binary_search_filter(rules, action)?;
    let too_large = |_| seccompiler::Error::from(BackendError::FilterTooLarge(lower.len()));
    let middle = u32::try_from(middle).map_err(too_large)?;
    // Only an unconditional jump can span this distance.
    let skip_lower = instruction(JUMP, 0, u32::try_from(lower.len()).map_err(too_large)?);
    let mut whole = vec![instruction(LOAD, 0, 0), instruction(JUMP_IF_AT_LEAST, 1, middle), skip_lower];
    whole.extend(lower);
    whole.extend(higher);
    Ok(whole)
}

fn own_architecture() -> Result<TargetArch, BackendError> {
    TargetArch::try_from(std::env::consts::ARCH)
}

/// Prepends instructions that refuse x32 calls, which pass the architecture check.
#[cfg(target_arch = "x86_64")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let mut whole =
        vec![instruction(LOAD, 0, 0), instruction(JUMP_IF_AT_LEAST, 1, X32), instruction(RETURN, 0, refuse)];
    whole.extend(program);
    whole
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32(program: BpfProgram) -> BpfProgram {
    program
}

/// Opcode that loads a word of the call data. The first word is the call number.
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Creates an instruction. A conditional jump that is not taken skips `jf` instructions.
fn instruction(code: u16, jf: u8, k: u32) -> seccompiler::sock_filter {
    seccompiler::sock_filter { code, jt: 0, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_compile_within_kernel_limit() {
        for program in [UnixSockets::None, UnixSockets::Own, UnixSockets::All]
            .map(|which| programs(which).unwrap())
            .into_iter()
            .flatten()
        {
            assert_eq!(program.len() % 8, 0);
            assert!((8 * 5..8 * 4096).contains(&program.len()));
        }
    }

    #[test]
    fn binary_search_program_matches_linear_one() {
        let action = || SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let rules = refused(UnixSockets::None).unwrap();
        let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let whole = SeccompFilter::new(rules.clone(), SeccompAction::Allow, action(), architecture).unwrap();
        let whole = BpfProgram::try_from(whole).unwrap();
        let binary_search_filter = binary_search_filter(rules, action()).unwrap();
        assert!(binary_search_filter.len() > whole.len());
        let arch = whole.iter().find(|step| step.code == JUMP_IF_EQUAL).unwrap().k;
        let mut refusals = 0;
        for number in 0..1000 {
            for argument in [0, 1, 2, 8, 16, 0o4000, 0o2000, 0x5412, 0x1000_0000, u32::MAX] {
                let expected = verdict(&whole, number, arch, argument);
                assert_eq!(
                    verdict(&binary_search_filter, number, arch, argument),
                    expected,
                    "{number} {argument:#x}"
                );
                refusals += u32::from(expected != libc::SECCOMP_RET_ALLOW);
            }
            assert_eq!(verdict(&binary_search_filter, number, arch + 1, 0), libc::SECCOMP_RET_KILL_PROCESS);
        }
        assert!(refusals > 400, "{refusals}");
    }

    /// Evaluates a filter like the kernel and returns its result. Each half of every argument is `argument`.
    fn verdict(program: &BpfProgram, number: u32, arch: u32, argument: u32) -> u32 {
        let (mut position, mut word) = (0, 0);
        loop {
            let step = &program[position];
            let branch = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            position += 1 + match step.code {
                LOAD => {
                    word = [number, arch].get(step.k as usize / 4).copied().unwrap_or(argument);
                    0
                }
                // Bitwise and.
                0x54 => {
                    word &= step.k;
                    0
                }
                JUMP => step.k as usize,
                JUMP_IF_EQUAL => branch(word == step.k),
                0x25 => branch(word > step.k),
                JUMP_IF_AT_LEAST => branch(word >= step.k),
                RETURN => return step.k,
                other => panic!("{other:#x}"),
            };
        }
    }
}
