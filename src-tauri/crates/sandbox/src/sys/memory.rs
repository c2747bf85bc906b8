//! Giving memory back: what was only needed to start, and what the allocator would keep.

use std::fs;

use libc::{c_void, madvise};

/// From this size on, a block goes back to the system when it is freed. Nothing but a message or a file is as large.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1024 * 1024;

/// Lets freed blocks of a mebibyte and more go back to the system, always. By itself, the GNU allocator takes each larger
/// block that is freed for the new measure, up to 32 MiB, and then keeps such blocks.
pub fn give_large_blocks_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and changes nothing but what later allocations do. That it refuses changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Lets go of this process's program code, which the kernel reads again where it is run again. A supervisor needs most of its
/// own to set a sandbox up, and then waits for as long as that lives.
pub(crate) fn let_go_of_code() {
    // Nothing depends on it.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end) in maps.lines().filter_map(code) {
        // SAFETY: a private mapping of a file that nobody can have written to, since it never was writable: what is let go
        // is read from the file again, as it was. Where relocations are made is a mapping of its own, further on in the file.
        unsafe {
            madvise(start as *mut c_void, end.saturating_sub(start), libc::MADV_DONTNEED);
        }
    }
}

/// The bounds of a mapping, if it is private, of a file, and to be run and not to be written, or if it begins with that file's
/// headers and can only be read: proc_pid_maps(5).
fn code(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (access, offset) = (fields.next()?, fields.next()?);
    let is_constant = access == "r-xp" || access == "r--p" && offset.bytes().all(|digit| digit == b'0');
    let is_code = is_constant && fields.nth(2).is_some_and(|file| file.starts_with('/'));
    let number = |text| usize::from_str_radix(text, 16).ok();
    is_code.then_some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_that_nobody_writes_is_let_go() {
        let line = |access: &str, file: &str| format!("7f00-7f20 {access} 00001000 08:01 17    {file}");
        assert_eq!(code(&line("r-xp", "/usr/bin/true")), Some((0x7f00, 0x7f20)));
        for (access, file) in
            [("rwxp", "/a"), ("r--p", "/a"), ("r-xs", "/a"), ("r-xp", "[vdso]"), ("r-xp", "")]
        {
            assert_eq!(code(&line(access, file)), None, "{access} {file}");
        }
        let headers = "7f00-7f20 r--p 00000000 08:01 17    /usr/bin/true";
        assert_eq!(code(headers), Some((0x7f00, 0x7f20)));
        let_go_of_code();
    }
}
