//! Attacks on other processes: reads, writes, signals and limits.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    process::{Command, Stdio},
    ptr,
};

use crate::sys::{Outcome, check, descriptor};

const LENGTH: usize = 64;

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["attach", pid, address] => trace(libc::PTRACE_ATTACH, pid, address),
        ["seize", pid, address] => trace(libc::PTRACE_SEIZE, pid, address),
        ["mem-read", pid, address] => mem_read(pid, address),
        ["mem-write", pid, address, text] => mem_write(pid, address, text),
        ["vm-read", pid, address] => vm(libc::SYS_process_vm_readv, pid, address, &mut [0; LENGTH]),
        ["vm-write", pid, address, text] => {
            vm(libc::SYS_process_vm_writev, pid, address, &mut text.as_bytes().to_vec())
        }
        ["own-mem", path] => own_mem(path),
        ["steal", pid] => steal(pid),
        ["signal", how, pid] => signal(how, pid),
        ["signal-child", how, file, text] => signal_child(how, file, text),
        ["await-signal", file, text] => await_signal(file, text),
        ["hobble", how, pid] => hobble(how, pid),
        _ => return None,
    })
}

fn trace(request: libc::c_uint, pid: &str, address: &str) -> Outcome {
    let (pid, address): (i32, usize) = (pid.parse()?, address.parse()?);
    // SAFETY: the calls read words of the other process and do not access this process's memory.
    unsafe {
        check(libc::ptrace(request, pid, 0, 0))?;
        if request == libc::PTRACE_SEIZE {
            check(libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0))?;
        }
        check(libc::waitpid(pid, ptr::null_mut(), libc::__WALL))?;
        let words =
            (0..LENGTH / 8).map(|word| libc::ptrace(libc::PTRACE_PEEKDATA, pid, address + word * 8, 0));
        let bytes: Vec<u8> = words.flat_map(i64::to_ne_bytes).collect();
        println!("{}", String::from_utf8_lossy(&bytes));
        check(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0))?;
    }
    Ok(())
}

fn mem_read(pid: &str, address: &str) -> Outcome {
    let mut bytes = [0; LENGTH];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, address.parse()?)?;
    println!("{}", String::from_utf8_lossy(&bytes));
    Ok(())
}

fn mem_write(pid: &str, address: &str, text: &str) -> Outcome {
    let file = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?;
    Ok(file.write_all_at(text.as_bytes(), address.parse()?)?)
}

fn vm(call: libc::c_long, pid: &str, address: &str, bytes: &mut [u8]) -> Outcome {
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: ptr::without_provenance_mut(address.parse()?), iov_len: bytes.len() };
    let pid: i32 = pid.parse()?;
    // The kernel reads this argument as a whole word.
    let flags: libc::c_ulong = 0;
    // SAFETY: the local buffer has the length passed; the remote address is in the other process.
    check(unsafe { libc::syscall(call, pid, &raw const here, 1, &raw const there, 1, flags) })?;
    println!("{}", String::from_utf8_lossy(bytes));
    Ok(())
}

/// Reads a file, then reads it again from this process's own memory.
fn own_mem(path: &str) -> Outcome {
    let mut text = fs::read(path)?;
    text.resize(LENGTH, 0);
    mem_read("self", &(text.as_ptr() as usize).to_string())
}

fn pidfd(pid: i32) -> Result<OwnedFd, Box<dyn std::error::Error>> {
    // SAFETY: the system call takes no pointers.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// Copies another process's descriptors and reads from them.
fn steal(pid: &str) -> Outcome {
    let process = pidfd(pid.parse()?)?;
    for number in 0..32 {
        // SAFETY: the system call takes no pointers.
        let taken =
            descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) });
        let mut bytes = [0; LENGTH];
        if taken.is_ok_and(|taken| File::from(taken).read_at(&mut bytes, 0).is_ok()) {
            println!("{}", String::from_utf8_lossy(&bytes));
        }
    }
    Ok(())
}

fn signal(how: &str, pid: &str) -> Outcome {
    let pid: i32 = pid.parse()?;
    let term = libc::SIGTERM;
    // SAFETY: every pointer is null or to a structure of the kernel's size that outlives the call.
    check(unsafe {
        match how {
            "kill" => libc::kill(pid, libc::SIGKILL).into(),
            "stop" => libc::kill(pid, libc::SIGSTOP).into(),
            "term" => libc::kill(pid, term).into(),
            "thread" => libc::syscall(libc::SYS_tgkill, pid, pid, term),
            "group" => libc::kill(-pid, term).into(),
            "everybody" => libc::kill(-1, libc::SIGKILL).into(),
            "pidfd" => libc::syscall(libc::SYS_pidfd_send_signal, pidfd(pid)?.as_raw_fd(), term, 0, 0),
            "queue" => i64::from(libc::sigqueue(pid, term, libc::sigval { sival_ptr: ptr::null_mut() })),
            "owner" => {
                let (mut one, mut other) = std::os::unix::net::UnixStream::pair()?;
                check(libc::fcntl(one.as_raw_fd(), libc::F_SETOWN, pid))?;
                check(libc::fcntl(one.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC))?;
                io::Write::write_all(&mut other, b"x")?;
                io::Read::read(&mut one, &mut [0])?.try_into()?
            }
            _ => return Err("unknown method".into()),
        }
    })?;
    Ok(())
}

/// Sends signals to a child in the same way as to other processes. The child writes `text` to `file` when it receives a
/// signal.
fn signal_child(how: &str, file: &str, text: &str) -> Outcome {
    let mut child = Command::new(env::current_exe()?)
        .args(["await-signal", file, text])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ready = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut ready)?;
    let sent = signal(how, &child.id().to_string());
    if sent.is_err() {
        child.kill()?;
    }
    child.wait()?;
    sent
}

fn await_signal(file: &str, text: &str) -> Outcome {
    // SAFETY: all-zero is a valid set, and every pointer is to something that outlives the call.
    unsafe {
        let mut awaited: libc::sigset_t = std::mem::zeroed();
        check(libc::sigaddset(&raw mut awaited, libc::SIGTERM))?;
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const awaited, ptr::null_mut()))?;
        // The child has its own process group, so a signal to the group reaches no other process.
        check(libc::setpgid(0, 0))?;
        println!("ready");
        let mut which = 0;
        check(libc::sigwait(&raw const awaited, &raw mut which))?;
    }
    Ok(fs::write(file, text)?)
}

/// Changes another process's scheduling and limits.
fn hobble(how: &str, pid: &str) -> Outcome {
    let pid: i32 = pid.parse()?;
    let limit = libc::rlimit { rlim_cur: 7, rlim_max: 7 };
    // SAFETY: every structure has the right size and outlives the calls.
    check(unsafe {
        match how {
            "affinity" => {
                let mut first: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(0, &mut first);
                libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const first).into()
            }
            "nice" => libc::setpriority(libc::PRIO_PROCESS, pid.cast_unsigned(), 19).into(),
            "idle" => {
                let nothing: libc::sched_param = std::mem::zeroed();
                libc::sched_setscheduler(pid, libc::SCHED_IDLE, &raw const nothing).into()
            }
            "io" => libc::syscall(libc::SYS_ioprio_set, 1, pid, 3 << 13),
            "limit" => libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, ptr::null_mut()).into(),
            "kcmp" => libc::syscall(libc::SYS_kcmp, libc::getpid(), pid, 1, 0, 0),
            "pages" => libc::syscall(libc::SYS_migrate_pages, pid, 64, &raw const limit, &raw const limit),
            _ => return Err("unknown method".into()),
        }
    })?;
    Ok(())
}
