//! System calls by name, with arguments that have a harmless effect if the call is permitted.

use std::{
    fs::File,
    mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
};

use crate::sys::{Outcome, check, claim, descriptor};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["call", name, file] => call(name).and_then(|_| claim(file, name)),
        ["shared", "memory"] => shared_memory(),
        ["shared", "messages"] => shared_messages(),
        ["shared", "semaphores"] => shared_semaphores(),
        ["shared", "queue", name] => shared_queue(name),
        ["key", "session"] => key(-3, "carried"),
        ["key", "user", name] => key(-4, name),
        _ => return None,
    })
}

type ControlAnswer = Result<i64, Box<dyn std::error::Error>>;

fn call(name: &str) -> ControlAnswer {
    let own = || -> Result<OwnedFd, Box<dyn std::error::Error>> {
        // SAFETY: `pidfd_open` and `getpid` take no pointers.
        descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) })
    };
    let mut room = [0u64; 64];
    // SAFETY: each call gets null pointers, constant strings, or buffers that outlive the call and are larger than the
    // data that the kernel reads or writes.
    let answer = unsafe {
        let nothing = ptr::null::<libc::c_void>();
        let here = c"/tmp".as_ptr();
        match name {
            "ptrace" => libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0),
            "process-vm-readv" => {
                let part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: 8 };
                let parts = &raw const part;
                libc::process_vm_readv(libc::getpid(), parts, 1, parts, 1, 0) as i64
            }
            "process-madvise" => {
                libc::syscall(libc::SYS_process_madvise, own()?.as_raw_fd(), nothing, 0, libc::MADV_COLD, 0)
            }
            "pidfd-getfd" => libc::syscall(libc::SYS_pidfd_getfd, own()?.as_raw_fd(), 0, 0),
            "kcmp" => libc::syscall(libc::SYS_kcmp, libc::getpid(), libc::getpid(), 1, 0, 0),
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0, -3, 1),
            "add-key" => libc::syscall(
                libc::SYS_add_key,
                c"user".as_ptr(),
                c"k".as_ptr(),
                c"v".as_ptr(),
                1,
                libc::KEY_SPEC_PROCESS_KEYRING,
            ),
            "request-key" => {
                libc::syscall(libc::SYS_request_key, c"user".as_ptr(), c"carried".as_ptr(), nothing, 0)
            }
            "io-uring" => libc::syscall(libc::SYS_io_uring_setup, 1, room.as_mut_ptr()),
            // An array map (type 2) with one entry.
            "bpf" => {
                room[..2].copy_from_slice(&[2 | 4 << 32, 4 | 1 << 32]);
                libc::syscall(libc::SYS_bpf, 0, room.as_ptr(), 72)
            }
            // The software clock of this process, user mode only.
            "perf" => {
                room[..2].copy_from_slice(&[1 | 128 << 32, 0]);
                room[5] = 1 << 5 | 1 << 6;
                libc::syscall(libc::SYS_perf_event_open, room.as_ptr(), 0, -1, -1, 0)
            }
            "userfaultfd" => libc::syscall(libc::SYS_userfaultfd, 1),
            "inotify" => {
                let queue = descriptor(libc::inotify_init1(0))?;
                libc::inotify_add_watch(queue.as_raw_fd(), here, libc::IN_ALL_EVENTS).into()
            }
            // `FAN_REPORT_FID`: reports file handles instead of descriptors. Unprivileged users are allowed to request
            // this.
            "fanotify" => libc::syscall(libc::SYS_fanotify_init, 0x200, 0),
            "mount" => libc::mount(c"none".as_ptr(), here, c"tmpfs".as_ptr(), 0, nothing).into(),
            "bind" => libc::mount(here, here, ptr::null(), libc::MS_BIND, nothing).into(),
            "remount" => {
                let flags = libc::MS_REMOUNT | libc::MS_BIND;
                libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, nothing).into()
            }
            "umount" => libc::umount2(here, libc::MNT_DETACH).into(),
            "pivot-root" => libc::syscall(libc::SYS_pivot_root, here, here),
            "chroot" => libc::chroot(here).into(),
            "open-tree" => libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, here, 1),
            "fsopen" => libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0),
            "fspick" => libc::syscall(libc::SYS_fspick, libc::AT_FDCWD, c"/".as_ptr(), 0),
            "mount-setattr" => {
                libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, c"/".as_ptr(), 0, room.as_ptr(), 32)
            }
            "unshare-user" => libc::unshare(libc::CLONE_NEWUSER).into(),
            "unshare-mount" => libc::unshare(libc::CLONE_NEWNS).into(),
            "unshare-net" => libc::unshare(libc::CLONE_NEWNET).into(),
            "unshare-pid" => libc::unshare(libc::CLONE_NEWPID).into(),
            "unshare-ipc" => libc::unshare(libc::CLONE_NEWIPC).into(),
            "unshare-uts" => libc::unshare(libc::CLONE_NEWUTS).into(),
            "unshare-cgroup" => libc::unshare(libc::CLONE_NEWCGROUP).into(),
            "unshare-time" => libc::unshare(0x80).into(),
            "unshare-files" => libc::unshare(libc::CLONE_FILES).into(),
            "clone-user" => clone(libc::CLONE_NEWUSER),
            "clone3-user" => clone3(libc::CLONE_NEWUSER),
            "setns" => libc::setns(File::open("/proc/self/ns/mnt")?.as_raw_fd(), libc::CLONE_NEWNS).into(),
            "setns-user" => {
                libc::setns(File::open("/proc/1/ns/user")?.as_raw_fd(), libc::CLONE_NEWUSER).into()
            }
            "capset" => {
                room[0] = 0x2008_0522;
                room[1] = 1 << 21 | (1 << 21) << 32;
                let header = room.as_ptr();
                libc::syscall(libc::SYS_capset, header, header.add(1))
            }
            "securebits" => libc::prctl(libc::PR_SET_SECUREBITS, 1, 0, 0, 0).into(),
            "new-privileges" => {
                (libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) - 1).abs().wrapping_neg().into()
            }
            // Switches between root and another user.
            "setuid" => libc::setuid(u32::from(libc::getuid() == 0)).into(),
            "setgroups" => libc::setgroups(0, ptr::null()).into(),
            "syslog" => libc::syscall(libc::SYS_syslog, 3, room.as_mut_ptr(), 64),
            "reboot" => libc::syscall(libc::SYS_reboot, 0xfee1_dead_u32, 672_274_793, 0, nothing),
            "init-module" => libc::syscall(libc::SYS_init_module, nothing, 0, c"".as_ptr()),
            "finit-module" => libc::syscall(libc::SYS_finit_module, 0, c"".as_ptr(), 0),
            "delete-module" => libc::syscall(libc::SYS_delete_module, c"no-such".as_ptr(), 0),
            "kexec" => libc::syscall(libc::SYS_kexec_load, 0, 0, nothing, 0),
            "swapon" => libc::swapon(here, 0).into(),
            "acct" => libc::acct(ptr::null()).into(),
            "quotactl" => libc::syscall(libc::SYS_quotactl, 0x0080_0001, nothing, 0, nothing),
            "sethostname" => libc::sethostname(c"escaped".as_ptr(), 7).into(),
            "setdomainname" => libc::setdomainname(c"escaped".as_ptr(), 7).into(),
            "set-clock" => {
                let mut now: libc::timespec = mem::zeroed();
                check(libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now))?;
                libc::clock_settime(libc::CLOCK_REALTIME, &raw const now).into()
            }
            "adjust-clock" => {
                let mut change: libc::timex = mem::zeroed();
                change.modes = libc::ADJ_STATUS;
                libc::adjtimex(&raw mut change).into()
            }
            "vhangup" => libc::vhangup().into(),
            #[cfg(target_arch = "x86_64")]
            "iopl" => libc::syscall(libc::SYS_iopl, 3),
            #[cfg(target_arch = "x86_64")]
            "ioperm" => libc::syscall(libc::SYS_ioperm, 0x80, 1, 1),
            "personality" => libc::personality(0x0004_0000).into(),
            "realtime" => {
                let priority = libc::sched_param { sched_priority: 1 };
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority).into()
            }
            "realtime-io" => libc::syscall(libc::SYS_ioprio_set, 1, 0, 1 << 13),
            "nice" => libc::setpriority(libc::PRIO_PROCESS, 0, -20).into(),
            "getpid" => libc::syscall(libc::SYS_getpid),
            _ => return Err("unknown call".into()),
        }
    };
    Ok(check(answer)?)
}

fn clone(flags: i32) -> i64 {
    // SAFETY: like a fork in a single-threaded process; the child exits at once.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, i64::from(flags | libc::SIGCHLD), 0, 0, 0, 0);
        if child == 0 {
            libc::_exit(0);
        }
        child
    }
}

fn clone3(flags: i32) -> i64 {
    let arguments = [u64::from(flags.cast_unsigned()), 0, 0, 0, 17, 0, 0, 0];
    // SAFETY: like a fork in a single-threaded process; the child exits at once.
    unsafe {
        let child = libc::syscall(libc::SYS_clone3, arguments.as_ptr(), 64);
        if child == 0 {
            libc::_exit(0);
        }
        child
    }
}

/// Reads every shared memory segment.
fn shared_memory() -> Outcome {
    for place in 0..64 {
        // SAFETY: all-zero is a valid structure; an attachable segment has at least one page.
        unsafe {
            let mut state: libc::shmid_ds = mem::zeroed();
            let segment = libc::shmctl(place, 13, &raw mut state);
            let at = libc::shmat(segment, ptr::null(), libc::SHM_RDONLY);
            if segment >= 0 && at as isize != -1 {
                println!("{}", String::from_utf8_lossy(std::slice::from_raw_parts(at.cast(), 64)));
            }
        }
    }
    Ok(())
}

/// Takes one message from each queue.
fn shared_messages() -> Outcome {
    for place in 0..64 {
        let mut message = [0u8; 128];
        // SAFETY: all-zero is a valid structure, and the buffer has the requested size.
        unsafe {
            let mut state: libc::msqid_ds = mem::zeroed();
            let queue = libc::msgctl(place, 11, &raw mut state);
            if queue >= 0 && libc::msgrcv(queue, message.as_mut_ptr().cast(), 100, 0, libc::IPC_NOWAIT) > 0 {
                println!("{}", String::from_utf8_lossy(&message));
            }
        }
    }
    Ok(())
}

/// Sets each semaphore that the kernel lists.
fn shared_semaphores() -> Outcome {
    for place in 0..64 {
        // SAFETY: the buffer has room for the state of a semaphore set.
        unsafe {
            let mut state: libc::semid_ds = mem::zeroed();
            let set = libc::semctl(place, 0, 18, &raw mut state);
            if set >= 0 {
                libc::semctl(set, 0, libc::SETVAL, 9);
            }
        }
    }
    Ok(())
}

fn shared_queue(name: &str) -> Outcome {
    let name = crate::sys::c(name)?;
    let mut message = [0u8; 8192];
    // SAFETY: the name is NUL-terminated, and the buffer has room for a message of the default maximum size.
    unsafe {
        let queue = libc::mq_open(name.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK);
        check(queue)?;
        check(libc::mq_receive(queue, message.as_mut_ptr().cast(), message.len(), ptr::null_mut()) as i64)?;
    }
    println!("{}", String::from_utf8_lossy(&message));
    Ok(())
}

/// Prints the content of a key in a keyring.
fn key(ring: i32, name: &str) -> Outcome {
    let name = crate::sys::c(name)?;
    let mut bytes = [0u8; 128];
    // SAFETY: both strings are NUL-terminated, and the buffer has the size passed.
    unsafe {
        let key = check(libc::syscall(libc::SYS_keyctl, 10, ring, c"user".as_ptr(), name.as_ptr(), 0))?;
        check(libc::syscall(libc::SYS_keyctl, 11, key, bytes.as_mut_ptr(), bytes.len()))?;
    }
    println!("{}", String::from_utf8_lossy(&bytes));
    Ok(())
}
