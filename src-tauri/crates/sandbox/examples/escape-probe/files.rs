//! File operations that no shell command offers.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
};

use crate::sys::{Outcome, c, check, descriptor};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["rename", from, to] => rename(from, to, 0),
        ["exchange", one, other] => rename(one, other, libc::RENAME_EXCHANGE),
        ["whiteout", from, to] => rename(from, to, libc::RENAME_WHITEOUT),
        ["truncate", path] => truncate(path),
        ["tmpfile", dir, name, text] => tmpfile(dir, name, text),
        ["link-opened", from, to] => link_opened(from, to),
        ["setxattr", path, text] => setxattr(path, text),
        ["setflags", path] => set_flags(path),
        ["punch", path] => punch(path),
        ["write-mapped", path, text] => write_mapped(path, text),
        ["reopen", path, text] => reopen(path, text),
        ["chmod", how, path, mode] => chmod(how, path, mode),
        ["make", how, path, mode] => make(how, path, mode),
        ["descriptors", text] => descriptors(text),
        _ => return None,
    })
}

fn rename(from: &str, to: &str, flags: u32) -> Outcome {
    let (from, to) = (c(from)?, c(to)?);
    // SAFETY: both paths are NUL-terminated and outlive the call.
    check(unsafe { libc::renameat2(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags) })?;
    Ok(())
}

fn truncate(path: &str) -> Outcome {
    let path = c(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    check(unsafe { libc::truncate(path.as_ptr(), 0) })?;
    Ok(())
}

/// Creates an unnamed file in `dir`, then links it to `name`.
fn tmpfile(dir: &str, name: &str, text: &str) -> Outcome {
    let mut file = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).mode(0o644).open(dir)?;
    file.write_all(text.as_bytes())?;
    link(&format!("/proc/self/fd/{}", file.as_raw_fd()), name)
}

fn link_opened(from: &str, to: &str) -> Outcome {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(from)?;
    link(&format!("/proc/self/fd/{}", file.as_raw_fd()), to)
}

fn link(from: &str, to: &str) -> Outcome {
    let (from, to) = (c(from)?, c(to)?);
    let follow = libc::AT_SYMLINK_FOLLOW;
    // SAFETY: both paths are NUL-terminated and outlive the call.
    check(unsafe { libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), follow) })?;
    Ok(())
}

fn setxattr(path: &str, text: &str) -> Outcome {
    let path = c(path)?;
    // SAFETY: the path and the name are NUL-terminated, the length is that of the value, and all outlive the call.
    check(unsafe {
        libc::setxattr(path.as_ptr(), c"user.mark".as_ptr(), text.as_ptr().cast(), text.len(), 0)
    })?;
    Ok(())
}

/// Toggles a file's no-dump flag. The file's owner needs only read access for this.
fn set_flags(path: &str) -> Outcome {
    const NO_DUMP: libc::c_long = 0x40;
    let file = File::open(path)?;
    let mut flags: libc::c_long = 0;
    // SAFETY: both requests take a pointer to one long that outlives the call.
    unsafe {
        check(libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags))?;
        flags ^= NO_DUMP;
        check(libc::ioctl(file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags))?;
    }
    Ok(())
}

fn punch(path: &str) -> Outcome {
    let file = OpenOptions::new().write(true).open(path)?;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: `fallocate` takes no pointers, and the descriptor is open.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, 4) })?;
    Ok(())
}

fn write_mapped(path: &str, text: &str) -> Outcome {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.set_len(file.metadata()?.len().max(text.len() as u64))?;
    let (access, length) = (libc::PROT_READ | libc::PROT_WRITE, text.len());
    // SAFETY: the mapping is new and no longer than the file, and exactly its length is written to it.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), length);
        check(libc::munmap(at, length))?;
    }
    Ok(())
}

/// Opens a file with `O_PATH`, then reopens it for writing through the descriptor.
fn reopen(path: &str, text: &str) -> Outcome {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let mut again = OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(again.write_all(text.as_bytes())?)
}

fn chmod(how: &str, path: &str, mode: &str) -> Outcome {
    let mode = u32::from_str_radix(mode, 8)?;
    let file = File::open(path);
    let path = c(path)?;
    // SAFETY: each call gets an open descriptor or a NUL-terminated path that outlives the call.
    check(unsafe {
        match how {
            "chmod" => libc::chmod(path.as_ptr(), mode),
            "fchmod" => libc::fchmod(file?.as_raw_fd(), mode),
            "fchmodat" => libc::fchmodat(libc::AT_FDCWD, path.as_ptr(), mode, 0),
            "fchmodat2" => {
                let done = libc::syscall(
                    libc::SYS_fchmodat2,
                    libc::AT_FDCWD,
                    path.as_ptr(),
                    mode,
                    libc::AT_SYMLINK_NOFOLLOW,
                );
                i32::try_from(done)?
            }
            _ => return Err("unknown method".into()),
        }
    })?;
    Ok(())
}

/// Creates a file with exactly this mode, regardless of the umask.
fn make(how: &str, path: &str, mode: &str) -> Outcome {
    let mode = u32::from_str_radix(mode, 8)?;
    let path = c(path)?;
    let here = libc::AT_FDCWD;
    let flags = libc::O_CREAT | libc::O_WRONLY;
    let how_to_open = [u64::from(flags.cast_unsigned()), u64::from(mode), 0];
    // SAFETY: the path is NUL-terminated and the structure has the size passed; both outlive the call.
    let made = unsafe {
        libc::umask(0);
        match how {
            "open" => libc::syscall(libc::SYS_open, path.as_ptr(), flags, mode),
            "openat" => libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, mode),
            "openat2" => libc::syscall(libc::SYS_openat2, here, path.as_ptr(), how_to_open.as_ptr(), 24),
            "creat" => libc::syscall(libc::SYS_creat, path.as_ptr(), mode),
            "mkdir" => libc::syscall(libc::SYS_mkdir, path.as_ptr(), mode),
            "mkdirat" => libc::syscall(libc::SYS_mkdirat, here, path.as_ptr(), mode),
            "mknod" => libc::syscall(libc::SYS_mknod, path.as_ptr(), libc::S_IFREG | mode, 0),
            "mknodat" => libc::syscall(libc::SYS_mknodat, here, path.as_ptr(), libc::S_IFREG | mode, 0),
            "block" => {
                libc::syscall(libc::SYS_mknod, path.as_ptr(), libc::S_IFBLK | mode, libc::makedev(254, 0))
            }
            "char" => {
                libc::syscall(libc::SYS_mknod, path.as_ptr(), libc::S_IFCHR | mode, libc::makedev(1, 1))
            }
            _ => return Err("unknown method".into()),
        }
    };
    check(made)?;
    Ok(())
}

/// Tries to read or list each inherited descriptor, to write to it, and to create a file below it.
fn descriptors(text: &str) -> Outcome {
    for number in 3..256 {
        // SAFETY: `F_GETFD` changes nothing, and the number need not be an open descriptor.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            // A failed attempt must not prevent attempts on other descriptors.
            let tried = [read_by(number), write_by(number, text), write_below(number, text)];
            println!("{number}: {}", tried.iter().filter(|tried| tried.is_ok()).count());
        }
    }
    Ok(())
}

fn read_by(number: RawFd) -> Outcome {
    let path = format!("/proc/self/fd/{number}");
    let mut text = String::new();
    match fs::read_dir(&path) {
        Ok(names) => names.flatten().for_each(|name| println!("{}", name.path().display())),
        Err(_) => _ = File::open(&path)?.read_to_string(&mut text)?,
    }
    println!("{text}");
    Ok(())
}

fn write_by(number: RawFd, text: &str) -> Outcome {
    // SAFETY: the length is that of the text, and the number need not be an open descriptor.
    check(unsafe { libc::write(number, text.as_ptr().cast(), text.len()) } as i64)?;
    Ok(())
}

fn write_below(number: RawFd, text: &str) -> Outcome {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a constant C string.
    let file = descriptor(unsafe { libc::openat(number, c"planted".as_ptr(), flags, 0o644) })?;
    Ok(File::from(file).write_all(text.as_bytes())?)
}
