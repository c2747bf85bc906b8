//! System calls through other entry points: 32-bit, x32 and io_uring.

use std::{io, ptr};

use crate::{
    sockets::unix_address,
    sys::{Outcome, check, claim},
};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["door32", "unix", path, text] => door32_unix(path, text),
        ["door32", "offered"] => door32_offered(),
        ["x32", file] => x32(file),
        ["uring", "unix", path, text] => uring_unix(path, text),
        _ => return None,
    })
}

/// Call numbers in the 32-bit table.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const WRITE: u32 = 4;
    pub(super) const GETPID: u32 = 20;
    pub(super) const SOCKET: u32 = 359;
    pub(super) const CONNECT: u32 = 362;
}

#[cfg(target_arch = "x86_64")]
fn door32(number: u32, one: u32, two: u32, three: u32) -> io::Result<u32> {
    let answer: u32;
    // SAFETY: the caller passes addresses that are below 4 GiB and point to memory that outlives the call. The compiler
    // reserves the first argument's register, so its value is swapped and restored.
    unsafe {
        std::arch::asm!(
            "xchg {one:r}, rbx", "int 0x80", "xchg {one:r}, rbx",
            one = inout(reg) u64::from(one) => _,
            inlateout("eax") number => answer,
            in("ecx") two, in("edx") three,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    let signed = answer.cast_signed();
    if (-4095..0).contains(&signed) { Err(io::Error::from_raw_os_error(-signed)) } else { Ok(answer) }
}

#[cfg(target_arch = "x86_64")]
fn door32_offered() -> Outcome {
    door32(numbers::GETPID, 0, 0, 0)?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn door32_unix(path: &str, text: &str) -> Outcome {
    let (address, length) = unix_address(path)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: the mapping is a new page of this process, large enough for the address followed by the text.
    let low = unsafe {
        let low = libc::mmap(ptr::null_mut(), 4096, access, kind, -1, 0);
        if low == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        ptr::copy_nonoverlapping((&raw const address).cast::<u8>(), low.cast(), size_of_val(&address));
        ptr::copy_nonoverlapping(text.as_ptr(), low.cast::<u8>().add(2048), text.len().min(1024));
        u32::try_from(low as usize)?
    };
    let socket = door32(numbers::SOCKET, 1, 1, 0)?;
    door32(numbers::CONNECT, socket, low, length)?;
    door32(numbers::WRITE, socket, low + 2048, u32::try_from(text.len())?)?;
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn door32_offered() -> Outcome {
    Err("not supported on this architecture".into())
}

#[cfg(not(target_arch = "x86_64"))]
fn door32_unix(_: &str, _: &str) -> Outcome {
    Err("not supported on this architecture".into())
}

fn x32(file: &str) -> Outcome {
    // SAFETY: `getpid` takes no arguments.
    check(unsafe { libc::syscall(0x4000_0000 + libc::SYS_getpid) })?;
    claim(file, "x32")
}

/// Submission queue entry in the kernel's layout.
#[repr(C)]
#[derive(Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    descriptor: i32,
    offset: u64,
    address: u64,
    length: u32,
    call_flags: u32,
    data: u64,
    rest: [u64; 3],
}

/// Ring with eight entries, used one at a time.
struct Ring {
    descriptor: i32,
    parameters: [u32; 30],
    rings: *mut u8,
    entries: *mut Entry,
}

impl Ring {
    fn new() -> io::Result<Self> {
        let mut parameters = [0u32; 30];
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: the kernel fills in the parameters, then provides the two mappings at its own offsets.
        unsafe {
            let made = check(libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr()))?;
            let descriptor = i32::try_from(made).unwrap_or(-1);
            let map = |offset| libc::mmap(ptr::null_mut(), 65_536, access, shared, descriptor, offset);
            let (rings, entries) = (map(0), map(0x1000_0000));
            if rings == libc::MAP_FAILED || entries == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { descriptor, parameters, rings: rings.cast(), entries: entries.cast() })
        }
    }

    /// Returns a pointer to the ring field whose offset the kernel stored in the parameter at index `parameter`.
    fn at(&self, parameter: usize) -> *mut u32 {
        let offset = self.parameters.get(parameter).copied().unwrap_or_default();
        self.rings.wrapping_add(offset as usize).cast()
    }

    /// Submits one operation and returns its result.
    fn run(&mut self, entry: Entry) -> io::Result<i32> {
        // Indexes of the parameters that contain the offsets of the submission queue's tail, mask and array, and of the
        // completion queue's head, mask and entries.
        let (tail, mask, array, head, done_mask, done) = (11, 12, 16, 20, 22, 25);
        // SAFETY: every access is within the mappings, at an offset from the kernel, and no other code uses the ring.
        unsafe {
            let slot = self.at(tail).read_volatile() & self.at(mask).read();
            self.entries.add(slot as usize).write(entry);
            self.at(array).add(slot as usize).write_volatile(slot);
            self.at(tail).write_volatile(self.at(tail).read() + 1);
            check(libc::syscall(libc::SYS_io_uring_enter, self.descriptor, 1, 1, 1, 0, 0))?;
            let place = self.at(head).read_volatile() & self.at(done_mask).read();
            let answer = self.at(done).add(place as usize * 4 + 2).read_volatile().cast_signed();
            self.at(head).write_volatile(self.at(head).read() + 1);
            if answer < 0 { Err(io::Error::from_raw_os_error(-answer)) } else { Ok(answer) }
        }
    }
}

/// Makes the kernel connect on behalf of this process, without the usual system calls.
fn uring_unix(path: &str, text: &str) -> Outcome {
    const WRITE: u8 = 23;
    const CONNECT: u8 = 16;
    const SOCKET: u8 = 45;
    let (address, length) = unix_address(path)?;
    let mut ring = Ring::new()?;
    let stream = Entry { opcode: SOCKET, descriptor: libc::AF_UNIX, offset: 1, ..Entry::default() };
    let socket = ring.run(stream)?;
    let address = (&raw const address) as u64;
    let there =
        Entry { opcode: CONNECT, descriptor: socket, address, offset: length.into(), ..Entry::default() };
    ring.run(there)?;
    let (address, length) = (text.as_ptr() as u64, u32::try_from(text.len())?);
    ring.run(Entry { opcode: WRITE, descriptor: socket, address, length, ..Entry::default() })?;
    Ok(())
}
