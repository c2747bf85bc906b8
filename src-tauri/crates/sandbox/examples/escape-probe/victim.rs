//! Process on the host that the sandbox must not reach. Its secret is in its memory, environment, arguments and an open
//! file, and in shared System V and POSIX objects.

use std::{
    fs::{self, File},
    io::{self, BufRead},
    ptr, thread,
    time::Duration,
};

use crate::sys::{Outcome, c, check};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["victim", secret, dir, queue] => victim(secret, dir, queue),
        ["forget-victim", queue, messages, semaphores] => forget(queue, messages, semaphores),
        _ => return None,
    })
}

/// Reports the location of the secret, then its own state on request. Exits when standard input reaches EOF.
fn victim(secret: &str, dir: &str, queue: &str) -> Outcome {
    let mut kept = secret.as_bytes().to_vec();
    kept.resize(64, 0);
    let kept: &'static mut [u8] = kept.leak();
    let _open = File::open(format!("{dir}/secret"))?;
    let stirred = dir.to_owned();
    thread::spawn(move || stir(&stirred));
    // SAFETY: the call takes no pointers. It permits any process to trace this one; by default, the kernel permits only
    // ancestors.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    let shared = Shared::new(secret, queue)?;
    println!("{} {} {}", kept.as_ptr() as usize, shared.messages, shared.semaphores);
    for line in io::stdin().lock().lines() {
        line?;
        // SAFETY: the byte is within the buffer. Another process may have changed it, so the read is volatile.
        let now: Vec<u8> = kept.iter().map(|byte| unsafe { ptr::read_volatile(byte) }).collect();
        let intact = now.starts_with(secret.as_bytes()) && shared.is_intact();
        println!("{}", if intact { "intact" } else { "changed" });
    }
    Ok(())
}

/// Continuously opens the files of a directory, so that a watcher would get events.
fn stir(dir: &str) {
    loop {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // Ignores the result: the attempt alone notifies watchers.
            let _ = File::open(entry.path());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Removes the objects that a killed victim left behind.
fn forget(queue: &str, messages: &str, semaphores: &str) -> Outcome {
    drop(Shared { messages: messages.parse()?, semaphores: semaphores.parse()?, name: c(queue)? });
    Ok(())
}

/// System V segment, queue and semaphore set, and POSIX queue, removed when this process exits.
struct Shared {
    messages: i32,
    semaphores: i32,
    name: std::ffi::CString,
}

impl Shared {
    fn new(secret: &str, queue: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mode = libc::IPC_CREAT | 0o600;
        let name = c(queue)?;
        // SAFETY: every pointer is to a value that outlives the call and is as large as the size passed.
        unsafe {
            let segment = i32::try_from(check(libc::shmget(libc::IPC_PRIVATE, 4096, mode))?)?;
            let at = libc::shmat(segment, ptr::null(), 0);
            if at as isize == -1 {
                return Err(io::Error::last_os_error().into());
            }
            ptr::copy_nonoverlapping(secret.as_ptr(), at.cast(), secret.len());
            // The segment is removed when the last process detaches it. Until then, its id stays valid.
            check(libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()))?;

            let messages = i32::try_from(check(libc::msgget(libc::IPC_PRIVATE, mode))?)?;
            let mut message = 1i64.to_ne_bytes().to_vec();
            message.extend(secret.as_bytes());
            check(libc::msgsnd(messages, message.as_ptr().cast(), secret.len(), 0))?;
            let semaphores = i32::try_from(check(libc::semget(libc::IPC_PRIVATE, 1, mode))?)?;
            check(libc::semctl(semaphores, 0, libc::SETVAL, 5))?;

            let mut small: libc::mq_attr = std::mem::zeroed();
            (small.mq_maxmsg, small.mq_msgsize) = (1, 64);
            let posix = libc::mq_open(name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, &raw mut small);
            check(posix)?;
            check(libc::mq_send(posix, secret.as_ptr().cast(), secret.len(), 0))?;
            Ok(Self { messages, semaphores, name })
        }
    }

    fn is_intact(&self) -> bool {
        // SAFETY: all-zero is a valid structure, and it outlives the call.
        unsafe {
            let mut state: libc::msqid_ds = std::mem::zeroed();
            libc::msgctl(self.messages, libc::IPC_STAT, &raw mut state) == 0
                && state.msg_qnum == 1
                && libc::semctl(self.semaphores, 0, libc::GETVAL) == 5
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `new` created the objects, and the name is NUL-terminated.
        unsafe {
            libc::msgctl(self.messages, libc::IPC_RMID, ptr::null_mut());
            libc::semctl(self.semaphores, 0, libc::IPC_RMID);
            libc::mq_unlink(self.name.as_ptr());
        }
    }
}
