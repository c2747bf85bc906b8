//! Reads a file with each system call that can transfer its bytes.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
};

use crate::sys::{Outcome, c, check, descriptor};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["read", how, path] => read(how, path),
        ["copy-range", from, to] => copy_range(from, to),
        ["by-handle", path, below] => by_handle(path, below),
        ["handle", path] => handle(path).map(|handle| println!("{handle:?}")),
        _ => return None,
    })
}

fn read(how: &str, path: &str) -> Outcome {
    let text = match how {
        "splice" => through_pipe(path, |file, pipe| {
            // SAFETY: both offsets are null, and both descriptors are open.
            unsafe { libc::splice(file, ptr::null_mut(), pipe, ptr::null_mut(), 4096, 0) as i64 }
        })?,
        "sendfile" => through_pipe(path, |file, pipe| {
            // SAFETY: the offset is null, and both descriptors are open.
            unsafe { libc::sendfile(pipe, file, ptr::null_mut(), 4096) as i64 }
        })?,
        "map" => mapped(path)?,
        "opened" => {
            let file = descriptor({
                let path = c(path)?;
                // SAFETY: the path is NUL-terminated and outlives the call.
                unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }
            })?;
            io::read_to_string(File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?)?
        }
        "openat2" => {
            let how = [u64::from((libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned()), 0, 0];
            let path = c(path)?;
            // SAFETY: the path is NUL-terminated and the structure has the size passed; both outlive the call.
            let file = descriptor(unsafe {
                libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), how.as_ptr(), 24)
            })?;
            io::read_to_string(File::from(file))?
        }
        _ => return Err("unknown method".into()),
    };
    println!("{text}");
    Ok(())
}

fn through_pipe(
    path: &str,
    transfer: impl Fn(i32, i32) -> i64,
) -> Result<String, Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    // SAFETY: the descriptors were just created, and no other code owns them.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    check(transfer(file.as_raw_fd(), write.as_raw_fd()))?;
    drop(write);
    Ok(io::read_to_string(File::from(read))?)
}

fn mapped(path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len())?;
    // SAFETY: the mapping is new, as long as the file, and read completely before it is unmapped.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let text = String::from_utf8_lossy(std::slice::from_raw_parts(at.cast(), length)).into_owned();
        check(libc::munmap(at, length))?;
        Ok(text)
    }
}

fn copy_range(from: &str, to: &str) -> Outcome {
    let (from, to) = (File::open(from)?, File::options().write(true).create(true).truncate(true).open(to)?);
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: both offsets are null, and both descriptors are open.
    check(unsafe { libc::copy_file_range(from, ptr::null_mut(), to, ptr::null_mut(), 4096, 0) } as i64)?;
    Ok(())
}

/// `file_handle` with room for the largest handle.
#[repr(C)]
#[derive(Debug)]
struct Handle {
    bytes: u32,
    kind: i32,
    data: [u8; 128],
}

fn handle(path: &str) -> Result<Handle, Box<dyn std::error::Error>> {
    let mut handle = Handle { bytes: 128, kind: 0, data: [0; 128] };
    let mut mount = 0;
    let path = c(path)?;
    // SAFETY: the path is NUL-terminated, the handle contains its size, and the buffer has room for one number.
    check(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    })?;
    Ok(handle)
}

/// Reads `path` through its file handle, using the mount of `below`.
fn by_handle(path: &str, below: &str) -> Outcome {
    let handle = handle(path)?;
    let mount = File::open(below)?;
    // SAFETY: the descriptor is open, and the kernel has filled in the handle.
    let file = descriptor(unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw const handle, libc::O_RDONLY)
    })?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    println!("{text}");
    Ok(())
}
