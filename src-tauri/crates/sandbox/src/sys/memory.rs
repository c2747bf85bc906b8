//! How the allocator keeps what was given back to it.

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
