//! The calls that Rust has no safe words for. All of this crate's unsafe code is below this module.

#![expect(unsafe_code, reason = "the rest of the crate is kept safe by what is below")]

pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod notify;
pub(crate) mod process;
pub(crate) mod signals;
