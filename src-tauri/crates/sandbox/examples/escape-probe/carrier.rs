//! Launches a sandbox like a careless program: with open files and folders, a secret in its session keyring, and
//! possibly a terminal.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::{
        fd::{AsRawFd, IntoRawFd, OwnedFd},
        unix::{fs::OpenOptionsExt, process::CommandExt},
    },
    process::{Command, Stdio},
    ptr,
};

use crate::sys::{Outcome, check, descriptor};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["carrier", outside, denied, secret, "--", program, args @ ..] => {
            carry(outside, denied, secret).and_then(|()| Err(Command::new(program).args(args).exec().into()))
        }
        ["carrier", outside, denied, secret, "--terminal", typed, "--", program, args @ ..] => {
            carry(outside, denied, secret).and_then(|()| in_terminal(typed, program, args))
        }
        _ => return None,
    })
}

/// Opens descriptors and creates a key. The program that replaces this process inherits them.
fn carry(outside: &str, denied: &str, secret: &str) -> Outcome {
    keep(File::open(outside)?)?;
    keep(OpenOptions::new().read(true).write(true).open(format!("{outside}/file"))?)?;
    keep(File::open(denied)?)?;
    keep(File::open(format!("{denied}/secret"))?)?;
    let no_name = ptr::null::<libc::c_char>();
    // SAFETY: the strings are constants, the null name is allowed, and the length is that of the secret.
    unsafe {
        check(libc::syscall(libc::SYS_keyctl, 1, no_name))?;
        let (kind, name) = (c"user".as_ptr(), c"carried".as_ptr());
        check(libc::syscall(libc::SYS_add_key, kind, name, secret.as_ptr(), secret.len(), -3))?;
    }
    Ok(())
}

fn keep(file: File) -> Outcome {
    // SAFETY: `into_raw_fd` releases the open descriptor, so it stays open for the program that replaces this process.
    check(unsafe { libc::fcntl(file.into_raw_fd(), libc::F_SETFD, 0) })?;
    Ok(())
}

/// Runs the program in a terminal and, after it has exited, records the terminal's input.
fn in_terminal(typed: &str, program: &str, args: &[&str]) -> Outcome {
    // SAFETY: `posix_openpt` takes no pointers.
    let master = descriptor(unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) })?;
    let number = other_end(&master)?;
    let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(&number);
    let slave = open(libc::O_NOCTTY)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(slave));
    // SAFETY: the closure only makes system calls on its own descriptors, and this process is single-threaded.
    unsafe {
        command.pre_exec(|| {
            check(libc::setsid())?;
            check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            Ok(())
        });
    }
    let mut reader = open(libc::O_NOCTTY | libc::O_NONBLOCK)?;
    command.status()?;
    let mut bytes = [0; 4096];
    let length = match reader.read(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        length => length?,
    };
    Ok(fs::write(typed, bytes.get(..length).unwrap_or_default())?)
}

/// Unlocks the slave side of the terminal with this master side, and returns the slave's path.
pub(crate) fn other_end(master: &OwnedFd) -> Result<String, Box<dyn std::error::Error>> {
    let (mut locked, mut number) = (0, 0);
    // SAFETY: both requests take a pointer to one number that outlives the call.
    unsafe {
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw mut locked))?;
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number))?;
    }
    Ok(format!("/dev/pts/{number}"))
}
