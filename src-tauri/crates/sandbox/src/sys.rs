//! Safe wrappers for system calls. All unsafe code of this crate is here.

#![expect(unsafe_code, reason = "this module wraps system calls for the safe rest of the crate")]

pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod notify;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod tun;
