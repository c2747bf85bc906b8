//! Releases memory: program code that is no longer needed, and freed blocks that the allocator would keep.

use std::fs;

use libc::{c_void, madvise};

/// Minimum size in bytes of freed blocks that are returned to the system. Only messages and files are this large.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MIN_RETURNED_LEN: libc::c_int = 1024 * 1024;

/// Makes the allocator return freed blocks of at least 1 MiB to the system.
///
/// By default, glibc raises this threshold to the size of each larger block that is freed, up to 32 MiB, and keeps
/// smaller blocks.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes two numbers and only affects later allocations. A failure has no effect.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MIN_RETURNED_LEN);
    }
}

/// Drops this process's program code from memory. The kernel reads the code again when it is executed. A supervisor
/// needs most of its code only to set up the sandbox, and is idle afterwards.
pub(crate) fn drop_code() {
    // If `maps` is unreadable, nothing is dropped, because this is only an optimization.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end) in maps.lines().filter_map(code) {
        // SAFETY: the range is a private file mapping that was never writable, so it is unmodified and the kernel
        // reads the same bytes again. Relocations are in a separate mapping, further on in the file.
        unsafe {
            madvise(start as *mut c_void, end.saturating_sub(start), libc::MADV_DONTNEED);
        }
    }
}

/// Returns the address range of a `maps` line (`proc_pid_maps(5)`) if it maps program code or the headers of a program
/// file: private, file-backed and never writable.
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
    fn code_matches_only_unwritable_code() {
        let line = |access: &str, file: &str| format!("7f00-7f20 {access} 00001000 08:01 17    {file}");
        assert_eq!(code(&line("r-xp", "/usr/bin/true")), Some((0x7f00, 0x7f20)));
        for (access, file) in
            [("rwxp", "/a"), ("r--p", "/a"), ("r-xs", "/a"), ("r-xp", "[vdso]"), ("r-xp", "")]
        {
            assert_eq!(code(&line(access, file)), None, "{access} {file}");
        }
        let headers = "7f00-7f20 r--p 00000000 08:01 17    /usr/bin/true";
        assert_eq!(code(headers), Some((0x7f00, 0x7f20)));
        drop_code();
    }
}
