//! Exhausts resources and leaves processes behind.

use std::{
    env, fs,
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    ptr, thread,
};

use crate::sys::{Outcome, check};

const MIB: usize = 1 << 20;

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["fork", most, file] => fork(most, file),
        ["threads", most, file] => threads(most, file),
        ["eat", most, file] => eat(most, file),
        ["open", most, file] => open(most, file),
        ["fill", path, most, file] => fill(path, most, file),
        ["zombies", count] => zombies(count),
        ["sleeper", _] => sleeper(),
        ["daemon", how, name] => daemon(how, name),
        ["crash"] => std::process::abort(),
        _ => return None,
    })
}

/// Forks until the kernel refuses, and reports the number of forks. The children exit before this process.
fn fork(most: &str, file: &str) -> Outcome {
    let mut made = Vec::new();
    for _ in 0..most.parse()? {
        // SAFETY: this process is single-threaded, and the child only makes system calls.
        match unsafe { libc::fork() } {
            -1 => break,
            0 => unsafe {
                // SAFETY: neither call takes a pointer. The child waits until it is killed, at the latest when its
                // parent exits.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            },
            child => made.push(child),
        }
    }
    for child in &made {
        // SAFETY: the id belongs to a child that has not been reaped, and a null status is allowed.
        unsafe {
            libc::kill(*child, libc::SIGKILL);
            libc::waitpid(*child, ptr::null_mut(), 0);
        }
    }
    Ok(fs::write(file, made.len().to_string())?)
}

fn threads(most: &str, file: &str) -> Outcome {
    let mut made = 0;
    for _ in 0..most.parse()? {
        let started = thread::Builder::new().stack_size(16 * 1024).spawn(thread::park);
        if started.is_err() {
            break;
        }
        made += 1;
    }
    Ok(fs::write(file, made.to_string())?)
}

/// Fills memory, and continuously reports the number of MiB filled.
fn eat(most: &str, file: &str) -> Outcome {
    let mut told = File::create(file)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    for had in 1..=most.parse()? {
        // SAFETY: the mapping is new, and only bytes within its length are written.
        unsafe {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(ptr::null_mut(), MIB, access, kind, -1, 0);
            if at == libc::MAP_FAILED {
                break;
            }
            ptr::write_bytes(at.cast::<u8>(), 1, MIB);
        }
        told.set_len(0)?;
        std::os::unix::fs::FileExt::write_all_at(&told, format!("{had}").as_bytes(), 0)?;
    }
    Ok(told.flush()?)
}

fn open(most: &str, file: &str) -> Outcome {
    let mut told = File::create(file)?;
    let most: usize = most.parse()?;
    let open: Vec<File> = (0..most).map_while(|_| File::open("/dev/null").ok()).collect();
    Ok(write!(told, "{}", open.len())?)
}

/// Fills a file, and reports the number of MiB written.
fn fill(path: &str, most: &str, file: &str) -> Outcome {
    // SAFETY: no handler is installed. Ignoring the signal makes a write over the limit fail instead of killing the
    // program.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut filled = File::create(path)?;
    let block = vec![1; MIB];
    let made = (0..most.parse::<usize>()?).take_while(|_| filled.write_all(&block).is_ok()).count();
    fs::remove_file(path)?;
    Ok(fs::write(file, made.to_string())?)
}

/// Creates zombie processes.
fn zombies(count: &str) -> Outcome {
    for _ in 0..count.parse()? {
        // SAFETY: this process is single-threaded, and the child exits at once.
        if check(unsafe { libc::fork() })? == 0 {
            // SAFETY: `_exit` terminates the process without accessing memory.
            unsafe { libc::_exit(0) };
        }
    }
    Ok(())
}

fn sleeper() -> Outcome {
    loop {
        thread::park();
    }
}

/// Leaves behind a process named `name`.
fn daemon(how: &str, name: &str) -> Outcome {
    let mut command = Command::new(env::current_exe()?);
    command.args(["sleeper", name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (session, deaf, stopped) = match how {
        "child" => (false, false, false),
        "session" => (true, false, false),
        "deaf" => (true, true, false),
        "stopped" => (true, false, true),
        _ => return Err("unknown method".into()),
    };
    // SAFETY: the closure only makes system calls, and this process is single-threaded.
    unsafe {
        command.pre_exec(move || {
            if session {
                check(libc::setsid())?;
            }
            if deaf {
                (1..32).for_each(|signal| _ = libc::signal(signal, libc::SIG_IGN));
            }
            Ok(())
        });
    }
    let child = command.spawn()?;
    if stopped {
        // SAFETY: `kill` takes no pointers. The id belongs to a child that has not been reaped.
        check(unsafe { libc::kill(i32::try_from(child.id())?, libc::SIGSTOP) })?;
    }
    Ok(())
}
